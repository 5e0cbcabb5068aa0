"""The scheduler of a real cluster: tells what dashboards show, and survives what should not happen."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import InvariantError
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.runtime import Framework
from mooring.framework.status import Status, failure
from mooring.live.metrics import LiveMetrics
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.binding_cycle import ASSIGNED_POD_DELETE, Attempt
from mooring.scheduler.scheduler import Scheduler, Surroundings


class LiveScheduler(Scheduler):
    """The scheduler, telling what dashboards show, and surviving what should not happen."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        around: Surroundings,
        metrics: LiveMetrics,
        on_fatal: Callable[[str], None],
    ) -> None:
        self._live_metrics = metrics
        self._on_fatal = on_fatal
        #: The attempt that is being made, for whoever is spawned by it.
        self.attempting: tuple[Framework, QueuedPodInfo] | None = None
        super().__init__(config, around)

    def record_scheduled(self, attempt: Attempt) -> None:
        super().record_scheduled(attempt)
        since = attempt.queued.initial_attempt_timestamp
        sli_s = None if since is None else self.around.clock.now() - since
        self._live_metrics.pod_scheduled(attempt.queued.attempts, sli_s)
        self.log.debug("bound pod %s to node %s", attempt.assumed.key, attempt.node_name)

    def handle_failure(
        self,
        framework: Framework,
        queued: QueuedPodInfo,
        status: Status,
        started: float,
        nominating: NominatingInfo = CLEAR_NOMINATION,
    ) -> None:
        super().handle_failure(framework, queued, status, started, nominating)
        level = logging.DEBUG if status.rejected else logging.WARNING
        # The text is made for this, and in a full cluster there are many.
        if self.log.isEnabledFor(level):
            self.log.log(level, "pod %s is not scheduled: %s", queued.key, status.message)

    def _attempt(self, framework: Framework, queued: QueuedPodInfo) -> None:
        self.attempting = framework, queued
        try:
            super()._attempt(framework, queued)
        except InvariantError as error:
            self._on_fatal(f"mooring's books do not add up: {error}")
        except Exception as error:
            self.log.exception("scheduling %s ended unexpectedly", queued.key)
            self._live_metrics.task_failed()
            self.recover(framework, queued, error)
        finally:
            self.attempting = None

    def recover(self, framework: Framework, queued: QueuedPodInfo, error: Exception) -> None:
        """Undo what an attempt left behind that ended unexpectedly, and try the pod again."""
        try:
            assumed = self.cluster.pods.get(queued.uid)
            if assumed is not None and self.cluster.is_assumed(assumed):
                self.cluster.forget_pod(assumed)
                self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
            self.handle_failure(framework, queued, failure(error), self.metrics.timer())
        except Exception as again:
            self.log.exception("pod %s could not be put back", queued.key)
            self._on_fatal(f"pod {queued.key} is lost to the queue: {again!r}")
