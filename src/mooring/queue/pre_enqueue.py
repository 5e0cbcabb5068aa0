"""PreEnqueue: the plugins that may keep a pod out of the active queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mooring.faults import PLUGIN_FAULTS
from mooring.framework.events import ClusterEvent
from mooring.framework.status import SUCCESS, Code, Status, checked_type, failure
from mooring.objects.pod import Pod
from mooring.queue.metrics import QueueMetrics
from mooring.queue.queued_pod import QueuedPodInfo

PreEnqueue = Callable[[Pod], Status | None]

#: Scheduler name → (plugin, its `pre_enqueue`), in the order of the calls.
PreEnqueueByProfile = Mapping[str, Sequence[tuple[str, PreEnqueue]]]


class PreEnqueuePlugins:
    """The PreEnqueue plugins of all profiles, and which of them gates a pod."""

    def __init__(
        self,
        pre_enqueue: PreEnqueueByProfile,
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        metrics: QueueMetrics,
        report: Callable[[str], None],
        gates_first: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`gates_first`: by scheduler name, the plugins that `still_refuses` may ask."""
        self._pre_enqueue = pre_enqueue
        #: Scheduler name → plugin → its `pre_enqueue`.
        self._gates_first = {
            profile: {
                plugin: ask for plugin, ask in pre_enqueue.get(profile, ()) if plugin in plugins
            }
            for profile, plugins in (gates_first or {}).items()
        }
        #: The events that a plugin registered.
        self._events_of = events_of
        self._metrics = metrics
        self._report = report

    def run(self, queued: QueuedPodInfo) -> None:
        """Ask whether the pod may be tried; `queued.gated` holds the answer.

        The plugin that refused last time is asked first, because it most likely still refuses.
        """
        started = self._metrics.timer()
        refusal = self.ask(queued.pod, first=queued.gating_plugin)
        if refusal is not None:
            self._gate(queued, refusal.plugin)
        else:
            queued.gating_plugin = ""
            queued.gating_plugin_events = ()
        duration_s = self._metrics.timer() - started
        self._metrics.pre_enqueue_duration(queued.pod.scheduler_name, duration_s)

    def ask(self, pod: Pod, *, first: str = "") -> Status | None:
        """What the plugin says that keeps the pod from being tried; None if none does."""
        sampled = self._metrics.samples_plugins()
        plugins = self._pre_enqueue.get(pod.scheduler_name, ())
        if first:
            plugins = sorted(plugins, key=lambda entry: entry[0] != first)
        for plugin, pre_enqueue in plugins:
            if not sampled:
                status = self._ask(plugin, pre_enqueue, pod)
            else:
                started = self._metrics.timer()
                status = self._ask(plugin, pre_enqueue, pod)
                duration_s = self._metrics.timer() - started
                self._metrics.pre_enqueue_plugin_duration(plugin, status.code.title, duration_s)
            if status is not SUCCESS and not status.ok:
                return status.by(plugin)
        return None

    def _ask(self, plugin: str, pre_enqueue: PreEnqueue, pod: Pod) -> Status:
        try:
            status = checked_type(pre_enqueue(pod))
        except PLUGIN_FAULTS as error:
            status = failure(error)
        if status is not SUCCESS and status.code == Code.ERROR:
            reason = status.message if status.error is None else repr(status.error)
            self._report(
                f"PreEnqueue plugin {plugin} failed on pod {pod.key}, which is held back: {reason}"
            )
        return status

    def still_refuses(self, queued: QueuedPodInfo) -> bool:
        """Whether the plugin that gates a gated pod says at once that it refuses it again."""
        plugin, pod = queued.gating_plugin, queued.pod
        pre_enqueue = self._gates_first.get(pod.scheduler_name, {}).get(plugin)
        return pre_enqueue is not None and not self._ask(plugin, pre_enqueue, pod).ok

    def events_of_gate(self, queued: QueuedPodInfo) -> tuple[ClusterEvent, ...]:
        """The events after which the gate of a gated pod may open."""
        return self._events_of(queued.gating_plugin) if queued.gated else ()

    def _gate(self, queued: QueuedPodInfo, plugin: str) -> None:
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._metrics.unschedulable_pods(plugin, queued.pod.scheduler_name, 1)
        queued.unschedulable_plugins.add(plugin)
        queued.gating_plugin = plugin
        queued.gating_plugin_events = self._events_of(plugin)
