"""A pod group in its cycle: its members, what each came to, and what the group came to."""

from __future__ import annotations

from math import inf

import msgspec

from mooring.errors import MooringError
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.placements import PodGroupInfo
from mooring.framework.status import SUCCESS, Code, Status
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.decision import Decision
from mooring.scheduler.node_search import NodeSearch


class GroupUnschedulable(MooringError):
    """A pod that would have a node, if its group had enough of them: an answer, not a failure."""

    def __init__(self) -> None:
        super().__init__("pod group is unschedulable")


UNSCHEDULABLE = Status(Code.UNSCHEDULABLE, error=GroupUnschedulable())
WAITING_ON_PREEMPTION = Status(
    Code.UNSCHEDULABLE,
    ("pod group is waiting for preemption to complete",),
    error=GroupUnschedulable(),
)


class QueuedGroup(msgspec.Struct, eq=False):
    """The members of a group that are tried together, taken from the queue."""

    framework: Framework
    #: How the group's profile looks for nodes.
    search: NodeSearch
    #: In the order in which they are tried.
    members: list[QueuedPodInfo]

    @property
    def info(self) -> PodGroupInfo:
        pods = self.pods
        group = pods[0].spec.scheduling_group
        assert group is not None
        return PodGroupInfo(pods[0].namespace, group.pod_group_name, pods)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(queued.pod for queued in self.members)

    @staticmethod
    def order(queued: QueuedPodInfo) -> tuple[int, float]:
        """Members are tried by priority, then by the time of the first attempt."""
        first_attempt = queued.initial_attempt_timestamp
        return -queued.pod.priority, -inf if first_attempt is None else first_attempt


class MemberResult(msgspec.Struct, eq=False):
    """What the search for one member came to, in the light of the members before it."""

    attempt: Attempt
    #: Success if a node takes it.
    status: Status = SUCCESS
    #: Where it would go: a node that takes it, or one where preemption makes room. "" if nowhere.
    node_name: str = ""
    #: What Permit said of it there: Success or Wait. None if it would go nowhere.
    permit: Status | None = None
    needs_preemption: bool = False
    #: If it fails: which node is held for it.
    nominating: NominatingInfo = CLEAR_NOMINATION
    #: None if the search failed.
    decision: Decision | None = None

    @property
    def placed(self) -> bool:
        return self.permit is not None


class GroupResult(msgspec.Struct, eq=False):
    """What became of a group."""

    status: Status = UNSCHEDULABLE
    #: In the order of the members; shorter if the group failed before all of them were tried.
    members: list[MemberResult] = []
    #: Whether the group fits once preemption has made room; then `status` is Unschedulable.
    waiting_on_preemption: bool = False

    @property
    def fits(self) -> bool:
        return self.status.ok or self.waiting_on_preemption


def error_text(status: Status) -> str:
    """What went wrong, without the reasons that were added to it."""
    return status.message if status.error is None else str(status.error)
