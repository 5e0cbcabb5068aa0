"""Running a cluster in virtual time: the scheduler, the API in memory, and the driver between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mooring.config import default_config
from mooring.config.gates import FeatureGates
from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import InputError, MooringError
from mooring.framework.api import ApiWriter
from mooring.objects.devices import ResourceSlice
from mooring.objects.gangs import asks_to_be_a_gang, with_gangs
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.registry import default_registry
from mooring.queue.scheduling_queue import FLUSH_BACKOFF_EVERY_S, FLUSH_UNSCHEDULABLE_EVERY_S
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.choosing import SeededSpread, TieBreak, first_by_name
from mooring.scheduler.decision import Decision
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.drive_loop import DriveLoop
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.extender import Transport
from mooring.scheduler.journal import NOTHING, FactKind, Journal
from mooring.scheduler.writes import Writes, carry_out
from mooring.sim.api import SimApi, Watcher, run_seconds
from mooring.sim.claim_controller import ClaimController
from mooring.sim.clock import VirtualClock, VirtualLoop
from mooring.sim.device_driver import DeviceDrivers, check_binding_seconds
from mooring.sim.device_taint_eviction import DeviceTaintEviction
from mooring.sim.recorder import Recorder
from mooring.sim.volume_controller import VolumeController

if TYPE_CHECKING:
    from mooring.webhook import HttpTransport

#: When simulations begin, unless told otherwise: 2026-01-01T00:00:00Z.
DEFAULT_EPOCH_S = 1_767_225_600.0

#: In a run without a given end: how often to try a pod that fails by error and not by a rule, and how long
#: pods may go on failing while nothing else happens. No wait that the scheduler knows takes longer.
_MOST_ERRORS = 10
_PATIENCE_S = 1200.0
#: How many decisions may be in vain for each pod that waits: with Permit plugins that wait for no time, or
#: next to none, pods fail and come back without an end.
_MOST_IN_VAIN = 500
#: A cluster that has not come to rest by then never will: its controllers undo each other's work.
_LONGEST_SETTLING_S = 86_400.0


_ALONE = (
    "{} in pod groups, but the feature gate GenericWorkload is off: each is scheduled alone;"
    " use --feature-gates GenericWorkload=true,GangScheduling=true"
)
#: For groups that ask for something whose feature gate is off.
_NO_GANG = (
    "pod group {} has a minCount, but the feature gate GangScheduling is off:"
    " fewer of its pods may be bound"
)
_NO_TOPOLOGY = (
    "pod group {} has a topology constraint, but the feature gate TopologyAwareWorkloadScheduling is off:"
    " its pods may be apart"
)


@dataclass(frozen=True, slots=True)
class SimOptions:
    """How to run."""

    config: KubeSchedulerConfiguration | None = None
    registry: Registry | None = None
    #: None breaks ties by node name; a number spreads them, the same way each time.
    seed: int | None = None
    #: Called with each decision.
    on_decision: Callable[[Decision], None] | None = None
    #: Whether `on_decision` asks for the reasons of decisions.
    keeps_reasons: bool = False
    #: The facts that the journal keeps: a long run has a great many. Their sums are kept in any case.
    keeps: AbstractSet[FactKind] = NOTHING
    #: Whether pods that fit nowhere are tried every few minutes though nothing has happened, as long as
    #: something still can. Over months of virtual time that is most of the work.
    tries_leftover: bool = True
    #: Whether pods are tried though there are no nodes. Every attempt would fail in the same way.
    tries_without_nodes: bool = True
    #: How to reach the configuration's extenders; None asks them over HTTP.
    transport: Transport | None = None
    #: Whether one pod is tried for all that are alike; the placements are the same either way.
    one_for_all: bool = True
    #: Pods that are known to come, for plugins that want to know the workload.
    expected_pods: Sequence[Pod] = ()
    #: Puts something between the scheduler and the API, so that writes can be late or fail.
    writer: Callable[[SimApi], ApiWriter] | None = None


class Simulation:
    """A cluster with its scheduler. Put objects in, run, look."""

    def __init__(self, options: SimOptions | None = None) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        options = options or SimOptions()
        config = options.config or default_config()
        self._http = None if options.transport is not None else _http_transport(config)
        self._on_decision = options.on_decision
        self._tries_leftover = options.tries_leftover
        self._tries_without_nodes = options.tries_without_nodes
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, DEFAULT_EPOCH_S)
        self.api = SimApi(self.loop, self.clock)
        writer = self.api if options.writer is None else options.writer(self.api)
        self.journal = Journal(options.keeps)
        self._recorder = Recorder(self.clock, writer, self.journal)
        self.summary = self._recorder.summary
        #: Pod UID → the generation of the cluster at the last attempt that found no node.
        self._refused_at: dict[str, int] = {}
        self.errors: list[str] = []
        #: What users should know about how their objects were understood.
        self.notes: list[str] = []
        #: Binding cycles and other work under way; plugins may begin some while they are built.
        self._tasks: set[asyncio.Task[None]] = set()
        self.loop.set_exception_handler(self._note_error)
        # One pod a turn, so that watches and bindings go on between two of them.
        self._drive = DriveLoop(self.loop, attempt=self._attempt, on_idle=self._idle)
        tie_break: TieBreak = first_by_name if options.seed is None else SeededSpread(options.seed)
        try:
            self.scheduler = Engine(
                config,
                Dependencies(
                    clock=self.clock,
                    writer=self._recorder,
                    spawn=self._spawn,
                    registry=options.registry or default_registry(),
                    metrics=Metrics(),
                    tie_break=tie_break,
                    one_for_all=options.one_for_all,
                    seed=options.seed or 0,
                    expected_pods=options.expected_pods,
                    carry_out=self._carry_out,
                    on_decision=self._decided,
                    keeps_reasons=options.keeps_reasons,
                    on_crash=self.errors.append,
                    on_ready=self._drive.wake,
                    transport=options.transport or self._http,
                    # An extender that binds cannot reach the API of a simulation.
                    on_bound_by_extender=self._recorder.bind,
                ),
            )
        except BaseException:
            self._let_go()
            raise
        #: When the run was asked to end; None runs until nothing can change.
        self.until_s: float | None = None
        self.api.watch(self.scheduler)
        self._recorder.scheduler = self.scheduler
        self.api.watch(self._recorder)
        self.api.watch(_Controllers(self.api, self.clock, config.gates))

    def load(self, objects: Iterable[KubeObject]) -> None:
        """Create objects: first whatever pods may refer to, then the pods, each in their order.

        Raises InputError if the annotations of a pod, a slice or a gang cannot be understood.
        """
        known = self.in_gangs(objects)
        _check_annotations(known)
        self.api.create_all(obj for obj in known if not isinstance(obj, Pod))
        self.api.create_all(obj for obj in known if isinstance(obj, Pod) and not obj.finished)

    def in_gangs(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """The objects that are to be created, with the pods that belong together in groups.

        Without the gate GenericWorkload every pod is scheduled alone. Raises InputError.
        """
        given, gates = list(objects), self.scheduler.config.gates
        if not gates.enabled("GenericWorkload"):
            alone = _pods_in_gangs(given)
            if alone:
                self._note(_ALONE.format("1 pod is" if alone == 1 else f"{alone} pods are"))
            return given
        jobs = gates.enabled("WorkloadWithJob")
        grouped, notes = with_gangs(given, among=self.api.all(KubeObject), jobs=jobs)
        for note in notes:
            self._note(note)
        for group in grouped:
            if not isinstance(group, PodGroup):
                continue
            if group.min_count is not None and not gates.enabled("GangScheduling"):
                self._note(_NO_GANG.format(group.key))
            if group.topology_key is not None and not gates.enabled(
                "TopologyAwareWorkloadScheduling"
            ):
                self._note(_NO_TOPOLOGY.format(group.key))
        return grouped

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def run(
        self, *, until_s: float | None = None, stops_when: Callable[[], bool] | None = None
    ) -> None:
        """Until virtual time `until_s`, or until nothing can change any more without outside help.

        `stops_when` is asked each time that all is done which is due at one moment.
        """
        end = self.loop.call_at(until_s, self.loop.stop) if until_s is not None else None
        self.until_s = until_s
        self._drive.wake()
        self.loop.stops_when = stops_when
        try:
            self.loop.run_forever()
        finally:
            self.loop.stops_when = None
            if end is not None:
                end.cancel()

    def settle(self) -> None:
        """Until every pod is placed or refused and all that is going has gone.

        Time passes only as far as that needs: pods that run to their end, and those that wait for Permit,
        are left at it.
        """
        start_s = self.loop.time()
        self.run(stops_when=lambda: self._at_rest(start_s))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.scheduler.close()
        if self._tasks:
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._let_go()

    def _let_go(self) -> None:
        self.loop.close()
        if self._http is not None:
            self._http.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decided(self, _: Attempt, decision: Decision) -> None:
        if decision.node_name is None:
            self._refused_at[decision.pod.uid] = self.scheduler.cluster.generations.latest
        self._recorder.decided(decision)
        if self._on_decision is not None:
            self._on_decision(decision)

    # The driver

    def _attempt(self) -> bool:
        if not self._tries_without_nodes and not self.scheduler.cluster.infos:
            return False
        if self.scheduler.queue.closed:
            return False
        if self._tries_in_vain() and self._stalled():
            self.loop.stop()
            return False
        return self.scheduler.schedule_one()

    def _idle(self) -> None:
        if self.scheduler.queue.closed:
            return
        if self._stalled():
            self.loop.stop()
        else:
            self._set_timers()

    def _stalled(self) -> bool:
        """Whether pods only ever fail: gangs that are never complete keep each other trying."""
        if self.until_s is not None or self.api.busy:
            return False
        return (
            self.loop.time() - self.summary.last_progress_s > _PATIENCE_S or self._tries_in_vain()
        )

    def _tries_in_vain(self) -> bool:
        in_vain = self.summary.decisions_in_vain
        if in_vain <= _MOST_IN_VAIN:
            return False
        counts = self.scheduler.queue.counts()
        waiting = counts.active + counts.backoff + counts.unschedulable + counts.gated
        return in_vain > _MOST_IN_VAIN * (1 + waiting + len(self.scheduler.waiting_pods))

    def _at_rest(self, since_s: float) -> bool:
        now_s = self.loop.time()
        if now_s - max(self.summary.last_progress_s, since_s) > _PATIENCE_S:
            return True
        if now_s - since_s > _LONGEST_SETTLING_S or self._tries_in_vain():
            return True
        if self.api.busy > self.api.running or len(self._tasks) > len(self.scheduler.waiting_pods):
            return False
        return not self._keeps_trying()

    def _set_timers(self) -> None:
        """The queue's flushes, only while there is something that they could flush."""
        queue = self.scheduler.queue
        counts = queue.counts()
        # A group that was refused is not tried again while nothing happens.
        if counts.backoff > len(queue.refused_in_groups()) and self._retries():
            self._flush_at_next(FLUSH_BACKOFF_EVERY_S, queue.flush_backoff_completed)
        if (counts.unschedulable or counts.gated) and self._goes_on():
            self._flush_at_next(FLUSH_UNSCHEDULABLE_EVERY_S, queue.flush_unschedulable_leftover)

    def _flush_at_next(self, period_s: int, flush: Callable[[], None]) -> None:
        next_s = (int(self.loop.time()) // period_s + 1) * period_s
        self._drive.flush_at(next_s, period_s, flush)

    def _retries(self) -> bool:
        """Whether to wait for backoffs to end: not for what has failed often enough to fail again."""
        if self.until_s is not None or self.api.busy or len(self.scheduler.waiting_pods):
            return True
        return self._keeps_trying()

    def _keeps_trying(self) -> bool:
        if not self.scheduler.cluster.infos:
            # Without nodes every attempt fails, and only the user can add one.
            return False
        backing_off = self.scheduler.queue.backoff_pods()
        return any(
            not queued.waits_out and queued.consecutive_errors_count < _MOST_ERRORS
            for queued in backing_off
        )

    def _goes_on(self) -> bool:
        """Whether anything but the queue's own patience can still change the cluster, or the queue's would.

        Without that, pods that fit nowhere would be tried every few minutes for ever.
        """
        if not self._tries_leftover:
            return False
        if self.until_s is not None or self.api.busy or self._tasks:
            return True
        return bool(len(self.scheduler.waiting_pods)) or self._fits_by_now()

    def _fits_by_now(self) -> bool:
        """Whether a pod that was refused fits, though no event made the queue try it again.

        A claim that was bound meanwhile leaves room for one more volume, for example, and NodeVolumeLimits
        does not ask to be told. kube-scheduler tries such a pod after five minutes.
        """
        latest = self.scheduler.cluster.generations.latest
        has_groups = self.scheduler.group_questions is not None
        seen: set[int] = set()
        for queued in self.scheduler.queue.unschedulable_pods():
            refused_at = self._refused_at.get(queued.uid, latest)
            if refused_at == latest or queued.gated or queued.given_up:
                continue
            if has_groups and queued.pod.group_key:
                # Its group decides, and fits only as a whole.
                continue
            if queued.pod_class is not None:
                if queued.pod_class in seen:
                    continue
                seen.add(queued.pod_class)
            try:
                if self.scheduler.decide(queued.pod).node_name is not None:
                    return True
            except MooringError:
                continue
        return False

    def _carry_out(self, writes: Writes) -> None:
        carry_out(writes, self._recorder, self._spawn)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A name of its own would be made for each.
        task = self.loop.create_task(work, name="scheduler")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # A pod whose binding failed backs off: the queue has nothing to pop, but a timer to be set.
        self._drive.wake()

    def _note_error(self, loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.errors.append(f"{context['message']}: {error!r}" if error else context["message"])


class _Controllers:
    """All controllers as one watcher: each watcher costs a turn of the loop for every change."""

    def __init__(self, api: SimApi, clock: VirtualClock, gates: FeatureGates) -> None:
        self._all: list[Watcher] = [
            VolumeController(api),
            ClaimController(api, gates.enabled("DRAWorkloadResourceClaims")),
            DeviceDrivers(api, clock),
        ]
        if gates.enabled("DRADeviceTaints"):
            has_rules = gates.enabled("DRADeviceTaintRules")
            self._all.append(DeviceTaintEviction(api, clock, has_rules=has_rules))
        #: Those that look at pods, which are most of what happens.
        self._of_pods = [
            each for each in self._all if not isinstance(each, VolumeController | DeviceDrivers)
        ]

    def added(self, obj: KubeObject) -> None:
        for each in self._of_pods if isinstance(obj, Pod) else self._all:
            each.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        for each in self._of_pods if isinstance(new, Pod) else self._all:
            each.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        for each in self._all:
            each.deleted(obj)


def _http_transport(config: KubeSchedulerConfiguration) -> HttpTransport | None:
    """Real extenders take part in virtual time: an answer comes at once, however long it takes."""
    if not config.extenders:
        return None
    from mooring.webhook import HttpTransport

    return HttpTransport(config.extenders)


def _pods_in_gangs(objects: Iterable[KubeObject]) -> int:
    """How many pods are in a group, or ask for one themselves or by their controller."""
    asking: set[tuple[str, str, str]] = set()
    pods = []
    for obj in objects:
        if isinstance(obj, Pod):
            pods.append(obj)
        elif asks_to_be_a_gang(obj):
            asking.add((obj.kind, obj.namespace, obj.name))
    count = 0
    for pod in pods:
        owner = pod.metadata.controller
        by_owner = owner is not None and (owner.kind, pod.namespace, owner.name) in asking
        count += bool(pod.group_key) or by_owner or asks_to_be_a_gang(pod)
    return count


def _check_annotations(objects: Iterable[KubeObject]) -> None:
    problems: list[str] = []
    for obj in objects:
        if isinstance(obj, Pod):
            try:
                run_seconds(obj)
            except ValueError as error:
                problems.append(f"pod {obj.key}: {error}")
        elif isinstance(obj, ResourceSlice):
            try:
                check_binding_seconds(obj)
            except ValueError as error:
                problems.append(f"resourceslice {obj.key}: {error}")
    if problems:
        raise InputError(problems)
