"""A pod in the scheduling queue, with the results of its earlier attempts."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.framework.events import ClusterEvent
from mooring.objects.pod import Pod


class History(NamedTuple):
    """What a waiting pod takes along to another queue."""

    attempts: int
    unschedulable_count: int
    initial_attempt_timestamp: float | None


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """The entry of one pod, from its first attempt to its last. Times are in seconds."""

    pod: Pod
    #: When the pod entered the queue, or came back after its last failed attempt.
    timestamp: float
    #: How often the pod was popped.
    attempts: int = 0
    #: How often plugins rejected the pod.
    unschedulable_count: int = 0
    #: How often the pod failed for other reasons since a plugin last rejected it.
    consecutive_errors_count: int = 0
    #: When the backoff ends; computed on first use. None after every failed attempt.
    backoff_expiration: float | None = None
    #: When the pod first entered the active queue.
    initial_attempt_timestamp: float | None = None
    #: The plugins that rejected the pod in its last attempt or in PreEnqueue.
    unschedulable_plugins: set[str] = field(default_factory=set)
    #: The plugins that returned Pending; their hints skip the backoff.
    pending_plugins: set[str] = field(default_factory=set)
    #: The PreEnqueue plugin that keeps the pod out of the active queue, or "".
    gating_plugin: str = ""
    #: The events after which that plugin may answer differently.
    gating_plugin_events: tuple[ClusterEvent, ...] = ()
    #: Whether a flush of leftover pods made the last move, and when that last happened.
    was_flushed: bool = False
    flush_timestamp: float | None = None
    #: Whether the pod was refused with its group, and nothing has happened since; see `backoff`.
    waits_out: bool = False
    #: The refusal that the pod was last told of. A weak reference, because a refusal holds the verdicts
    #: of all nodes, and thousands of pods may wait.
    reported: weakref.ReferenceType[BaseException] | None = None
    #: The node that the last attempt chose and gave up; "" if it chose none.
    given_up: str = ""
    #: The number of the pod's class (`objects.pod_class`); None if it has none.
    pod_class: int | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, which identifies the pod in the queue."""
        return self.pod.key

    @property
    def history(self) -> History:
        return History(self.attempts, self.unschedulable_count, self.initial_attempt_timestamp)

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejected(self) -> bool:
        """Whether plugins rejected the pod. If not, its last attempt failed for other reasons."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> set[str]:
        """Every plugin that rejected the pod, including pending ones."""
        return self.unschedulable_plugins | self.pending_plugins

    def clear_rejectors(self) -> None:
        """Forget why the last attempt failed, before recording why this one did."""
        self.unschedulable_plugins = set()
        self.pending_plugins = set()
        self.gating_plugin = ""
        self.gating_plugin_events = ()
