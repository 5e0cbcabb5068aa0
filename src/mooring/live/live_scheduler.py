"""The scheduler of a real cluster: tells what dashboards show, and survives what should not happen."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import InvariantError
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.status import Status
from mooring.live.metrics import LiveMetrics
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.scheduler.binding_cycle import Attempt
from mooring.scheduler.journal import Fact, FactKind, RecentFacts
from mooring.scheduler.scheduler import Scheduler, Surroundings


class LiveScheduler(Scheduler):
    """The scheduler, telling what dashboards show, and surviving what should not happen."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        around: Surroundings,
        metrics: LiveMetrics,
        on_fatal: Callable[[str], None],
        journal: RecentFacts,
    ) -> None:
        self._live_metrics = metrics
        self._on_fatal = on_fatal
        self.journal = journal
        #: The attempt that is being made, for whoever is spawned by it.
        self.attempting: QueuedPodInfo | None = None
        super().__init__(config, around)

    def record_scheduled(self, attempt: Attempt) -> None:
        super().record_scheduled(attempt)
        since = attempt.queued.initial_attempt_timestamp
        sli_s = None if since is None else self.around.clock.now() - since
        self._live_metrics.pod_scheduled(attempt.queued.attempts, sli_s)
        self._note(FactKind.BOUND, attempt.assumed, node=attempt.node_name)
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
        self._note(FactKind.FAILED, queued.pod, message=status.message)
        level = logging.DEBUG if status.rejected else logging.WARNING
        # The text is made for this, and in a full cluster there are many.
        if self.log.isEnabledFor(level):
            self.log.log(level, "pod %s is not scheduled: %s", queued.key, status.message)

    def _note(self, what: FactKind, pod: Pod, *, node: str = "", message: str = "") -> None:
        at_s = self.around.clock.now()
        self.journal.add(Fact(at_s, what, pod.key, pod.uid, node, message))

    def try_pod(self, queued: QueuedPodInfo) -> None:
        self.attempting = queued
        try:
            super().try_pod(queued)
        except InvariantError as error:
            self._on_fatal(f"mooring's books do not add up: {error}")
        finally:
            self.attempting = None
