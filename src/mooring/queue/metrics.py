"""What the queue reports about itself; by default to nobody."""

from __future__ import annotations

#: Why a pod moved, where it was not for a cluster event; labels of `queue_incoming_pods_total`.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"

#: Names of queues, as metrics call them.
ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"

#: What the count of events in flight calls the pods in flight.
POD_POPPED = "PodPopped"

#: What the timing of queueing hints calls their answers.
HINT_QUEUE = "Queue"
HINT_SKIP = "QueueSkip"
HINT_ERROR = "Error"


class QueueMetrics:
    """Every method may be overridden. The base measures nothing and keeps nothing."""

    def timer(self) -> float:
        """Seconds of a clock that only durations are taken from."""
        return 0.0

    def queue_incoming_pods(self, queue: str, event: str) -> None:
        """A pod came into a queue, because of this event."""

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        """One pod more, or fewer, that waits because this plugin rejected it."""

    def inflight_events(self, event: str, change: int) -> None:
        """This many more, or fewer, events are kept for the pods in flight."""

    def queueing_hint_duration(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A queueing hint was asked: `Queue`, `QueueSkip` or `Error`."""

    def pre_enqueue_duration(self, profile: str, seconds: float) -> None:
        """All PreEnqueue plugins were asked, up to the first that refused."""

    def samples_plugins(self) -> bool:
        """Whether PreEnqueue plugins are to be timed one by one, for the pod they are asked of now."""
        return False

    def pre_enqueue_plugin_duration(self, plugin: str, status: str, seconds: float) -> None:
        """One PreEnqueue plugin was asked about a pod that is sampled."""
