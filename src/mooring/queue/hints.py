"""Whether an event is a reason to try a rejected pod again.

Plugins register the events that may help the pods they rejected. For each such event and pod, the
queueing hint of the plugin decides. Only the plugins that rejected a pod are asked about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from mooring.faults import PLUGIN_FAULTS
from mooring.framework.events import ClusterEvent, Hint, HintFunction
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue.in_flight import RecordedEvent
from mooring.queue.metrics import HINT_ERROR, HINT_QUEUE, HINT_SKIP, QueueMetrics
from mooring.queue.queued_pod import QueuedPodInfo

#: Scheduler name → (event, plugin, hint) for every event that a plugin of that profile registered.
#: Without a hint function, the event is always a reason.
HintsByProfile = Mapping[str, Sequence[tuple[ClusterEvent, str, HintFunction | None]]]

_Hints = tuple[tuple[str, HintFunction | None], ...]


class Strategy(Enum):
    """What to do with a pod after an event."""

    #: Leave it where it is.
    SKIP = "Skip"
    #: Try it again when its backoff is over.
    AFTER_BACKOFF = "AfterBackoff"
    #: Try it again at once.
    IMMEDIATELY = "Immediately"


class QueueingHints:
    """The hints of all profiles, by event."""

    def __init__(
        self, hints: HintsByProfile, metrics: QueueMetrics, report: Callable[[str], None]
    ) -> None:
        self._hints = hints
        self._metrics = metrics
        self._report = report
        #: Event → profile → the hints to ask; filled when an event first occurs.
        self._by_event: dict[ClusterEvent, dict[str, _Hints]] = {}
        #: Event → whether a plugin of any profile registered it; filled likewise.
        self._of_interest: dict[ClusterEvent, bool] = {}
        #: Plugin → every event that it registered, in any profile.
        self._events_of: dict[str, tuple[ClusterEvent, ...]] = {}
        for registered in hints.values():
            for event, plugin, _ in registered:
                self._events_of[plugin] = (*self._events_of.get(plugin, ()), event)

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        return self._events_of.get(plugin, ())

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether a plugin of any profile registered the event."""
        known = self._of_interest.get(event)
        if known is None:
            known = event.wildcard or any(self._matching(event).values())
            self._of_interest[event] = known
        return known

    def may_help(self, event: ClusterEvent, *, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether the event may help pods of this profile that these plugins rejected."""
        if event.wildcard or not rejectors or profile not in self._hints:
            return True
        return any(plugin in rejectors for plugin, _ in self._matching(event)[profile])

    def is_pod_worth_requeuing(
        self,
        queued: QueuedPodInfo,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> Strategy:
        if not queued.rejected:
            return Strategy.AFTER_BACKOFF
        if event.wildcard:
            return Strategy.AFTER_BACKOFF if _is_meant(queued, new) else Strategy.SKIP
        hints = self._matching(event).get(queued.pod.scheduler_name)
        if hints is None:
            self._report(
                f"no queueing hints are registered for profile {queued.pod.scheduler_name},"
                f" which pod {queued.key} asks for"
            )
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for plugin, hint in hints:
            pending = plugin in queued.pending_plugins
            if not pending and plugin not in queued.unschedulable_plugins:
                continue
            if self._ask(plugin, hint, queued.pod, RecordedEvent(event, old, new)) == Hint.SKIP:
                continue
            if pending:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
            if not queued.pending_plugins:
                break
        return strategy

    def strategy_after(self, queued: QueuedPodInfo, events: Sequence[RecordedEvent]) -> Strategy:
        """The best strategy among those for these events, for a pod that comes back rejected."""
        strategy = Strategy.SKIP
        for happened in events:
            answer = self.is_pod_worth_requeuing(queued, happened.event, happened.old, happened.new)
            if answer == Strategy.IMMEDIATELY:
                return answer
            if answer == Strategy.AFTER_BACKOFF:
                strategy = answer
                if not queued.pending_plugins:
                    break
        return strategy

    def _matching(self, event: ClusterEvent) -> dict[str, _Hints]:
        matching = self._by_event.get(event)
        if matching is None:
            matching = self._by_event[event] = {
                profile: tuple((p, hint) for e, p, hint in registered if e.covers(event))
                for profile, registered in self._hints.items()
            }
        return matching

    def _ask(
        self, plugin: str, hint: HintFunction | None, pod: Pod, happened: RecordedEvent
    ) -> Hint:
        started = self._metrics.timer()
        answer, label = Hint.QUEUE, HINT_QUEUE
        try:
            if hint is not None and hint(pod, happened.old, happened.new) == Hint.SKIP:
                answer, label = Hint.SKIP, HINT_SKIP
        except PLUGIN_FAULTS as error:
            # A needless attempt costs little; a pod that is never tried again costs far more.
            label = HINT_ERROR
            self._report(
                f"the queueing hint of plugin {plugin} failed on {happened.event.label}"
                f" for pod {pod.key}, which is tried again: {error!r}"
            )
        self._metrics.queueing_hint_duration(
            plugin, happened.event.label, label, self._metrics.timer() - started
        )
        return answer


def _is_meant(queued: QueuedPodInfo, target: KubeObject | None) -> bool:
    """Whether a wildcard event is for this pod: it names this pod, or none."""
    return target is None or (isinstance(target, Pod) and target.uid == queued.uid)
