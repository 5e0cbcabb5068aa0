"""Mooring and kube-scheduler under pressure, beside each other, each time against a fresh API server.

    make control-plane && PYTHONPATH=tools/control-plane python -m benchmarks.pressure
        [--scenarios a c/10 h] [--qps default 5000] [--only mooring] [--repeats 3] [--write FOLDER] [--fresh]

What happens in a scenario stands in `pressure_scenarios.py`. Both schedulers get the same nodes and pods,
no leader election, and their defaults for all else; `--qps default` leaves the limit of requests at the
default, too. `c/10` is (c) with a tenth of the nodes, the pods and the time. The schedulers take turns.
`--write` keeps what it finds in the folder's pressure.json, beside what is there of other scenarios; with
`--fresh`, in its place.

    seconds          from the start of the pressure to the last bind; nothing if pods are missing at the end
    p50, p99         from the answer to a pod's creation to the answer to its bind, by the audit log
    CPU              of the scheduler, user and system, from the start of the pressure until it is idle
    peak, grew       the most memory that was resident; how much more at the end than before the pressure
    requests         what the scheduler asked of the API server from the start of the pressure on
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from control_plane import KUBE_SCHEDULER, Component, ControlPlane, ControlPlaneError
from plain_client import ApiFailure, Json, PlainClient

from benchmarks import machine, pressure_audit, pressure_table, suite
from benchmarks.answers import WrongAnswer
from benchmarks.pressure_audit import Requests, percentile
from benchmarks.pressure_cluster import Cluster
from benchmarks.pressure_scenarios import SCENARIOS, Scenario, within_allocatable
from benchmarks.pressure_table import DEFAULT_QPS, FILE
from benchmarks.schedulers import SCHEDULERS, cpu_s, peak_mb, resident_mb, wait_until_idle
from tests.live.proxy import Proxy

#: How long a scheduler may take to start, and how long it may be busy after the last bind.
_START_S = 60.0
_END_S = 20.0
_QUIET_S = 1.0
_LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did once."""

    #: How many pods could be bound, and how many were.
    wanted: int
    bound: int
    #: None: not all were bound.
    seconds: float | None
    p50_s: float | None
    p99_s: float | None
    cpu_s: float
    api_server_cpu_s: float
    peak_mb: float
    start_mb: float
    end_mb: float
    requests: Requests
    #: Requests that a proxy refused in the API server's place.
    refused_writes: int
    #: The scheduler had nothing more to do at the end.
    is_idle: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Exits 1 if a scheduler placed a pod wrongly or ended: then nothing is said about its speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = [(key, 1.0) for key in SCENARIOS]
    parser.add_argument("--scenarios", nargs="+", type=_scenario, default=every, metavar="KEY[/N]")
    parser.add_argument("--qps", nargs="+", type=_qps, default=[DEFAULT_QPS, "5000"])
    parser.add_argument("--only", choices=list(SCHEDULERS), help="measure one scheduler")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to keep {FILE} in")
    parser.add_argument(
        "--fresh", action="store_true", help="keep nothing that was measured before"
    )
    options = parser.parse_args(arguments)
    schedulers = [options.only] if options.only else list(SCHEDULERS)
    facts = machine.facts()
    results = []
    path = options.write / FILE if options.write is not None else None
    before = [] if path is None or options.fresh or not path.exists() else _load(path)
    for (scenario, scale), qps in itertools.product(options.scenarios, options.qps):
        found = list(_results(SCENARIOS[scenario], qps, schedulers, options.repeats, scale))
        results += [each | {"commit": facts["commit"]} for each in found]
        if path is not None:
            # After each, so that a run that is broken off is not lost.
            _keep(merged(before, results), facts, path)
    print(pressure_table.plain(results))
    problems = [each for each in results if each["problems"]]
    for each in problems:
        print(f"{each['name']}, {each['scheduler']}: {each['problems'][0]}", file=sys.stderr)
    return 1 if problems else 0


def merged(before: Sequence[Json], found: Sequence[Json]) -> list[Json]:
    """What was found, and of what was known before all that was not measured again; in order."""
    by_key = {_key(result): result for result in [*before, *found]}
    return [by_key[key] for key in sorted(by_key)]


def _key(result: Json) -> tuple[str, float, bool, str, str]:
    qps = result["qps"]
    return result["scenario"], -result["scale"], qps != DEFAULT_QPS, qps, result["scheduler"]


def _load(path: Path) -> list[Json]:
    results: list[Json] = json.loads(path.read_text())["results"]
    return results


def _keep(results: Sequence[Json], facts: Mapping[str, Any], path: Path) -> None:
    data = {
        "machine": {**facts, "load_average_at_end": machine.load_average()},
        "results": results,
    }
    suite.write(data, path)


def _scenario(text: str) -> tuple[str, float]:
    """`c` or `c/10`: which scenario, and at which scale."""
    key, _, parts = text.partition("/")
    if key not in SCENARIOS or (parts and not parts.isdecimal()) or parts == "0":
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(SCENARIOS)}, or one/N")
    return key, 1.0 / int(parts or 1)


def _qps(text: str) -> str:
    return text if text == DEFAULT_QPS else str(int(text))


def _results(
    scenario: type[Scenario], qps: str, schedulers: Sequence[str], repeats: int, scale: float
) -> Iterator[Json]:
    """One result a scheduler; the schedulers take turns, so that both meet the same weather."""
    runs: dict[str, list[Json]] = {scheduler: [] for scheduler in schedulers}
    problems: dict[str, list[str]] = {scheduler: [] for scheduler in schedulers}
    for _, scheduler in itertools.product(range(repeats), schedulers):
        what = f"{scenario.key} {scenario.name}, qps {qps}, {scheduler}"
        _say(f"{what} …")
        began_s = time.monotonic()
        try:
            run = _measure(scenario, scheduler, qps, scale)
        except (WrongAnswer, ControlPlaneError, ApiFailure, OSError) as problem:
            problems[scheduler].append(f"{type(problem).__name__}: {problem}")
            _say(f"{what}: {problem}")
            continue
        runs[scheduler].append(asdict(run))
        took_s = time.monotonic() - began_s
        _say(f"{what}: {pressure_table.line(asdict(run))}; {took_s:.0f} s in all")
    for scheduler in schedulers:
        yield {
            "scenario": scenario.key,
            "name": scenario.name,
            "says": scenario.says,
            "qps": qps,
            "scheduler": scheduler,
            "scale": scale,
            "runs": runs[scheduler],
            "problems": problems[scheduler],
        }


def _measure(kind: type[Scenario], scheduler: str, qps: str, scale: float) -> Run:
    """Raises WrongAnswer; ControlPlaneError if the scheduler ends; TimeoutError in the preparation."""
    policy = pressure_audit.policy(names_generated_pods=bool(kind.controllers))
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane(audit_policy=policy))
        client = stack.enter_context(control_plane.client())
        proxy = stack.enter_context(Proxy(control_plane)) if kind.is_proxied else None
        cluster = stack.enter_context(Cluster(control_plane, client, scale=scale, proxy=proxy))
        _allow_everything(client)
        if kind.controllers:
            control_plane.start_controllers(*kind.controllers)
        scenario = kind(cluster)
        scenario.prepare()
        server = proxy.url if proxy else None
        config = _configuration(
            control_plane, control_plane.kubeconfig(KUBE_SCHEDULER, server=server), qps
        )
        component = SCHEDULERS[scheduler](control_plane, config)
        stack.callback(component.stop)
        wait_until_idle(component, at_least_s=2.0, most_s=_START_S)
        scenario.warm_up()
        if not wait_until_idle(component, at_least_s=1.0, most_s=kind.rest_s):
            _say(f"{scheduler} is not at rest when the clock starts")
        run = _run(scenario, component, control_plane.api_server)
        component.stop()
        nodes, pods = client.list("Node"), client.list("Pod")
        within_allocatable(nodes, pods)
        scenario.check(nodes, pods)
        return run


def _run(scenario: Scenario, component: Component, api_server: Component) -> Run:
    cluster = scenario.cluster
    spent_s, api_server_spent_s = cpu_s(component), cpu_s(api_server)
    start_mb = resident_mb(component)
    cluster.began_s = time.time()
    scenario.press()
    deadline = time.monotonic() + scenario.patience_s
    while scenario.missing() and time.monotonic() < deadline:
        component.check()
        time.sleep(_LOOK_EVERY_S)
    is_idle = _wait_until_done(component, cluster)
    bound = scenario.bound()
    latencies_s = cluster.pods.latencies_s(bound)
    last_s = max((cluster.pods.bound_at_s[name] for name in bound), default=cluster.began_s)
    return Run(
        wanted=scenario.wanted,
        bound=len(bound),
        seconds=None if scenario.missing() else last_s - cluster.began_s,
        p50_s=percentile(latencies_s, 0.50),
        p99_s=percentile(latencies_s, 0.99),
        cpu_s=cpu_s(component) - spent_s,
        api_server_cpu_s=cpu_s(api_server) - api_server_spent_s,
        peak_mb=peak_mb(component),
        start_mb=start_mb,
        end_mb=resident_mb(component),
        requests=Requests.count(
            cluster.answers.copy(), user=KUBE_SCHEDULER.name, since_s=cluster.began_s
        ),
        refused_writes=scenario.refused_writes(),
        is_idle=is_idle,
    )


def _wait_until_done(component: Component, cluster: Cluster) -> bool:
    """Wait until the scheduler neither asks for anything nor computes; False if it goes on and on.

    A scheduler that waits for slow answers computes little, and is not done.
    """
    deadline = time.monotonic() + _END_S
    is_quiet = cluster.wait_for(
        lambda: cluster.last_answer_s(KUBE_SCHEDULER.name) < time.time() - _QUIET_S,
        within_s=_END_S,
    )
    left_s = max(2 * _QUIET_S, deadline - time.monotonic())
    return wait_until_idle(component, at_least_s=_QUIET_S, most_s=left_s) and is_quiet


def _configuration(control_plane: ControlPlane, kubeconfig: Path, qps: str) -> Path:
    """Both schedulers are the same user, by which their requests are told from those of others."""
    limits = {} if qps == DEFAULT_QPS else {"qps": int(qps), "burst": int(qps)}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), **limits},
        "leaderElection": {"leaderElect": False},
    }
    path = control_plane.folder / "scheduler.json"
    path.write_text(json.dumps(document))
    return path


def _allow_everything(client: PlainClient) -> None:
    """The role of a kube-scheduler is not quite what mooring asks for."""
    group = "rbac.authorization.k8s.io"
    client.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "benchmark"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": KUBE_SCHEDULER.name}],
        }
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
