"""A pod in the scheduling queue, with what its earlier attempts came to."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.framework.events import ClusterEvent
from mooring.framework.status import Status
from mooring.objects.pod import Pod


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """One waiting pod: the same entry from its first attempt to its last. Times are seconds."""

    pod: Pod
    #: When it came into the queue: at first, and again after each failed attempt.
    timestamp: float
    #: How often it was popped.
    attempts: int = 0
    #: How often rules rejected it.
    unschedulable_count: int = 0
    #: How often it failed for other reasons since a rule last rejected it.
    consecutive_errors_count: int = 0
    #: When its backoff ends; worked out when first asked for. None after every failed attempt.
    backoff_expiration: float | None = None
    #: When it first came into the active queue.
    initial_attempt_timestamp: float | None = None
    #: The plugins that rejected it in its last attempt or on its way in.
    unschedulable_plugins: set[str] = field(default_factory=set)
    #: Those that wait for something on its way; a hint of theirs skips the backoff.
    pending_plugins: set[str] = field(default_factory=set)
    #: The PreEnqueue plugin that keeps it out of the active queue, or "".
    gating_plugin: str = ""
    #: The events that may change that plugin's mind.
    gating_plugin_events: tuple[ClusterEvent, ...] = ()
    #: Whether its last move was for having waited too long, and when that last happened.
    was_flushed: bool = False
    flush_timestamp: float | None = None
    #: What its last attempt came to, if it was told so.
    told: Status | None = None
    #: Equal for pods that are alike to every plugin; None if that cannot be told.
    pod_class: int | None = None

    @property
    def key(self) -> str:
        """`namespace/name`: what the queue knows it by."""
        return self.pod.key

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejected(self) -> bool:
        """Whether plugins rejected it; otherwise its last attempt failed for other reasons."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> set[str]:
        """Every plugin that rejected it, pending ones included."""
        return self.unschedulable_plugins | self.pending_plugins

    def clear_rejectors(self) -> None:
        """Forget why the last attempt failed, before saying why this one did."""
        self.unschedulable_plugins = set()
        self.pending_plugins = set()
        self.gating_plugin = ""
        self.gating_plugin_events = ()
