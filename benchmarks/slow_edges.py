"""The slow edges of reading and capacity: the processor time of whole commands, imports included.

    python -m benchmarks.slow_edges

Exits 1 if a bound is missed. The time of a short program of plain Python, measured before each run, tells a
slow machine from a slow mooring: the ratio moves less than the seconds.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PODS = 20_000
DEPLOYMENTS = 100

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_YARDSTICK = "d = {}\nfor i in range(400_000):\n    d[str(i)] = (i, [i])\n"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    #: What follows `mooring`; the files are in the working directory.
    arguments: str
    #: A part of the answer.
    says: str
    most_s: float
    runs: int


CASES = (
    Case("no node, 100 Deployments", "simulate apps.json", f"0 placed, {PODS:,} pending", 1, 5),
    Case("no node, single pods", "simulate pods.json", f"0 placed, {PODS:,} pending", 1, 5),
    Case("the same in YAML", "simulate pods.yaml", f"0 placed, {PODS:,} pending", 1, 5),
    Case("a list in YAML", "simulate list.yaml", f"0 placed, {PODS:,} pending", 1, 5),
    Case(
        "nodes to add",
        "capacity -f apps.json --add-node m5.4xlarge",
        f"places {PODS:,} pending pods",
        20,
        1,
    ),
    Case("room on 1,200 nodes", "capacity --nodes 1200x8cpu,32Gi --pod pod.json", "96,000", 10, 2),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        print(f"{PODS:,} pods: best processor time, the bound, and the ratio to plain Python")
        missed = [case.name for case in CASES if _measured(Path(folder), case) >= case.most_s]
    sys.exit(bool(missed))


def _write(folder: Path) -> None:
    requests = {"cpu": "100m", "memory": "128Mi"}
    one = {"name": "c", "resources": {"requests": requests}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    files = {"apps": deployments(), "pods": pods(), "pod": [pod | {"spec": {"containers": [one]}}]}
    for name, items in files.items():
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
        (folder / f"{name}.json").write_text(text)
    with (folder / "pods.yaml").open("w") as documents:
        yaml.dump_all(pods(), documents, Dumper=_DUMPER)
    with (folder / "list.yaml").open("w") as file:
        yaml.dump({"apiVersion": "v1", "kind": "List", "items": list(pods())}, file, Dumper=_DUMPER)


def deployments() -> Iterator[dict[str, Any]]:
    for i in range(DEPLOYMENTS):
        labels = {"app": f"app-{i}"}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"app-{i}", "namespace": "shop"},
            "spec": {
                "replicas": PODS // DEPLOYMENTS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": _spec(i)},
            },
        }


def pods() -> Iterator[dict[str, Any]]:
    """Pods of one app after the other, as `kubectl get pods -o json` sorts them by name."""
    for i in range(PODS):
        app = i * DEPLOYMENTS // PODS
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p-{i}", "namespace": "shop", "labels": {"app": f"app-{app}"}},
            "spec": _spec(app),
        }


def _spec(app: int) -> dict[str, Any]:
    requests = {"cpu": f"{100 + app}m", "memory": "256Mi"}
    main = {"name": "main", "image": f"registry.example.com/app-{app}:1.0"}
    return {"containers": [{**main, "resources": {"requests": requests}}]}


def _measured(folder: Path, case: Case) -> float:
    command = [sys.executable, "-m", "mooring", *case.arguments.split()]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    assert case.says in answer, answer
    seconds, ratios = [], []
    for _ in range(case.runs):
        yardstick_s = _processor_s([sys.executable, "-c", _YARDSTICK], folder)
        seconds.append(_processor_s(command, folder))
        ratios.append(seconds[-1] / yardstick_s)
    print(f"{case.name:>25}: {min(seconds):5.2f} s of {case.most_s:2}, ratio {min(ratios):.2f}")
    return min(seconds)


def _processor_s(command: Sequence[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
