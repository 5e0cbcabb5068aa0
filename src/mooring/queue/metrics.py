"""The metrics of the queue; by default they go nowhere."""

from __future__ import annotations

#: Why a pod moved, if not because of a cluster event; labels of `queue_incoming_pods_total`.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"

#: The names of queues in metrics.
ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"

#: The label of pods in flight in `inflight_events`.
POD_POPPED = "PodPopped"

#: The labels of answers in the durations of queueing hints.
HINT_QUEUE = "Queue"
HINT_SKIP = "QueueSkip"
HINT_ERROR = "Error"


class QueueMetrics:
    """Every method may be overridden. The base measures nothing and keeps nothing."""

    def timer(self) -> float:
        """Seconds on a monotonic clock, to measure durations."""
        return 0.0

    def queue_incoming_pods(self, queue: str, event: str) -> None:
        """A pod came into a queue, because of this event."""

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        """The number of pods that wait because this plugin rejected them changed."""

    def inflight_events(self, event: str, change: int) -> None:
        """The number of events kept for pods in flight changed."""

    def queueing_hint_duration(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A queueing hint was asked: `Queue`, `QueueSkip` or `Error`."""

    def pre_enqueue_duration(self, profile: str, seconds: float) -> None:
        """All PreEnqueue plugins were asked, up to the first that refused."""

    def samples_plugins(self) -> bool:
        """Whether to time each PreEnqueue plugin for the current pod."""
        return False

    def pre_enqueue_plugin_duration(self, plugin: str, status: str, seconds: float) -> None:
        """One PreEnqueue plugin was asked about a sampled pod."""
