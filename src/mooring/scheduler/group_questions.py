"""What would become of a pod group: questions, which change nothing.

Every placement is tried, not only those that can be the best, and what each member is told there is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mooring.cluster.pod_groups import PodGroupStates
from mooring.framework.interface import GroupPreemptionPlugin
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.decision import Decision
from mooring.scheduler.group_algorithm import GroupAlgorithm
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_group import GroupResult, QueuedGroup, error_text
from mooring.scheduler.scheduling_cycle import SchedulingCycle

#: The plugin that preempts for a whole group.
PREEMPTION = "DefaultPreemption"


@dataclass(frozen=True, slots=True)
class TriedMember:
    """What became of one pod, after those before it were placed."""

    pod: Pod
    #: "" if no node takes it.
    node: str
    #: Why no node takes it; "" if one does.
    message: str = ""
    #: The number of nodes that would take it.
    feasible: int = 0


@dataclass(frozen=True, slots=True)
class TriedPlacement:
    """The group in one placement."""

    #: The value of the topology key; "" if the group may go anywhere.
    name: str
    #: The number of nodes.
    nodes: int
    fits: bool
    #: In the order in which they were tried; shorter if the group failed before all were.
    members: tuple[TriedMember, ...]
    #: What the group is told if it does not fit there.
    message: str
    #: The sum of all PlacementScore plugins; None if the group does not fit, or nothing is compared.
    score: int | None = None

    @property
    def placed(self) -> int:
        return sum(bool(member.node) for member in self.members)


class GroupQuestions:
    def __init__(self, parts: Parts, scheduling_cycle: SchedulingCycle) -> None:
        assert parts.cluster.pod_groups is not None, "the gate GenericWorkload is off"
        self._parts = parts
        self._groups: PodGroupStates = parts.cluster.pod_groups
        self._algorithm = GroupAlgorithm(parts, scheduling_cycle)

    def waiting(self, key: str) -> list[Pod]:
        """The members of a group that have no node, in the order in which they are tried."""
        if key not in self._groups:
            return []
        return [each.pod for each in self._queued(tuple(self._groups.get(key).waiting.values()))]

    def scheduled(self, key: str) -> list[Pod]:
        """The members of a group that have a node, also those that are not bound yet."""
        return list(self._groups.get(key).scheduled()) if key in self._groups else []

    def try_placements(
        self, pods: Sequence[Pod], *, only: str | None = None
    ) -> list[TriedPlacement] | Status:
        """Try these pods of one group everywhere, or only in one placement; a status if there is none.

        No pod is evicted. The scheduler takes the first placement with the highest score.
        """
        messages: dict[tuple[str, str], tuple[str, int]] = {}

        def note(attempt: Attempt, decision: Decision) -> None:
            why = "" if decision.node_name is not None else decision.diagnosis.fit_error
            messages[attempt.queued.uid, within[0]] = (why, decision.feasible_count)

        within = [""]
        with self._taken(pods) as group:
            tried = self._algorithm.try_all(group, note, within, only=only)
        if isinstance(tried, Status):
            return tried
        return [
            TriedPlacement(
                placement.name,
                len(self._parts.cluster.snapshot())
                if placement.nodes is None
                else len(placement.nodes),
                result.status.ok,
                tuple(_members(result, placement.name, messages)),
                "" if result.status.ok else result.status.message,
                score,
            )
            for placement, result, score in tried
        ]

    def victims(self, group: PodGroup, pods: Sequence[Pod]) -> list[Pod] | Status:
        """The pods that preemption for the whole group would evict; a status if that does not help.

        Raises LookupError if the profile has no plugin for it.
        """
        with self._taken(pods) as queued:
            call = queued.framework.plugins.get(PREEMPTION)
            if call is None or not isinstance(call.plugin, GroupPreemptionPlugin):
                raise LookupError(PREEMPTION)
            return call.plugin.victims_for_group(
                group, pods, lambda: self._algorithm.run(queued, post_filters=False).status
            )

    @contextmanager
    def _taken(self, pods: Sequence[Pod]) -> Iterator[QueuedGroup]:
        """A trial with the pods as if their group had been popped."""
        framework = self._parts.frameworks[pods[0].scheduler_name]
        search = self._parts.searches[framework.profile_name].copy().without_refusals()
        with self._parts.trial():
            self._groups.begin(pods)
            yield QueuedGroup(framework, search, self._queued(pods))

    def _queued(self, pods: Sequence[Pod]) -> list[QueuedPodInfo]:
        infos = []
        for pod in pods:
            known = self._parts.queue.get(pod.key)
            info = QueuedPodInfo(pod, known.timestamp if known is not None else 0.0)
            if known is not None:
                info.initial_attempt_timestamp = known.initial_attempt_timestamp
            infos.append(info)
        return sorted(infos, key=QueuedGroup.order)


def _members(
    result: GroupResult, placement: str, messages: dict[tuple[str, str], tuple[str, int]]
) -> Iterator[TriedMember]:
    for member in result.members:
        queued = member.attempt.queued
        why, feasible = messages.get((queued.uid, placement), ("", 0))
        if not member.placed and not why:
            why = error_text(member.status)
        node = member.node_name if member.placed else ""
        yield TriedMember(queued.pod, node, "" if node else why, feasible)
