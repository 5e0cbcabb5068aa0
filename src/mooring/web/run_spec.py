"""The input of a run: a cluster or a trace, a configuration, a seed and an end.

It is plain data: processes pass it on, and every run of it has the same result.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mooring.explain.past_decision import OnDecision, RunInput
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.scheduler.journal import EVERYTHING, FactKind
from mooring.sim.simulation import Simulation
from mooring.sim.traces.replay import Replay
from mooring.sim.traces.trace import Trace, TracePod
from mooring.web.origin import Origin
from mooring.web.requested_changes import RequestedChanges


@dataclass(frozen=True, slots=True)
class RunSpec(RunInput):
    """Everything that determines a run."""

    #: The cluster; for a trace, its nodes and all of its pods.
    objects: tuple[KubeObject, ...]
    keeps: AbstractSet[FactKind] = EVERYTHING
    #: Pod key → its times in the trace; None without a trace.
    times: dict[str, TracePod] | None = None
    #: The changes that led here from the input of the command, in order.
    applied: tuple[RequestedChanges, ...] = ()

    @classmethod
    def of_trace(cls, trace: Trace) -> RunSpec:
        return cls(tuple(trace.objects()), times={each.pod.key: each for each in trace.pods})

    @property
    def pods(self) -> list[Pod]:
        return [obj for obj in self.objects if isinstance(obj, Pod)]

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.objects if isinstance(obj, Node)]

    def simulation(self, on_decision: OnDecision) -> Simulation:
        if self.times is None:
            return RunInput.simulation(self, on_decision)
        return Replay(self._trace(self.times), self.options(on_decision))

    def _trace(self, times: dict[str, TracePod]) -> Trace:
        """Pods that a what-if added have no times: they arrive at the start and never end."""
        arrivals = [
            replace(times[pod.key], pod=pod) if pod.key in times else TracePod(pod, 0.0)
            for pod in self.pods
        ]
        return Trace("", self.nodes, sorted(arrivals, key=lambda each: each.arrives_s))


class PageSource(Protocol):
    """Where the first run of a page comes from; it can be sent to a worker process, which reads it."""

    def origin(self) -> Origin:
        """What is known before it is read."""

    def read(
        self, on_progress: Callable[[int, int], None] | None = None, /
    ) -> tuple[Origin, RunSpec]:
        """`on_progress` gets the bytes read, and how many there are. Raises MooringError."""


def run_spec_path(folder: Path, number: int) -> Path:
    return folder / f"{number}.run"


def write_run_spec(run_spec: RunSpec, path: Path) -> None:
    path.write_bytes(pickle.dumps(run_spec, pickle.HIGHEST_PROTOCOL))


def read_run_spec(path: Path) -> RunSpec:
    """Read a file of `write_run_spec`; others are not safe to unpickle."""
    run_spec = pickle.loads(path.read_bytes())
    assert isinstance(run_spec, RunSpec)
    return run_spec
