"""Pods bound per second against a real API server: mooring and kube-scheduler, one after the other.

    make control-plane && PYTHONPATH=tools/control-plane python -m benchmarks.live [--write FOLDER]

Both get the same API server, the same nodes and pods, the same limits on requests, and their defaults for all
else. A run: the scheduler stands by with everything in memory, since somebody else holds its lease; the pods
are created; the lease is released. So what is measured is the scheduling of pods that wait, and neither a
scheduler's start nor the speed at which pods can be created.

    bound per second   from the first answer to a bind to the last, by the API server's audit log
    … with Events      up to when every pod's Event is there, too: mooring writes them after the binds
    CPU per pod        of the scheduler alone, user and system, from before the pods are created until it has
                       nothing more to do: the Events that follow the binds are part of it
    memory             the most that was resident since the scheduler's start

Then starts are measured: one pod waits, nobody holds the lease, and a scheduler is started. That is from the
start of the process to the answer to its first bind.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from control_plane import ADMIN, Component, ControlPlane
from plain_client import Json, PlainClient

from benchmarks import machine, suite
from benchmarks.answers import WrongAnswer
from benchmarks.harness import Spread
from benchmarks.live_table import FILE
from benchmarks.schedulers import SCHEDULERS, cpu_s, peak_mb, wait_until_idle

ZONES = 10
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

#: The lease that both schedulers ask for before they schedule.
_LEASE = {"name": "benchmark", "namespace": "kube-system"}
_LEASE_KIND = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}

#: How often the API server is looked at while a scheduler works: not so often as to be in its way.
_LOOK_EVERY_S = 0.2

#: Nothing takes this long; something is wrong if it does.
_PATIENCE_S = 300.0

#: In each line of the audit log that is about a bind.
_BINDING = b'"subresource":"binding"'


@dataclass(frozen=True, slots=True)
class Load:
    """What all pods of a run have in common beside their requests."""

    name: str
    spec: Mapping[str, Any]
    #: What must hold of where the pods are: pod → node. Raises WrongAnswer.
    holds: Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did once."""

    pods_per_s: float
    #: As `pods_per_s`, up to when the last pod's Event could be read.
    with_events_per_s: float
    cpu_ms_per_pod: float
    peak_mb: float
    #: Milliseconds of CPU that the API server and etcd spent on a pod meanwhile.
    api_server_cpu_ms_per_pod: float
    etcd_cpu_ms_per_pod: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Exits 1 if a scheduler placed a pod wrongly: then nothing is said about its speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--starts", type=int, default=5, help="of each scheduler")
    parser.add_argument("--qps", type=int, default=5000, help="and burst, of both schedulers")
    parser.add_argument("--loads", nargs="+", choices=list(LOADS), default=list(LOADS))
    parser.add_argument("--only", choices=list(SCHEDULERS), help="measure one scheduler")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    loads = [LOADS[name] for name in options.loads]
    schedulers = [options.only] if options.only else list(SCHEDULERS)
    try:
        with ControlPlane() as control_plane, control_plane.client() as client:
            bench = _Bench(control_plane, client, options.nodes, options.pods, options.qps)
            data = bench.run(loads, schedulers, options.repeats, options.starts)
    except WrongAnswer as wrong:
        print(f"wrong answer: {wrong}", file=sys.stderr)
        return 1
    if options.write is not None:
        suite.write(data, options.write / FILE)
    print(table(data))
    return 0


def table(data: Mapping[str, Any]) -> str:
    """For a terminal."""
    lines = [
        f"{'load':<16}{'scheduler':<16}{'pods/s':>8}{'low – high':>14}"
        f"{'with Events':>13}{'CPU ms/pod':>12}{'peak MB':>9}{'API server ms/pod':>19}"
    ]
    for result in data["results"]:
        rate = result["pods_per_s"]
        spread = f"{rate['low']:.0f} – {rate['high']:.0f}"
        lines.append(
            f"{result['load']:<16}{result['scheduler']:<16}{rate['median']:>8.0f}{spread:>14}"
            f"{result['with_events_per_s']['median']:>13.0f}"
            f"{result['cpu_ms_per_pod']['median']:>12.2f}{result['peak_mb']['median']:>9.0f}"
            f"{result['api_server_cpu_ms_per_pod']['median']:>19.2f}"
        )
    lines += [
        f"{scheduler}: {start['median']:.2f} s from the start to the first bind"
        f" ({start['low']:.2f} – {start['high']:.2f})"
        for scheduler, start in data["starts_s"].items()
    ]
    return "\n".join(lines)


# Loads


def _all_bound(placed: Mapping[str, str]) -> None:
    missing = [pod for pod, node in placed.items() if not node]
    if missing:
        raise WrongAnswer(f"{len(missing)} pods are not bound, as {missing[0]}")


def _evenly_in_zones(placed: Mapping[str, str]) -> None:
    _all_bound(placed)
    zones = Counter(_zone(int(node.rpartition("-")[2])) for node in placed.values())
    if max(zones.values()) - min(zones.values()) > 1 or len(zones) != ZONES:
        raise WrongAnswer(f"the zones have {dict(zones)}")


def _one_a_node(placed: Mapping[str, str]) -> None:
    _all_bound(placed)
    if len(set(placed.values())) != len(placed):
        raise WrongAnswer("two pods that must not meet are on one node")


_LABELS = {"app": "measured"}
_SELECTOR = {"matchLabels": _LABELS}

LOADS = {
    load.name: load
    for load in (
        Load("plain", {}, _all_bound),
        Load(
            "zone-spread",
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": ZONE,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": _SELECTOR,
                    }
                ]
            },
            _evenly_in_zones,
        ),
        Load(
            "anti-affinity",
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"labelSelector": _SELECTOR, "topologyKey": HOSTNAME}
                        ]
                    }
                }
            },
            _one_a_node,
        ),
    )
}


def _zone(number: int) -> str:
    return f"zone-{number % ZONES}"


def _node(number: int) -> Json:
    name = f"node-{number}"
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: _zone(number)}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Made"}],
        },
    }


def _pod(name: str, spec: Mapping[str, Any]) -> Json:
    requests = {"cpu": "100m", "memory": "200Mi"}
    container = {"name": "main", "image": "nginx", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": _LABELS},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


class _Bench:
    """One API server and its nodes, for all runs."""

    def __init__(
        self, control_plane: ControlPlane, client: PlainClient, nodes: int, pods: int, qps: int
    ) -> None:
        self._control_plane = control_plane
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._config = control_plane.folder / "scheduler.json"
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(control_plane.kubeconfig(ADMIN)),
                "qps": qps,
                "burst": qps,
            },
            "leaderElection": {
                "leaderElect": True,
                "resourceName": _LEASE["name"],
                "resourceNamespace": _LEASE["namespace"],
                "leaseDuration": "30s",
                "renewDeadline": "20s",
                "retryPeriod": "1s",
            },
        }
        self._config.write_text(json.dumps(document))

    def run(
        self, loads: Sequence[Load], schedulers: Sequence[str], repeats: int, starts: int
    ) -> dict[str, Any]:
        """Raises WrongAnswer. The schedulers take turns, so that both meet the same weather."""
        facts = machine.facts()
        _say(f"creating {self._nodes} nodes")
        self._client.create_all(map(_node, range(self._nodes)))
        runs: dict[tuple[str, str], list[Run]] = {}
        for load, _, scheduler in itertools.product(loads, range(repeats), schedulers):
            run = self._measure(load, scheduler)
            runs.setdefault((load.name, scheduler), []).append(run)
            _say(
                f"{load.name}, {scheduler}: {run.pods_per_s:.0f} pods/s, "
                f"{run.cpu_ms_per_pod:.2f} ms CPU a pod, {run.peak_mb:.0f} MB"
            )
        starts_s: dict[str, list[float]] = {}
        for _, scheduler in itertools.product(range(starts), schedulers):
            start_s = self._start_s(scheduler)
            starts_s.setdefault(scheduler, []).append(start_s)
            _say(f"{scheduler}: {start_s:.2f} s from the start to the first bind")
        return {
            "machine": facts | {"load_average_at_end": machine.load_average()},
            "nodes": self._nodes,
            "pods": self._pods,
            "repeats": repeats,
            "results": [
                {"load": load, "scheduler": scheduler, **_spreads(each)}
                for (load, scheduler), each in runs.items()
            ],
            "starts_s": {name: asdict(Spread.of(each)) for name, each in starts_s.items()},
        }

    def _measure(self, load: Load, scheduler: str) -> Run:
        names = [f"pod-{number}" for number in range(self._pods)]
        self._hold_lease()
        component = SCHEDULERS[scheduler](self._control_plane, self._config)
        try:
            _wait_until_idle(component, at_least_s=2.0)
            parts = (component, self._control_plane.api_server, self._control_plane.etcd)
            before_s = cpu_s(component)
            self._client.create_all([_pod(name, load.spec) for name in names])
            _wait_until_idle(component, at_least_s=1.0)
            begun_s = [cpu_s(part) for part in parts]
            audited = self._control_plane.audit_position()
            self._release_lease()
            bound_at = self._wait_until_bound(component, audited, self._pods)
            told_at = self._wait_until_told(component)
            _wait_until_idle(component, at_least_s=1.0)
            ended_s = [cpu_s(part) for part in parts]
            peak = peak_mb(component)
        finally:
            component.stop()
        load.holds(self._placed(names))
        self._clear()
        _, api_server_s, etcd_s = (
            ended - begun for ended, begun in zip(ended_s, begun_s, strict=True)
        )
        each_ms = 1e3 / self._pods
        return Run(
            pods_per_s=(self._pods - 1) / (bound_at[-1] - bound_at[0]),
            with_events_per_s=(self._pods - 1) / (max(told_at, bound_at[-1]) - bound_at[0]),
            cpu_ms_per_pod=(ended_s[0] - before_s) * each_ms,
            peak_mb=peak,
            api_server_cpu_ms_per_pod=api_server_s * each_ms,
            etcd_cpu_ms_per_pod=etcd_s * each_ms,
        )

    def _start_s(self, scheduler: str) -> float:
        """Seconds from the start of a scheduler to the answer to its first bind."""
        self._free_lease()
        self._client.create(_pod("first", {}))
        audited, began_s = self._control_plane.audit_position(), time.time()
        component = SCHEDULERS[scheduler](self._control_plane, self._config)
        try:
            (bound_at,) = self._wait_until_bound(component, audited, 1)
        finally:
            component.stop()
        self._clear()
        return bound_at - began_s

    def _free_lease(self) -> None:
        if self._client.find("Lease", _LEASE["name"], _LEASE["namespace"]) is not None:
            self._client.delete("Lease", _LEASE["name"], _LEASE["namespace"])

    def _hold_lease(self) -> None:
        """As if another scheduler were at work."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": "the benchmark",
            "leaseDurationSeconds": 3600,
            "acquireTime": now,
            "renewTime": now,
        }
        self._free_lease()
        self._client.create({**_LEASE_KIND, "metadata": _LEASE, "spec": spec})

    def _release_lease(self) -> None:
        change = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        self._client.patch("Lease", _LEASE["name"], change, namespace=_LEASE["namespace"])

    def _wait_until_bound(self, component: Component, audited: int, pods: int) -> list[float]:
        """When each pod was bound, in order, by what the audit log says from a position on."""
        deadline = time.monotonic() + _PATIENCE_S
        while (count := self._bindings(audited)) < pods:
            component.check()
            if time.monotonic() > deadline:
                raise WrongAnswer(f"{count} of {pods} pods were bound in time")
            time.sleep(_LOOK_EVERY_S)
        return sorted(
            datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
            for entry in self._control_plane.audited(audited)
            if entry["objectRef"].get("subresource") == "binding"
            and entry["responseStatus"]["code"] == 201
        )

    def _wait_until_told(self, component: Component) -> float:
        """When there was an Event for each pod."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._events() < self._pods:
            component.check()
            if time.monotonic() > deadline:
                raise WrongAnswer("some pods have no Event")
            time.sleep(_LOOK_EVERY_S)
        return time.time()

    def _events(self) -> int:
        page = self._client.list_document("Event", limit="1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def _bindings(self, audited: int) -> int:
        """How many lines are about binds; counted without decoding, so as not to be in the way."""
        with self._control_plane.audit_log.open("rb") as log:
            log.seek(audited)
            return log.read().count(_BINDING)

    def _placed(self, names: Sequence[str]) -> dict[str, str]:
        nodes = {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in self._client.list("Pod")
        }
        return {name: nodes.get(name, "") for name in names}

    def _clear(self) -> None:
        self._client.delete_all("Pod")
        self._client.delete_all("Event")


def _spreads(runs: Sequence[Run]) -> dict[str, Any]:
    """Each figure over all repeats."""
    figures = [asdict(run) for run in runs]
    return {name: asdict(Spread.of([each[name] for each in figures])) for name in figures[0]}


def _wait_until_idle(component: Component, *, at_least_s: float) -> None:
    """Return once it has had nothing to do for so long."""
    if not wait_until_idle(component, at_least_s=at_least_s, most_s=_PATIENCE_S):
        raise WrongAnswer(f"{component.name} does not come to rest")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
