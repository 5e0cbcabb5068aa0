"""Whether all pods still fit without some of the nodes: drained, or lost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from mooring.errors import InputError
from mooring.explain.settled import OnProgress, Settled, unbound
from mooring.objects.devices import ResourceSlice
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.well_known import ZONE
from mooring.scheduler.decision import Decision
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending
from mooring.sim.simulation import Simulation

_MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Survival:
    """Where the pods of removed nodes go."""

    nodes: tuple[str, ...]
    #: The number of pods that need another node.
    displaced: int
    #: The number of DaemonSet and static pods, which are removed with their nodes.
    gone: int
    #: Displaced pods without a controller, which nothing recreates.
    uncontrolled: tuple[str, ...]
    #: Displaced pods that fit on no other node.
    unplaced: tuple[Pending, ...]
    #: Pods that were preempted for them.
    evicted: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.unplaced and not self.evicted


def without_nodes(
    settled: Settled, names: Iterable[str], *, on_progress: OnProgress | None = None
) -> Survival:
    """Remove nodes and schedule their pods again. Raises InputError for unknown nodes.

    `on_progress` is told how many decisions were taken.
    """
    going = tuple(dict.fromkeys(names))
    _check_known(settled, going)
    kept: list[KubeObject] = []
    displaced: list[Pod] = []
    gone = 0
    for obj in settled.objects:
        if isinstance(obj, Pod) and obj.node_name in going:
            if obj.belongs_to_node or obj.finished or obj.terminating:
                gone += 1
            else:
                displaced.append(obj)
        elif not is_of_node(obj, going):
            kept.append(obj)
    tried = 0

    def count(_: Decision) -> None:
        nonlocal tried
        tried += 1
        if on_progress is not None:
            on_progress(tried)

    with Simulation(replace(settled.options, on_decision=count)) as simulation:
        simulation.load((*kept, *(unbound(pod) for pod in displaced)))
        simulation.run()
        report = build_report(simulation)
    return Survival(
        nodes=going,
        displaced=len(displaced),
        gone=gone,
        uncontrolled=tuple(pod.key for pod in displaced if pod.metadata.controller is None),
        unplaced=report.unplaced,
        evicted=tuple(victim.pod for each in report.preemptions for victim in each.victims),
    )


def nodes_of_zone(nodes: Sequence[Node], zone: str) -> list[str]:
    """The nodes of a zone, or with a `label=value`. Raises InputError if there are none."""
    key, equals, value = zone.rpartition("=")
    if not value or (equals and not key):
        raise InputError([f"{zone!r} is neither a zone nor LABEL=VALUE"])
    key = key if equals else ZONE
    found = [node.name for node in nodes if node.labels.get(key) == value]
    if found:
        return found
    known = sorted({node.labels[key] for node in nodes if key in node.labels})
    hint = f"the values are {_some(known)}" if known else f"no node has the label {key}"
    raise InputError([f"no node is in zone {value!r} ({key}); {hint}"])


def _check_known(settled: Settled, names: Iterable[str]) -> None:
    known = {node.name for node in settled.nodes}
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = f"the cluster has {_some(sorted(known))}" if known else "the cluster has no node"
        raise InputError([f"there is no node {name!r}; {hint}" for name in unknown])


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def is_of_node(obj: KubeObject, names: Container[str]) -> bool:
    """Whether the object goes with one of these nodes: the node itself, its devices, its CSINode."""
    if isinstance(obj, ResourceSlice):
        return obj.spec.node_name in names
    return (isinstance(obj, Node) or obj.kind == "CSINode") and obj.name in names
