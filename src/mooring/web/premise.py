"""What a run starts from: a cluster or a trace, a configuration, and how to go about it.

It is plain data, so it can be handed from one process to another, and run again to the same end.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from mooring.explain.past_decision import OnDecision, RunInput
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.scheduler.journal import EVERYTHING, FactKind
from mooring.sim.simulation import Simulation
from mooring.sim.traces.replay import Replay
from mooring.sim.traces.trace import Trace, TracePod


@dataclass(frozen=True, slots=True)
class Premise(RunInput):
    """Everything that decides what comes of a run."""

    #: The cluster; of a trace, its nodes and all of its pods.
    objects: tuple[KubeObject, ...]
    keeps: AbstractSet[FactKind] = EVERYTHING
    #: By key of a pod: when it comes and goes; None if there is no trace, and all are there at once.
    times: dict[str, TracePod] | None = None

    @classmethod
    def of_trace(cls, trace: Trace) -> Premise:
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
        """Pods that a what-if brought have no times: they are there from the start, for good."""
        arrivals = [
            replace(times[pod.key], pod=pod) if pod.key in times else TracePod(pod, 0.0)
            for pod in self.pods
        ]
        return Trace("", self.nodes, sorted(arrivals, key=lambda each: each.arrives_s))


def put_down(premise: Premise) -> Path:
    """A folder of its own with the premise as its first, for whoever asked to remove."""
    folder = Path(tempfile.mkdtemp(prefix="mooring-ui-"))
    write_premise(premise, premise_path(folder, 1))
    return folder


def premise_path(folder: Path, number: int) -> Path:
    return folder / f"{number}.premise"


def write_premise(premise: Premise, path: Path) -> None:
    path.write_bytes(pickle.dumps(premise, pickle.HIGHEST_PROTOCOL))


def read_premise(path: Path) -> Premise:
    """Only of files that `write_premise` made."""
    premise = pickle.loads(path.read_bytes())
    assert isinstance(premise, Premise)
    return premise
