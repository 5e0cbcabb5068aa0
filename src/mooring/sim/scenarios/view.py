"""A simulated cluster for expectations: its pods, their nodes, and why some are pending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mooring.objects.admission import Refused
from mooring.objects.kinds import KINDS
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import Selector
from mooring.scheduler.journal import Preempted
from mooring.sim.build_report import pending_of
from mooring.sim.report import Pending
from mooring.sim.scenarios.references import Reference
from mooring.sim.scenarios.workloads import pods_under
from mooring.sim.simulation import Simulation

_CONTROLLERS = {kind.name: kind.struct for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Subject:
    """The pods of an expectation: all pods that match every given field."""

    selector: Selector | None = None
    namespace: str = ""
    owner: Reference | None = None
    #: `namespace/name` of a single pod.
    pod: str = ""


@dataclass(frozen=True, slots=True)
class PodLine:
    """A pod in a difference: its node, or why it is pending."""

    pod: str
    node: str = ""
    #: For a pending pod, the scheduler's message.
    why: str = ""

    def __str__(self) -> str:
        if self.node:
            return f"{self.pod} on {self.node}" + (f", {self.why}" if self.why else "")
        return f"{self.pod} {self.why}" if self.why else self.pod


class View:
    """The cluster at one moment; create a new one after time has passed."""

    def __init__(self, simulation: Simulation, refused: Sequence[Refused] = ()) -> None:
        self.simulation = simulation
        self._refused = refused

    @cached_property
    def pods(self) -> list[Pod]:
        """The pods that are not terminating, by name."""
        there = (pod for pod in self.simulation.api.all(Pod) if not pod.terminating)
        return sorted(there, key=lambda pod: pod.key)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.simulation.api.all(Node)}

    def subjects(self, subject: Subject) -> list[Pod]:
        """Raises InputError if the owner does not exist."""
        owned = self._owned(subject)
        return [pod for pod in self.pods if _matches(pod, subject, owned)]

    def not_created(self, subject: Subject) -> list[PodLine]:
        """Such pods that the API server refuses, and why."""
        return [
            PodLine(each.object.key, "", f"not created: {each.reason}")
            for each in self._refused
            if isinstance(each.object, Pod)
            and _matches(each.object, subject, None)
            and (subject.owner is None or self._is_under(each.object, subject.owner))
        ]

    def _is_under(self, pod: Pod, owner: Reference) -> bool:
        api = self.simulation.api
        above: KubeObject | None = pod
        while above is not None and (controller := above.metadata.controller) is not None:
            key = f"{pod.namespace}/{controller.name}"
            if (owner.kind.__name__, owner.key) == (controller.kind, key):
                return True
            kind = _CONTROLLERS.get(controller.kind)
            above = None if kind is None else api.get(kind, key)
        return False

    def evictions(self, subject: Subject) -> list[Preempted]:
        """The preemptions of such pods since the start. The owner of a preempted pod is not known."""
        preempted = self.simulation.summary.preempted
        return [each for each in preempted if _matches(each.victim, subject, None)]

    def _owned(self, subject: Subject) -> set[str] | None:
        if subject.owner is None:
            return None
        api = self.simulation.api
        return pods_under(api, subject.owner.among(api))

    def node_of(self, pod: Pod) -> Node | None:
        return self.nodes.get(pod.node_name)

    def pending(self, pod: Pod) -> Pending:
        return pending_of(self.simulation, pod)

    def waited_s(self, pod: Pod) -> float | None:
        """The time from arrival to binding; None if the pod has no node."""
        summary = self.simulation.summary
        placed = summary.placements.get(pod.uid)
        if placed is None:
            return 0.0 if pod.node_name else None
        return placed.bound.at_s - summary.of(pod.uid).arrived_s

    def line(self, pod: Pod) -> PodLine:
        if pod.finished:
            return PodLine(pod.key, pod.node_name, "finished")
        if pod.node_name:
            return PodLine(pod.key, pod.node_name)
        pending = self.pending(pod)
        plugins = f" [{', '.join(pending.plugins)}]" if pending.plugins else ""
        return PodLine(pod.key, "", f"pending ({pending.state}): {pending.message}{plugins}")


def _matches(pod: Pod, subject: Subject, owned: set[str] | None) -> bool:
    return (
        (not subject.pod or pod.key == subject.pod)
        and (not subject.namespace or pod.namespace == subject.namespace)
        and (subject.selector is None or subject.selector.matches(pod.labels))
        and (owned is None or pod.key in owned)
    )
