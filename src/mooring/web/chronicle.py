"""Where every pod is at every moment of a run, as changes: so that a browser can go back and forth.

A pod's *place* is the index of its node, `WAITING` while it has none, or `ABSENT` before it comes and after
it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.simulation import Simulation
from mooring.web.premise import Premise

WAITING, ABSENT = -1, -2


@dataclass(slots=True)
class Chronicle:
    """A Watcher of a simulation's API."""

    simulation: Simulation
    node_index: dict[str, int]
    #: By key; every pod that the premise has.
    pod_index: dict[str, int]
    #: By pod index: before the first change, and as things stand.
    start: list[int]
    places: list[int]
    #: The changes in their order: when, which pod, its place from then on.
    at_s: list[float] = field(default_factory=list)
    pods: list[int] = field(default_factory=list)
    moved_to: list[int] = field(default_factory=list)
    #: How long the simulation's timeline was at each change.
    told: list[int] = field(default_factory=list)
    #: Pod index → finished or deleted, of pods that are over.
    ended: dict[int, str] = field(default_factory=dict)

    @classmethod
    def follow(cls, simulation: Simulation, premise: Premise) -> Chronicle:
        """From before the simulation runs."""
        nodes = {node.name: i for i, node in enumerate(premise.nodes)}
        pods = premise.pods
        if premise.times is not None:
            start = [ABSENT] * len(pods)
        else:
            start = [_place(pod, nodes) for pod in pods]
        chronicle = cls(
            simulation, nodes, {pod.key: i for i, pod in enumerate(pods)}, start, list(start)
        )
        simulation.api.watch(chronicle)
        return chronicle

    def added(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._move(obj, _place(obj, self.node_index))

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(new, Pod):
            self._move(new, _place(new, self.node_index))
            if new.finished:
                self.ended.setdefault(self.pod_index[new.key], "finished")

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._move(obj, ABSENT)
            self.ended.setdefault(self.pod_index[obj.key], "deleted")

    def _move(self, pod: Pod, place: int) -> None:
        index = self.pod_index[pod.key]
        if self.places[index] == place:
            return
        self.places[index] = place
        self.at_s.append(self.simulation.clock.elapsed_s)
        self.pods.append(index)
        self.moved_to.append(place)
        self.told.append(len(self.simulation.story.timeline))


def _place(pod: Pod, nodes: dict[str, int]) -> int:
    if pod.finished:
        return ABSENT
    # A pod on its way out may outlive its node.
    return nodes.get(pod.node_name, ABSENT) if pod.node_name else WAITING
