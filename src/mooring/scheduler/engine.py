"""The engine: one pod after another, from the queue to its node.

    added, updated, deleted ──▶ EventHandlers ──▶ queue, cluster
                                                     │
    schedule_one ──▶ pop ──▶ SchedulingCycle ──▶ BindingCycle ──▶ bound
                                   └───── Failures ─────┘──▶ back to the queue

It never opens a socket, never reads a clock and never sleeps: a driver (`sim`, `live`) tells it what happens
in the cluster, calls `schedule_one` while there is work, and carries out its writes.
"""

from __future__ import annotations

import logging

from mooring.cluster.listers import LISTED
from mooring.config.types import KubeSchedulerConfiguration
from mooring.framework.events import ASSIGNED_POD_DELETE
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.binding_cycle import BindingCycle
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.event_handlers import EventHandlers
from mooring.scheduler.failure import Failures
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_status import PodStatusWriter
from mooring.scheduler.scheduling_cycle import SchedulingCycle
from mooring.scheduler.shared_conditions import SharedConditions

_LOG = logging.getLogger("mooring.scheduler")


class Engine:
    """All profiles over one queue and one cluster."""

    def __init__(self, config: KubeSchedulerConfiguration, deps: Dependencies) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        parts = self.parts = Parts(config, deps)
        self.config = parts.config
        self.cluster = parts.cluster
        self.queue = parts.queue
        #: By scheduler name.
        self.frameworks = parts.frameworks
        self.waiting_pods = parts.waiting_pods
        self.binding = parts.binding
        # For tests and conformance.
        self.searches = parts.searches
        self.nominator = parts.nominator
        self.observed_pods = parts.observed_pods
        pod_status = PodStatusWriter(deps.writer, deps.spawn_patch or deps.spawn)
        self.shared_conditions = SharedConditions(
            parts.queue, deps.clock, pod_status, deps.repeat_conditions_after_s
        )
        self.failures = Failures(parts, pod_status, self.shared_conditions)
        binding_cycle = BindingCycle(parts, pod_status, self.failures)
        self._scheduling_cycle = SchedulingCycle(parts, binding_cycle, self.failures)
        self._handlers = EventHandlers(parts)

    # What happens in the cluster

    def added(self, obj: KubeObject) -> None:
        self._handlers.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._handlers.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        self._handlers.deleted(obj)

    def take_over(self, other: Engine) -> None:
        """Go on with everything that another engine knows: objects, assumptions, waiting pods.

        The bindings that the other one has under way end there. If one fails, this engine tries the pod.
        """
        known = other.cluster
        for kind in LISTED:
            for obj in known.listers.all(kind):
                self.cluster.listers.put(obj)
        for info in known.infos.values():
            if info.node is not None:
                self.cluster.add_node(info.node)
        self.observed_pods.update(other.observed_pods)
        for pod in other.observed_pods.values():
            if pod.node_name:
                self.cluster.add_pod(pod)
        for pod in known.assumed_pods():
            self.cluster.assume_pod(pod)
        for pod in other.observed_pods.values():
            if not pod.node_name and not self.cluster.is_assumed(pod):
                self._queue_with_history(pod, other.queue.get(pod.key))
        other.parts.hand_over = self._take_back

    def _queue_with_history(self, pod: Pod, before: QueuedPodInfo | None) -> None:
        if pod.scheduler_name not in self.frameworks:
            return
        self.queue.add(pod)
        queued = self.queue.get(pod.key)
        if before is not None and queued is not None:
            queued.attempts = before.attempts
            queued.unschedulable_count = before.unschedulable_count
            queued.initial_attempt_timestamp = before.initial_attempt_timestamp

    def _take_back(self, pod: Pod) -> None:
        """A binding that an earlier engine began has failed: the pod is for this engine to place."""
        if pod.uid in self.binding or not self.cluster.is_assumed(pod):
            return
        self.cluster.forget_pod(pod)
        self.queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        if self.parts.hand_over is not None:
            self.parts.hand_over(pod)
            return
        known = self.observed_pods.get(pod.key)
        if known is not None and known.uid == pod.uid and not known.node_name:
            self.queue.add(known)

    # Attempts

    def schedule_one(self) -> bool:
        """Take the next pod and place it, or find out why not; whether there was one."""
        queued = self.queue.pop()
        if queued is None:
            return False
        self.try_pod(queued)
        return True

    def try_pod(self, queued: QueuedPodInfo) -> None:
        """Make an attempt at a pod that was popped."""
        self._scheduling_cycle.run(queued)

    def close(self) -> None:
        self.queue.close()
        for name, framework in self.frameworks.items():
            for problem in framework.close():
                _LOG.error("framework %s failed to close: %s", name, problem)

    def validate(self) -> None:
        """Raise InvariantError unless everything that is kept equals what a rebuild gives; for tests."""
        self.cluster.validate()
        self.queue.validate()
        snapshot = self.cluster.snapshot()
        for search in self.searches.values():
            if search.evaluations is not None and len(snapshot):
                search.evaluations.validate(snapshot)
