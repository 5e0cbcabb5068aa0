"""Why a pod group is scheduled or pending: how many members fit, which one stops it, where it was tried.

A group that waits is tried on the cluster as it is at the end of the simulation, in every placement. A group
that is scheduled is tried as if none of its pods had a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mooring.explain.explanation import CannotAnswer, check_nodes, unknown
from mooring.explain.what_if import WhatIf
from mooring.framework.status import Code, Status
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.scheduler.group_questions import GroupQuestions, TriedMember, TriedPlacement
from mooring.sim.recorder import gated_by

_KINDS = ("podgroup", "podgroups")
_GATES_OFF = (
    "pod groups are scheduled together only if the feature gates say so;"
    " add --feature-gates GenericWorkload=true,GangScheduling=true"
)


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """What preemption for the whole group would do."""

    #: `namespace/name` and priority of each victim, from most to least important.
    victims: tuple[tuple[str, int], ...]
    #: Why it does not help; "" if it does.
    message: str
    #: Whether the gate WorkloadAwarePreemption is on. Without it, each member preempts for itself.
    enabled: bool

    def to_data(self) -> dict[str, Any]:
        return {
            "helps": not self.message,
            "enabled": self.enabled,
            "victims": [{"pod": pod, "priority": priority} for pod, priority in self.victims],
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """The answer for one group."""

    #: `namespace/name`.
    group: str
    #: scheduled, schedulable (it would fit), unschedulable, gated (too few pods exist) or finished.
    state: str
    #: None if the group is no gang.
    min_count: int | None
    topology_key: str | None
    #: Pod → its node; also the pods of a finished group.
    scheduled: dict[str, str]
    #: Pods without a node, in the order in which they are tried.
    waiting: tuple[str, ...]
    #: In the order in which they are tried. None if the group cannot be tried.
    placements: tuple[TriedPlacement, ...]
    #: Why it is pending, in one line; "" if it is not.
    message: str
    preemption: GroupPreemption | None = None

    @property
    def fits(self) -> bool:
        return self.state in ("scheduled", "schedulable", "finished")

    @property
    def chosen(self) -> TriedPlacement | None:
        """The placement that a scheduler would take; None if the group fits nowhere."""
        fitting = [each for each in self.placements if each.fits]
        return max(fitting, key=lambda each: each.score or 0) if fitting else None

    @property
    def nearest(self) -> TriedPlacement | None:
        """The placement that takes most members."""
        return max(self.placements, key=lambda each: each.placed) if self.placements else None

    @property
    def stopped_by(self) -> TriedMember | None:
        """The first member that has no room in the placement that takes most; None if all have."""
        if self.nearest is None:
            return None
        return next((member for member in self.nearest.members if not member.node), None)

    @property
    def nodes(self) -> dict[str, int]:
        """Node → how many members are there."""
        return dict(Counter(self.scheduled.values()).most_common())

    def to_data(self) -> dict[str, Any]:
        stopped = self.stopped_by
        return {
            "group": self.group,
            "state": self.state,
            "fits": self.fits,
            "minCount": self.min_count,
            "topologyKey": self.topology_key,
            "scheduled": self.scheduled,
            "waiting": list(self.waiting),
            "message": self.message,
            "stoppedBy": None
            if stopped is None or self.fits
            else {"pod": stopped.pod.key, "message": stopped.message},
            "placement": self.chosen.name if self.chosen is not None else None,
            "placements": [_placement_data(each) for each in self.placements],
            "preemption": self.preemption.to_data() if self.preemption is not None else None,
        }


def _placement_data(tried: TriedPlacement) -> dict[str, Any]:
    return {
        "name": tried.name,
        "nodes": tried.nodes,
        "fits": tried.fits,
        "placed": tried.placed,
        "score": tried.score,
        "message": tried.message,
        "members": [
            {"pod": each.pod.key, "node": each.node or None, "message": each.message}
            for each in tried.members
        ],
    }


@dataclass(frozen=True, slots=True)
class GroupName:
    """What a user calls a group: `podgroup/NAME`, `podgroup/NAMESPACE/NAME`."""

    name: str
    namespace: str | None

    def find(self, groups: Sequence[PodGroup]) -> PodGroup:
        """Raises CannotAnswer with similar names."""
        found = [
            group
            for group in groups
            if group.name == self.name and self.namespace in (None, group.namespace)
        ]
        if not found:
            text = f"{self.namespace}/{self.name}" if self.namespace else self.name
            raise CannotAnswer(unknown("pod group", text, [group.key for group in groups]))
        if len(found) > 1:
            keys = ", ".join(sorted(f"podgroup/{group.key}" for group in found))
            raise CannotAnswer(
                f"{len(found)} pod groups are called {self.name!r}; name one of {keys}"
            )
        return found[0]


def group_name(
    objects: Sequence[KubeObject], text: str, *, namespace: str | None = None
) -> GroupName | None:
    """What `text` names, if it is a pod group. Raises CannotAnswer if there are no nodes."""
    kind, _, rest = text.partition("/")
    if kind.lower().partition(".")[0] not in _KINDS or not rest:
        return None
    if any(isinstance(obj, Pod) and obj.key == text for obj in objects):
        # A pod in a namespace of this name.
        return None
    check_nodes(objects)
    within, _, name = rest.rpartition("/")
    return GroupName(name, within or namespace)


class GroupTrial:
    """A group that can be tried as often as one likes."""

    def __init__(self, what_if: WhatIf, wanted: GroupName) -> None:
        """Raises CannotAnswer."""
        questions = what_if.scheduler.group_questions
        if questions is None:
            raise CannotAnswer(_GATES_OFF)
        self.what_if = what_if
        self.questions: GroupQuestions = questions
        self.group = wanted.find(list(what_if.cluster.listers.all(PodGroup)))
        self.pods = self._known(questions.waiting(self.group.key))

    def explain(self) -> GroupExplanation:
        group, questions = self.group, self.questions
        scheduled = {pod.key: pod.node_name for pod in questions.scheduled(group.key)}
        if not self.pods and not scheduled:
            ended = self._ended()
            if ended:
                return self._explanation("finished", ended, (), "")
            raise CannotAnswer(f"pod group {group.key} has no pods")
        if not self.pods:
            with self._as_if_waiting() as pods:
                tried = self._tried(pods)
            return self._explanation("scheduled", scheduled, tried, "")
        complete = group.min_count is not None and len(scheduled) >= group.min_count
        gate = None if complete else self._gate()
        tried = self._tried(self.pods)
        if gate is not None:
            return self._explanation("gated", scheduled, tried, gate)
        if complete:
            return self._explanation("scheduled", scheduled, tried, "")
        if isinstance(tried, list) and any(each.fits for each in tried):
            return self._explanation("schedulable", scheduled, tried, "")
        return self._explanation("unschedulable", scheduled, tried, self._why(tried))

    def _explanation(
        self,
        state: str,
        scheduled: dict[str, str],
        tried: Sequence[TriedPlacement] | Status,
        message: str,
    ) -> GroupExplanation:
        if isinstance(tried, Status):
            if tried.code == Code.ERROR:
                raise CannotAnswer(f"pod group {self.group.key} cannot be tried: {tried.message}")
            tried = ()
        return GroupExplanation(
            self.group.key,
            state,
            self.group.min_count,
            self.group.topology_key,
            scheduled,
            tuple(pod.key for pod in self.pods),
            tuple(tried),
            message,
            self._preemption() if state == "unschedulable" else None,
        )

    def _known(self, pods: Sequence[Pod]) -> list[Pod]:
        """The pods that a profile schedules."""
        return [pod for pod in pods if pod.scheduler_name in self.what_if.scheduler.frameworks]

    def _gate(self) -> str | None:
        """What keeps the first member that is kept from being tried."""
        for pod in self.pods:
            gate = self.what_if.scheduler.gate(pod)
            if gate is not None:
                return gated_by(pod, gate.plugin) if not gate.message else gate.message
        return None

    def _tried(self, pods: Sequence[Pod]) -> list[TriedPlacement] | Status:
        return self.questions.try_placements(pods) if pods else []

    def _ended(self) -> dict[str, str]:
        placements = self.what_if.simulation.summary.placements.values()
        return {
            each.bound.pod: each.bound.node
            for each in placements
            if each.bound.assumed.group_key == self.group.key
        }

    @contextmanager
    def _as_if_waiting(self) -> Iterator[list[Pod]]:
        """A trial with the bound members as pods that wait."""
        cluster, groups = self.what_if.cluster, self.what_if.cluster.pod_groups
        assert groups is not None
        bound = list(groups.get(self.group.key).assigned.values())
        with self.what_if.scheduler.trial():
            for pod in bound:
                cluster.remove_pod(pod)
            unplaced = [pod.placed_on("") for pod in bound]
            for pod in unplaced:
                groups.put(pod)
            yield self._known(unplaced)

    def _preemption(self) -> GroupPreemption | None:
        """None if the profile does not preempt."""
        gates = self.what_if.scheduler.config.gates
        enabled = gates.enabled("WorkloadAwarePreemption")
        if self.group.topology_key is not None:
            text = (
                "preemption evicts no pods for a group whose pods must share one value of a label"
            )
            return GroupPreemption((), text, enabled)
        try:
            victims = self.questions.victims(self.group, self.pods)
        except LookupError:
            return None
        if isinstance(victims, Status):
            return GroupPreemption((), victims.message, enabled)
        return GroupPreemption(tuple((pod.key, pod.priority) for pod in victims), "", enabled)

    def _why(self, tried: list[TriedPlacement] | Status) -> str:
        """What the group's condition says; before it was tried, what it is told in the first placement."""
        condition = self.group.condition(POD_GROUP_SCHEDULED)
        if condition is not None and condition.status == "False":
            return condition.message
        return tried.message if isinstance(tried, Status) else tried[0].message
