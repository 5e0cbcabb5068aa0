"""`mooring simulate` on 20,000 pods and no node: the processor time of the whole process, imports included.

    python -m benchmarks.no_nodes

Exits 1 if the pods of 100 Deployments take a second or more. The time of a short program of plain Python,
measured before each run, tells a slow machine from a slow mooring: the ratio moves less than the seconds.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PODS = 20_000
DEPLOYMENTS = 100
MOST_S = 1.0
_RUNS = 5

_YARDSTICK = "d = {}\nfor i in range(400_000):\n    d[str(i)] = (i, [i])\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"{PODS:,} pods, no nodes: best of {_RUNS}, processor time, and as a ratio to plain Python"
        )
        measured_s = {name: _measured(Path(folder), name, items) for name, items in CASES.items()}
    sys.exit(measured_s[BOUNDED] >= MOST_S)


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


BOUNDED = f"{DEPLOYMENTS} Deployments"
CASES: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    BOUNDED: deployments,
    "single pods": pods,
}


def _spec(app: int) -> dict[str, Any]:
    requests = {"cpu": f"{100 + app}m", "memory": "256Mi"}
    main = {"name": "main", "image": f"registry.example.com/app-{app}:1.0"}
    return {"containers": [{**main, "resources": {"requests": requests}}]}


def _measured(folder: Path, name: str, items: Callable[[], Iterator[dict[str, Any]]]) -> float:
    file = folder / f"{items.__name__}.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items())}))
    simulate = [sys.executable, "-m", "mooring", "simulate", str(file)]
    answer = subprocess.run(simulate, capture_output=True, text=True, check=False).stdout
    assert f"0 placed, {PODS:,} pending" in answer, answer
    seconds, ratios = [], []
    for _ in range(_RUNS):
        yardstick_s = _processor_s([sys.executable, "-c", _YARDSTICK])
        seconds.append(_processor_s(simulate))
        ratios.append(seconds[-1] / yardstick_s)
    print(f"{name:>16}: {min(seconds):.2f} s, ratio {min(ratios):.2f}")
    return min(seconds)


def _processor_s(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
