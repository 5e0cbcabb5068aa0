"""What a driver gives an engine: time, writes, work beside the scheduling cycle, and who is told what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.objects.pod import Pod
from mooring.queue.metrics import QueueMetrics
from mooring.runtime.handle import Spawn
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.choosing import TieBreak, first_by_name
from mooring.scheduler.decision import Decision
from mooring.scheduler.extenders import RunBeside, run_at_once
from mooring.scheduler.extenders.extender import Transport
from mooring.scheduler.writes import Writes

OnDecision = Callable[[Attempt, Decision], None]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Everything an engine is given: it reads nothing from anywhere else."""

    clock: Clock
    #: For plugins, and for the writes that an attempt waits for.
    writer: ApiWriter
    spawn: Spawn
    registry: Registry
    metrics: Metrics
    tie_break: TieBreak = first_by_name
    #: What the queue reports to; None if there is nothing to report to.
    queue_metrics: QueueMetrics | None = None
    #: Whether plugins' answers are kept for pods that are alike; the decisions are the same either way.
    keep_answers: bool = True
    #: Whether one pod is tried for all that are alike; the placements are the same either way.
    one_for_all: bool = True
    #: How often the pods that another one is tried for are told why they wait; 0: with each attempt.
    repeat_conditions_after_s: float = 0.0
    seed: int = 0
    #: Pods that are known to come, for plugins that want to know the workload.
    expected_pods: Sequence[Pod] = ()
    #: Called with every attempt and its decision, before the decision is carried out.
    on_decision: OnDecision | None = None
    #: Whether it asks for reasons. Of a group that is tried in several placements, it is told when all
    #: have been tried; the reasons are kept until then.
    keeps_reasons: bool = False
    #: Called at the end of each attempt with what has to be written; None writes nothing.
    carry_out: Callable[[Writes], None] | None = None
    #: Called after an unexpected exception ended an attempt; its pod is tried again.
    on_crash: Callable[[str], None] | None = None
    #: Called when there is something for `schedule_one` to do.
    on_ready: Callable[[], None] | None = None
    #: How to reach extenders; without any, none is needed.
    transport: Transport | None = None
    #: Runs the call of an extender that binds a pod.
    run_beside: RunBeside = run_at_once
    #: Called before an extender is asked to bind a pod: no write of its status must come after that.
    before_bind_by_extender: Callable[[Pod], Awaitable[None]] | None = None
    #: Called with a pod that an extender says it has bound; None if the watch will show it.
    on_bound_by_extender: Callable[[Pod, str], Awaitable[None]] | None = None
