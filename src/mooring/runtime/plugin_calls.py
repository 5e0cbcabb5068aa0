"""A plugin's methods, looked up once, and the guard around every call to one.

A plugin is somebody else's code: whatever it raises becomes a PluginFailure that names the plugin and the
extension point, fails the attempt of one pod, and stops there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.row_states import StateAmounts
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError, PluginError
from mooring.faults import PLUGIN_FAULTS, is_fault
from mooring.framework.cycle_state import CycleState
from mooring.framework.dry_run import PluginFailure as PluginFailure
from mooring.framework.events import EventWithHint
from mooring.framework.interface import (
    Depends,
    NodeStatuses,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    QueuedPod,
)
from mooring.framework.placements import Placement, PodGroupAssignments, PodGroupInfo
from mooring.framework.status import Code, Status, checked_type
from mooring.framework.suggestions import Refusals, Suggestion
from mooring.framework.verdicts import RowVerdicts
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.runtime.declared_columns import columns_of, widened
from mooring.runtime.metrics import Metrics
from mooring.runtime.promises import PROMISES, holds

_LOG = logging.getLogger(__name__)

#: Has every field that all pods have.
_EMPTY_POD = Pod()

#: The methods by which a plugin takes part at a point; having any one of them is enough.
METHODS: dict[Point, tuple[str, ...]] = {
    Point.PRE_ENQUEUE: ("pre_enqueue",),
    Point.QUEUE_SORT: ("less",),
    Point.PRE_FILTER: ("pre_filter",),
    Point.FILTER: ("filter", "filter_rows"),
    Point.POST_FILTER: ("post_filter",),
    Point.PRE_SCORE: ("pre_score",),
    Point.SCORE: ("score", "score_rows"),
    Point.RESERVE: ("reserve", "unreserve"),
    Point.PERMIT: ("permit",),
    Point.PRE_BIND: ("pre_bind",),
    Point.BIND: ("bind",),
    Point.POST_BIND: ("post_bind",),
    Point.PLACEMENT_GENERATE: ("generate_placements",),
    Point.PLACEMENT_SCORE: ("score_placement",),
}


def points_of(plugin: object) -> frozenset[Point]:
    """Where a plugin takes part."""
    return frozenset(
        point
        for point, methods in METHODS.items()
        if any(callable(getattr(plugin, method, None)) for method in methods)
    )


T = TypeVar("T")
_OnPod = Callable[[CycleState, Pod, Pod, NodeInfo], Status | None]
#: A method that is told which node the pod goes to.
_OnNode = Callable[[CycleState, Pod, str], T]
_PostFilterAnswer = tuple[PostFilterResult | None, Status | None]
_Awaitable = Status | Awaitable[Status | None] | None


class PointRules:
    """What an extension point is called, and what plugins may answer there beside Success."""

    __slots__ = ("allowed", "doing", "title")

    def __init__(self, title: str, allowed: tuple[Code, ...], *, doing: str = "") -> None:
        self.title = title
        self.allowed = allowed
        #: The beginning of the message when a plugin fails.
        self.doing = doing or f'running {title} plugin "{{name}}"'

    def checked(self, answer: Status | None) -> Status:
        """None is Success. Raises MooringError for a status that the point has no use for."""
        status = checked_type(answer)
        if status.ok or status.code in self.allowed:
            return status
        raise unexpected(status)


_REJECTIONS = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)

PRE_FILTER = PointRules("PreFilter", (Code.SKIP, Code.UNSCHEDULABLE, Code.UNRESOLVABLE))
PRE_SCORE = PointRules("PreScore", (Code.SKIP,))
FILTER = PointRules("Filter", _REJECTIONS, doing='running "{name}" filter plugin')
SCORE = PointRules("Score", (), doing='running Score plugins: plugin "{name}" failed with')
NORMALIZE = PointRules(
    "ScoreExtensionNormalize",
    (),
    doing='running Normalize on Score plugins: plugin "{name}" failed with',
)
POST_FILTER = PointRules("PostFilter", tuple(Code))
RESERVE = PointRules("Reserve", _REJECTIONS)
UNRESERVE = PointRules("Unreserve", ())
PERMIT = PointRules("Permit", (*_REJECTIONS, Code.WAIT))
PRE_FLIGHT = PointRules("PreBindPreFlight", tuple(Code), doing='running PreBindPreFlight "{name}"')
PRE_BIND = PointRules("PreBind", _REJECTIONS)
BIND = PointRules("Bind", (*_REJECTIONS, Code.SKIP))
POST_BIND = PointRules("PostBind", ())


class Calls:
    """One plugin as the runtime calls it; a method it does not have is None."""

    pre_enqueue: Callable[[Pod], Status | None] | None
    less: Callable[[QueuedPod, QueuedPod], bool] | None
    pre_filter: Callable[[CycleState, Pod, Snapshot], PreFilterResult | Status | None] | None
    add_pod: _OnPod | None
    remove_pod: _OnPod | None
    filter: Callable[[CycleState, Pod, NodeInfo], Status | None] | None
    filter_rows: Callable[[CycleState, Pod, Columns, Rows], RowVerdicts | None] | None
    post_filter: Callable[[CycleState, Pod, NodeStatuses], _PostFilterAnswer] | None
    post_filter_repeats: Callable[[Pod], bool] | None
    pre_score: Callable[[CycleState, Pod, Snapshot, Rows], Status | None] | None
    score: Callable[[CycleState, Pod, NodeInfo], int] | None
    score_rows: Callable[[CycleState, Pod, Columns, Rows], Ints] | None
    normalize_scores: Callable[[CycleState, Pod, Ints], Status | None] | None
    reserve: _OnNode[Status | None] | None
    unreserve: _OnNode[None] | None
    permit: _OnNode[Status | tuple[Status | None, float] | None] | None
    pre_bind_pre_flight: _OnNode[PreFlight | Status | None] | None
    pre_bind: _OnNode[_Awaitable] | None
    bind: _OnNode[_Awaitable] | None
    post_bind: _OnNode[Awaitable[None] | None] | None
    generate_placements: Callable[[PodGroupInfo, Snapshot], Sequence[Placement] | Status] | None
    score_placement: Callable[[PodGroupInfo, PodGroupAssignments], int | Status] | None
    normalize_placement_scores: (
        Callable[[PodGroupInfo, Sequence[int]], Sequence[int] | Status] | None
    )
    placement_score_bounds: (
        Callable[[PodGroupInfo, Sequence[Placement], Snapshot], Sequence[int] | None] | None
    )
    events_to_register: Callable[[], Sequence[EventWithHint]] | None
    sign: Callable[[Pod], Mapping[str, object] | Status] | None
    depends_on: Callable[[Pod], Depends] | None
    sign_here: Callable[[Pod], Mapping[str, object] | Status] | None
    sign_version: Callable[[], int] | None
    nodes_version: Callable[[], int] | None
    sees_only_resources: Callable[[Pod], bool] | None
    passes_on_states: Callable[[CycleState, Pod, StateAmounts], bool] | None
    score_states: Callable[[CycleState, Pod, StateAmounts], NDArray[np.float64] | None] | None
    suggest: Callable[[Pod, Refusals], Iterable[Suggestion]] | None
    close: Callable[[], None] | None

    def __init__(self, name: str, plugin: object, metrics: Metrics) -> None:
        #: What it calls itself, which is how users meet it in messages.
        self.name = name
        self.plugin = plugin
        self.metrics = metrics
        #: Extension point → how often it was called there.
        self.evaluations: dict[str, int] = {}
        for method in _METHODS:
            setattr(self, method, _method(plugin, method))
        #: The kinds that it declares.
        self.kinds = kinds_of(plugin, name)
        #: The columns that it declares.
        self.own_columns = columns_of(plugin)
        #: Whether `normalize_scores` looks only at the lowest and the highest score.
        self.normalizes_by_extremes: bool = getattr(
            plugin, "normalizes_by_extremes", False
        ) and holds(plugin, "normalizes_by_extremes")
        #: Whether `pre_enqueue` is asked before hints; see `PreEnqueuePlugin`.
        self.gates_first: bool = getattr(plugin, "gates_first", False)
        #: Kinds of objects that `depends_on` and `sign` look at.
        self.depends_on_kinds: tuple[type[KubeObject], ...] = getattr(
            plugin, "depends_on_kinds", ()
        )
        #: The fields of a pod that `depends_on` and `sign` read; None if the plugin does not say so.
        self.signature_fields: tuple[str, ...] | None = _signature_fields(plugin)

    def depends(self, pod: Pod) -> Depends:
        """What the answers about a pod depend on. A plugin that does not say so may look at anything."""
        if self.depends_on is None:
            return Depends.CLUSTER
        try:
            depends: object = self.depends_on(pod)
            if not isinstance(depends, Depends):
                raise PluginError("depends_on must return a Depends")
            return widened(depends, self.own_columns) if self.own_columns else depends
        except PLUGIN_FAULTS as error:
            self.warn(f"say what its answers about pod {pod.key} depend on", error)
            return Depends.CLUSTER

    def version_of_nodes(self) -> int | None:
        """What the plugin says of all nodes; None if any change may change its answers about others."""
        if self.nodes_version is None:
            return None
        try:
            return self.nodes_version()
        except PLUGIN_FAULTS as error:
            self.warn("say whether nodes have changed for it", error)
            return None

    def warn(self, what: str, error: BaseException) -> None:
        """Tell that the plugin cannot do something without which pods are scheduled all the same."""
        _LOG.warning("plugin %s cannot %s: %s", self.name, what, describe(error))

    def guard(self, point: str, doing: str, state: CycleState) -> _Guard:
        """Turn what a call raises into a PluginFailure; count it, and time it if this attempt is."""
        counts = self.evaluations
        counts[point] = counts.get(point, 0) + 1
        return _Guard(self, point, doing, state.record_plugin_metrics)

    def count(self, rules: PointRules) -> None:
        counts, title = self.evaluations, rules.title
        counts[title] = counts.get(title, 0) + 1

    def run(self, rules: PointRules, state: CycleState, method: Callable[..., T], *args: Any) -> T:
        """Call a method as inside a guard. Nearly all calls are not timed, and cost no guard."""
        if state.record_plugin_metrics:
            with self.guard(rules.title, rules.doing, state):
                return method(*args)
        self.count(rules)
        try:
            return method(*args)
        except PLUGIN_FAULTS as error:
            raise self.failed(rules.doing, error) from error

    def checked(self, rules: PointRules, answer: Status | None) -> Status:
        """None is Success. Raises PluginFailure for a status that the point has no use for."""
        try:
            return rules.checked(answer)
        except MooringError as error:
            raise self.failed(rules.doing, error) from error

    def failed(self, doing: str, error: BaseException) -> PluginFailure:
        return PluginFailure(self.name, f"{doing.format(name=self.name)}: {describe(error)}")


class _Guard:
    """Around one call. A generator-based context manager would cost three times as much."""

    __slots__ = ("_call", "_doing", "_point", "_started", "_timed")

    def __init__(self, call: Calls, point: str, doing: str, timed: bool) -> None:
        self._call = call
        self._point = point
        self._doing = doing
        self._timed = timed
        self._started = 0.0

    def __enter__(self) -> None:
        if self._timed:
            self._started = self._call.metrics.timer()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if self._timed:
            metrics = self._call.metrics
            code = Code.SUCCESS if error is None else Code.ERROR
            spent_s = metrics.timer() - self._started
            metrics.plugin_duration(self._call.name, self._point, code.title, spent_s)
        if error is not None and is_fault(error):
            raise self._call.failed(self._doing, error) from error


def unexpected(status: Status) -> MooringError:
    """A status that the extension point has no use for."""
    if status.error is not None:
        error = MooringError(status.message)
        error.__cause__ = status.error
        return error
    return MooringError(status.message or f"status {status.code.title} is not allowed here")


def describe(error: BaseException) -> str:
    """What a plugin's exception says, with its type unless it is one raised on purpose."""
    if isinstance(error, MooringError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_METHODS = tuple(name for name in Calls.__annotations__)


def kinds_of(plugin: object, name: str) -> tuple[Kind, ...]:
    """`kinds` of a plugin, or of its class. Raises PluginError."""
    declared: object = getattr(plugin, "kinds", ())
    kinds = tuple(declared) if isinstance(declared, Iterable) else (declared,)
    for kind in kinds:
        if not isinstance(kind, Kind):
            raise PluginError(f'kinds of plugin "{name}" has {kind!r}; make kinds with custom_kind')
    return kinds


def _method(plugin: object, name: str) -> Any:
    """None if the plugin does not have it. The contract says what it takes and returns."""
    method = getattr(plugin, name, None)
    if not callable(method) or (name in PROMISES and not holds(plugin, name)):
        return None
    return method


def _signature_fields(plugin: object) -> tuple[str, ...] | None:
    """Raises PluginError if these are no names of fields."""
    fields: object = getattr(plugin, "signature_fields", None)
    if fields is None:
        return None
    if not isinstance(fields, tuple) or not all(isinstance(name, str) for name in fields):
        raise PluginError('signature_fields must be a tuple such as ("spec.tolerations",)')
    for name in fields:
        try:
            attrgetter(name)(_EMPTY_POD)
        except AttributeError:
            raise PluginError(
                f'signature_fields: pods have no field {name!r}; write it as in "spec.tolerations"'
            ) from None
    return fields if holds(plugin, "signature_fields") else None
