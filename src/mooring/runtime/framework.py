"""One profile's plugins, called point by point as the Scheduling Framework prescribes.

Each `run_*` method is one extension point: it knows which statuses are legal there and what follows from
each. The order of the methods is the order in which a pod passes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from itertools import groupby

from mooring.cluster.columns import Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError, PluginError
from mooring.faults import PLUGIN_FAULTS
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import (
    DEFAULT_EVENTS,
    Action,
    ClusterEvent,
    EventResource,
    EventWithHint,
)
from mooring.framework.interface import (
    NodeStatuses,
    NominatingInfo,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
)
from mooring.framework.status import SKIP, SUCCESS, Code, Status, checked_type, failure
from mooring.objects.kinds import Kind
from mooring.objects.pod import Pod
from mooring.runtime import filtering
from mooring.runtime.metrics import Metrics
from mooring.runtime.nominated_rows import NominatedRows
from mooring.runtime.nominator import Nominator
from mooring.runtime.plugin_calls import (
    BIND,
    PERMIT,
    POST_BIND,
    POST_FILTER,
    PRE_BIND,
    PRE_FILTER,
    PRE_FLIGHT,
    PRE_SCORE,
    RESERVE,
    UNRESERVE,
    Calls,
    PluginFailure,
    PointRules,
    describe,
    unexpected,
)
from mooring.runtime.pods_in_pre_bind import PreBindCancelled
from mooring.runtime.question import Question
from mooring.runtime.usage_columns import (
    ignores_pods,
    pods_added,
    reads_usage_columns,
)
from mooring.runtime.waiting_pods import LONGEST_WAIT_S, WaitingPods

_LOG = logging.getLogger(__name__)

#: A plugin that takes part here can reject a pod, so it registers events.
_REJECTING_POINTS = (
    Point.PRE_ENQUEUE,
    Point.PRE_FILTER,
    Point.FILTER,
    Point.RESERVE,
    Point.PERMIT,
)
_ALWAYS_ON_TAINT = EventWithHint(ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT))


#: The reference's text, which pods of a gang show.
_WAITS = "one or more plugins asked to wait and no plugin rejected pod"


class Framework:
    """The plugins of one profile, ready to be run."""

    def __init__(
        self,
        profile_name: str,
        points: Mapping[Point, Sequence[Calls]],
        weights: Mapping[str, int],
        *,
        placement_weights: Mapping[str, int] | None = None,
        waiting_pods: WaitingPods,
        nominator: Nominator,
        metrics: Metrics,
    ) -> None:
        self.profile_name = profile_name
        #: The plugins of every point, in the order in which they run.
        self.points = points
        #: The weight of every plugin that scores.
        self.weights = weights
        #: The weight of every plugin that scores placements.
        self.placement_weights = placement_weights or {}
        self.waiting_pods = waiting_pods
        self.nominator = nominator
        self._nominated_rows = NominatedRows(nominator)
        self.metrics = metrics
        #: Whether durations of points are reported.
        self.measures = type(metrics).point_duration is not Metrics.point_duration
        #: Whether durations of single plugins are reported.
        self.measures_plugins = type(metrics).plugin_duration is not Metrics.plugin_duration
        for call in self.plugins.values():
            call.evaluations = metrics.evaluations_of(call.name, profile_name)

    def timed(self, point: str) -> _Timed:
        """Around all plugins of a point: reports how long they took, and the code they ended with."""
        return _Timed(self, point) if self.measures else _UNTIMED

    def told(self, point: str, code: Code, started: float) -> None:
        """Report how long all plugins of a point took."""
        metrics = self.metrics
        metrics.point_duration(point, code.title, self.profile_name, metrics.timer() - started)

    @property
    def plugins(self) -> dict[str, Calls]:
        """Every plugin that takes part somewhere, by name."""
        return {call.name: call for calls in self.points.values() for call in calls}

    def names_at(self, point: Point) -> list[str]:
        return [call.name for call in self.points[point]]

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that the plugins declare."""
        declared = (kind for call in self.plugins.values() for kind in call.kinds)
        return tuple(dict.fromkeys(declared))

    # Before the queue

    def events_to_register(self) -> list[tuple[str, EventWithHint]]:
        """(plugin, event) for each event that may make a pod schedulable that the plugin rejected.

        Raises PluginError.
        """
        rejecting = {call.name: call for point in _REJECTING_POINTS for call in self.points[point]}
        return [(name, event) for name, call in rejecting.items() for event in _events(call)]

    # The scheduling cycle

    def pre_filter(
        self, call: Calls, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status:
        """One plugin's PreFilter. Raises PluginFailure."""
        method = call.pre_filter
        assert method is not None
        if state.record_plugin_metrics:
            result = call.run(PRE_FILTER, state, method, state, pod, snapshot)
        else:
            # As `run`, without passing arguments on: every attempt comes here several times.
            call.count(PRE_FILTER)
            try:
                result = method(state, pod, snapshot)
            except PLUGIN_FAULTS as error:
                raise call.failed(PRE_FILTER.doing, error) from error
        if result is None or result is SKIP:
            return SKIP if result is SKIP else SUCCESS
        if not isinstance(result, PreFilterResult):
            return call.checked(PRE_FILTER, result)
        if not isinstance(result.node_names, Set):
            raise call.failed(PRE_FILTER.doing, PluginError("node_names must be a set of names"))
        return result

    def rows_refused_for_nominated(
        self, question: Question, nominated: Mapping[int, Sequence[Pod]]
    ) -> dict[int, Status]:
        """The rows on which the pod does not fit beside these pods, which are nominated to them."""
        state, pod, snapshot = question.state, question.pod, question.snapshot
        few = len(nominated) <= filtering.FEW_ROWS
        calls = None if few else self.filters_by_columns(state, pod)
        if calls is not None:
            with pods_added(snapshot.columns, nominated):
                return filtering.refused_rows(calls, question, snapshot.columns, list(nominated))
        refused = {}
        for row in nominated:
            status = self._filter_with_nominated(state, pod, snapshot.at(row), snapshot)
            if status is not None and not status.ok:
                refused[row] = status
        return refused

    def nominated_rows(self, pod: Pod, snapshot: Snapshot) -> dict[int, Sequence[Pod]]:
        """Row → the pods nominated to it that count for this pod."""
        return self._nominated_rows.for_pod(pod, snapshot)

    def _nominated_to(self, node_name: str, pod: Pod) -> list[Pod]:
        return [
            other
            for other in self.nominator.nominated_pods_for_node(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def filters_by_columns(self, state: CycleState, pod: Pod) -> list[Calls] | None:
        """The filters that are asked about this pod; None if one of them needs more than columns."""
        calls = [c for c in self.points[Point.FILTER] if c.name not in state.skip_filter]
        # Host ports are no sums.
        by_columns = (
            not pod.host_ports
            and not self.hears_of_pods(state)
            and all(ignores_pods(call, pod) or reads_usage_columns(call) for call in calls)
        )
        return calls if by_columns else None

    def hears_of_pods(self, state: CycleState) -> bool:
        """Whether a plugin has add_pod, so that it must be called for each assumed change."""
        return any(
            call.add_pod is not None and call.name not in state.skip_filter
            for call in self.points[Point.PRE_FILTER]
        )

    def filter_node(
        self, state: CycleState, pod: Pod, node: NodeInfo, snapshot: Snapshot
    ) -> Status:
        """Judge one node, which may be a changed copy, with and without nominated pods."""
        status = self._filter_with_nominated(state, pod, node, snapshot)
        if status is not None and not status.ok:
            return status
        return self.filter_node_as_is(state, pod, node, snapshot)

    def filter_node_as_is(
        self, state: CycleState, pod: Pod, node: NodeInfo, snapshot: Snapshot
    ) -> Status:
        """Judge one node, leaving nominated pods out of account."""
        return filtering.filter_node(self.points[Point.FILTER], state, pod, node, snapshot)

    def _filter_with_nominated(
        self, state: CycleState, pod: Pod, node: NodeInfo, snapshot: Snapshot
    ) -> Status | None:
        """None if no pod is nominated to the node that matters to this one."""
        nominated = self._nominated_to(node.name, pod)
        if not nominated:
            return None
        node, state = node.copy(), state.clone()
        for other in nominated:
            node.add_pod(other)
            self.run_add_pod(state, pod, other, node)
        return self.filter_node_as_is(state, pod, node, snapshot)

    def run_add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        """Tell PreFilter plugins to count a pod on a node. Raises PluginFailure."""
        for call in self.points[Point.PRE_FILTER]:
            if call.add_pod is not None and call.name not in state.skip_filter:
                self._tell(call, call.add_pod, "AddPod", state, pod, added, node)

    def run_remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        for call in self.points[Point.PRE_FILTER]:
            if call.remove_pod is not None and call.name not in state.skip_filter:
                self._tell(call, call.remove_pod, "RemovePod", state, pod, removed, node)

    def _tell(
        self,
        call: Calls,
        extension: Callable[[CycleState, Pod, Pod, NodeInfo], Status | None],
        doing: str,
        state: CycleState,
        pod: Pod,
        other: Pod,
        node: NodeInfo,
    ) -> None:
        # Dry runs come here for every victim: a bare try costs nothing, a guard would.
        try:
            status = extension(state, pod, other, node)
            if status is not None and not checked_type(status).ok:
                raise unexpected(status)
        except PLUGIN_FAULTS as error:
            raise call.failed(f'running {doing} on PreFilter plugin "{{name}}"', error) from error

    def run_post_filters(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        with self.timed("PostFilter") as told:
            result, status = self._post_filters(state, pod, statuses)
            told.code = status.code
            return result, status

    def _post_filters(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        reasons: list[str] = []
        kept: PostFilterResult | None = None
        rejected_by = ""
        for call in self.points[Point.POST_FILTER]:
            assert call.post_filter is not None
            try:
                with call.guard("PostFilter", POST_FILTER.doing, state):
                    result, answer = _post_filtered(call.post_filter(state, pod, statuses))
                    status = POST_FILTER.checked(answer)
            except PluginFailure as error:
                return None, error.as_status()
            if status.ok or status.code == Code.UNRESOLVABLE:
                return result, status if status.ok else status.by(call.name)
            if not status.rejected:
                return None, failure(MooringError(status.message)).by(call.name)
            reasons += status.all_reasons
            rejected_by = rejected_by or call.name
            if result is not None and result.nomination is not None:
                kept = result
        return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), rejected_by)

    def pre_score(
        self, call: Calls, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> bool:
        """Run one plugin's PreScore; whether it has nothing to score. Raises PluginFailure."""
        method = call.pre_score
        assert method is not None
        if state.record_plugin_metrics:
            status = call.run(PRE_SCORE, state, method, state, pod, snapshot, rows)
        else:
            call.count(PRE_SCORE)
            try:
                status = method(state, pod, snapshot, rows)
            except PLUGIN_FAULTS as error:
                raise call.failed(PRE_SCORE.doing, error) from error
        if status is SKIP:
            return True
        return status is not None and not call.checked(PRE_SCORE, status).ok

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Stops at the first failure; the caller then runs `run_unreserve`."""
        if not self.measures:
            return self._reserve(state, pod, node_name)
        with self.timed("Reserve") as told:
            status = self._reserve(state, pod, node_name)
            told.code = status.code
            return status

    def _reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        for call in self.points[Point.RESERVE]:
            if call.reserve is not None:
                status = self._ask(RESERVE, call, call.reserve, state, pod, node_name)
                if status is not SUCCESS and not status.ok:
                    return status
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Call all plugins in reverse order, also those that did not reserve."""
        with self.timed("Unreserve") as told:
            for call in reversed(self.points[Point.RESERVE]):
                if call.unreserve is not None:
                    status = self._ask(UNRESERVE, call, call.unreserve, state, pod, node_name)
                    if status is not SUCCESS and not status.ok:
                        _LOG.error("%s", status.message)
            told.code = Code.SUCCESS

    def run_permit(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Wait means that a waiting pod was made, which the binding cycle will wait for."""
        if not self.points[Point.PERMIT] and not self.measures:
            return SUCCESS
        status, timeouts_s = self.ask_permit(state, pod, node_name)
        if status.code == Code.WAIT:
            self.waiting_pods.add(pod, node_name, timeouts_s)
        return status

    def ask_permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        """As `run_permit`, without a waiting pod: with Wait comes how long each plugin waits."""
        timeouts_s: dict[str, float] = {}
        if not self.measures:
            return self._permit(state, pod, node_name, timeouts_s), timeouts_s
        with self.timed("Permit") as told:
            status = self._permit(state, pod, node_name, timeouts_s)
            told.code = status.code
            return status, timeouts_s

    def _permit(
        self, state: CycleState, pod: Pod, node_name: str, timeouts_s: dict[str, float]
    ) -> Status:
        waits = SUCCESS
        for call in self.points[Point.PERMIT]:
            assert call.permit is not None
            try:
                answer = call.run(PERMIT, state, call.permit, state, pod, node_name)
                if answer is None or answer is SUCCESS:
                    continue
                if not isinstance(answer, tuple):
                    answer = answer, LONGEST_WAIT_S
                status, timeout_s = call.checked(PERMIT, answer[0]), answer[1]
                if status.code == Code.WAIT:
                    if not timeout_s >= 0:
                        raise PluginError(f"permit cannot wait for {timeout_s} seconds")
                    timeouts_s[call.name] = min(timeout_s, LONGEST_WAIT_S)
            except PluginFailure as error:
                return error.as_status()
            except PLUGIN_FAULTS as error:
                return call.failed(PERMIT.doing, error).as_status()
            if status.code == Code.WAIT:
                waits = Status(Code.WAIT, (*status.all_reasons, _WAITS))
            elif not status.ok:
                return status.by(call.name)
        return waits

    def _ask(
        self,
        rules: PointRules,
        call: Calls,
        method: Callable[[CycleState, Pod, str], Status | None],
        state: CycleState,
        pod: Pod,
        node_name: str,
    ) -> Status:
        """What one plugin says; what it raises becomes an error."""
        try:
            if state.record_plugin_metrics:
                answer = call.run(rules, state, method, state, pod, node_name)
            else:
                # As `run`, without passing arguments on.
                call.count(rules)
                answer = method(state, pod, node_name)
            if answer is None or answer is SUCCESS:
                return SUCCESS
            status = call.checked(rules, answer)
        except PluginFailure as error:
            return error.as_status()
        except PLUGIN_FAULTS as error:
            return call.failed(rules.doing, error).as_status()
        return status if status.ok else status.by(call.name)

    async def _wait_for(
        self,
        rules: PointRules,
        call: Calls,
        method: Callable[[CycleState, Pod, str], Status | Awaitable[Status | None] | None],
        state: CycleState,
        pod: Pod,
        node_name: str,
    ) -> Status:
        """As `_ask`, for a method that may be a coroutine."""
        try:
            with call.guard(rules.title, rules.doing, state):
                answer = method(state, pod, node_name)
                if isinstance(answer, Awaitable):
                    answer = await answer
                if answer is None or answer is SUCCESS:
                    return SUCCESS
                status = rules.checked(answer)
        except PluginFailure as error:
            return error.as_status()
        return status if status.ok else status.by(call.name)

    # The binding cycle

    async def wait_on_permit(self, pod: Pod) -> Status:
        waiting = self.waiting_pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        started = self.metrics.timer()
        try:
            status = await waiting.wait()
        finally:
            self.waiting_pods.remove(pod.uid)
        self.metrics.permit_wait(status.code.title, self.metrics.timer() - started)
        if status.ok or status.rejected:
            return status
        error = MooringError(f"waiting on permit for pod: {status.message}")
        return failure(error).by(status.plugin)

    def run_pre_bind_pre_flights(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success if any PreBind has something to do, Skip if none has."""
        if not self.measures:
            return self._pre_flights(state, pod, node_name)
        with self.timed("PreBindPreFlight") as told:
            status = self._pre_flights(state, pod, node_name)
            told.code = status.code
            return status

    def _pre_flights(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        skipped: set[str] = set()
        parallel: set[str] = set()
        outcome = SKIP
        for call in self.points[Point.PRE_BIND]:
            answer: PreFlight | Status | None = None
            if call.pre_bind_pre_flight is not None:
                try:
                    answer = call.run(
                        PRE_FLIGHT, state, call.pre_bind_pre_flight, state, pod, node_name
                    )
                except PluginFailure as error:
                    return error.as_status()
                if answer is SKIP:
                    skipped.add(call.name)
                    continue
            if isinstance(answer, PreFlight):
                outcome = SUCCESS
                if answer.allow_parallel:
                    parallel.add(call.name)
                continue
            try:
                status = call.checked(PRE_FLIGHT, answer)
            except PluginFailure as error:
                return error.as_status()
            if status.ok:
                outcome = SUCCESS
            elif status.code == Code.SKIP:
                skipped.add(call.name)
            elif status.code == Code.ERROR:
                return status.by(call.name)
            else:
                text = (
                    f'PreBindPreFlight {call.name} returned "{status.code.title}", which is'
                    " unsupported. It is supposed to return Success, Skip, or Error status"
                )
                return PluginFailure(call.name, text).as_status()
        state.skip_pre_bind = frozenset(skipped)
        state.parallel_pre_bind = frozenset(parallel)
        return outcome

    async def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Neighbours that may run in parallel do; the first failure cancels its siblings."""
        if not self.measures and len(state.skip_pre_bind) == len(self.points[Point.PRE_BIND]):
            return SUCCESS
        with self.timed("PreBind") as told:
            status = await self._pre_binds(state, pod, node_name)
            told.code = status.code
            return status

    async def _pre_binds(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        for parallel, group in groupby(
            self.points[Point.PRE_BIND], lambda call: call.name in state.parallel_pre_bind
        ):
            calls = [call for call in group if call.name not in state.skip_pre_bind]
            if parallel and len(calls) > 1:
                runs = [self._pre_bind(call, state, pod, node_name) for call in calls]
                status = await _first_failure(runs)
                if not status.ok:
                    return status
                continue
            for call in calls:
                status = await self._pre_bind(call, state, pod, node_name)
                if not status.ok:
                    return status
        return SUCCESS

    async def _pre_bind(self, call: Calls, state: CycleState, pod: Pod, node_name: str) -> Status:
        assert call.pre_bind is not None
        try:
            return await self._wait_for(PRE_BIND, call, call.pre_bind, state, pod, node_name)
        except asyncio.CancelledError as error:
            raise PreBindCancelled(PRE_BIND.doing.format(name=call.name)) from error

    async def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The first plugin that does not skip decides."""
        with self.timed("Bind") as told:
            status = SKIP
            for call in self.points[Point.BIND]:
                assert call.bind is not None
                status = await self._wait_for(BIND, call, call.bind, state, pod, node_name)
                if status is SUCCESS or status.code != Code.SKIP:
                    break
                status = SKIP
            told.code = status.code
            return status

    async def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if not self.points[Point.POST_BIND] and not self.measures:
            return
        with self.timed("PostBind") as told:
            for call in self.points[Point.POST_BIND]:
                assert call.post_bind is not None
                status = await self._wait_for(
                    POST_BIND, call, call.post_bind, state, pod, node_name
                )
                if not status.ok:
                    _LOG.error("%s", status.message)
            told.code = Code.SUCCESS

    @property
    def is_settled(self) -> bool:
        """Whether no plugin knows of something that the watch has yet to show."""
        return all(getattr(call.plugin, "is_settled", True) for call in self.plugins.values())

    def close(self) -> list[str]:
        """Close every plugin that can be; what went wrong, one line each."""
        problems = []
        for call in self.plugins.values():
            if call.close is not None:
                try:
                    call.close()
                except PLUGIN_FAULTS as error:
                    problems.append(f"{call.name} failed to close: {describe(error)}")
        return problems


class _Timed:
    """Around all plugins of a point. What raises ends it with an error."""

    __slots__ = ("_framework", "_point", "_started", "code")

    def __init__(self, framework: Framework, point: str) -> None:
        self._framework = framework
        self._point = point
        self._started = 0.0
        #: Set by the code inside the `with` block.
        self.code = Code.ERROR

    def __enter__(self) -> _Timed:
        self._started = self._framework.metrics.timer()
        return self

    def __exit__(self, *_: object) -> None:
        self._framework.told(self._point, self.code, self._started)


class _Untimed(_Timed):
    """For those who do not measure."""

    def __init__(self) -> None:
        self.code = Code.ERROR

    def __enter__(self) -> _Timed:
        return self

    def __exit__(self, *_: object) -> None:
        pass


_UNTIMED = _Untimed()


def _post_filtered(answer: object) -> tuple[PostFilterResult | None, Status | None]:
    match answer:
        case (None | PostFilterResult() as result, None | Status() as status):
            if result is not None and not isinstance(result.nomination, NominatingInfo):
                raise PluginError(
                    "the nomination of a PostFilterResult must be a Nomination or None"
                )
            return result, status
    raise PluginError("post_filter must return a PostFilterResult or None, and a Status or None")


def _events(call: Calls) -> Iterable[EventWithHint]:
    if call.events_to_register is None:
        return [EventWithHint(event) for event in DEFAULT_EVENTS]
    try:
        events: list[EventWithHint] = list(call.events_to_register())
        if not all(isinstance(each, EventWithHint) for each in events):
            raise PluginError("events_to_register must return EventWithHint objects")
    except PLUGIN_FAULTS as error:
        text = f'registering the events of plugin "{call.name}": {describe(error)}'
        raise PluginError(text) from error
    on_node = [e.event.action for e in events if e.event.resource == EventResource.NODE]
    adds = any(action & Action.ADD for action in on_node)
    if adds and not any(action & Action.UPDATE_NODE_TAINT for action in on_node):
        # Else a node that comes tainted and loses its taint later would be missed.
        events.append(_ALWAYS_ON_TAINT)
    return events


async def _first_failure(runs: Iterable[Coroutine[None, None, Status]]) -> Status:
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        for done in asyncio.as_completed(tasks):
            status: Status = await done
            if not status.ok:
                return status
        return SUCCESS
    except asyncio.CancelledError:
        for outcome in await _all_ended(tasks):
            if isinstance(outcome, PreBindCancelled):
                raise outcome from None
        raise
    finally:
        await _all_ended(tasks)


async def _all_ended(tasks: Sequence[asyncio.Task[Status]]) -> list[Status | BaseException]:
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)
