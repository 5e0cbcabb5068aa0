"""NodeResourcesFit: a pod fits on nodes with enough free resources; a strategy scores the nodes.

Filter counts what pods request. Score uses a default for containers that do not request cpu or
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.objects.devices import DeviceClass
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import wrap_int64
from mooring.objects.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Amounts,
    amount_of,
    is_extended,
    spec_requests,
)
from mooring.plugin import (
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Hint,
    Ints,
    NodeInfo,
    PluginError,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    on_add_or_update,
    on_update_or_delete,
    row_count,
    unresolvable,
    unschedulable,
)
from mooring.plugin.args import (
    CPU_AND_MEMORY,
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from mooring.plugin.changes import LowerRequest
from mooring.plugin.devices import DEVICE_CLASS_PREFIX
from mooring.plugin.groups import Placement, PodGroupAssignments, PodGroupInfo
from mooring.plugin.nodes import StateAmounts
from mooring.plugins import resource_scoring
from mooring.plugins.placement_usage import (
    PlacementUsage,
    placement_score,
    rows_scored_as_held,
    scored_as_held,
)
from mooring.plugins.resource_scoring import (
    NOT_SIGNABLE,
    Floats,
    Offers,
    ScoredRequest,
    Workspace,
)

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"

_PRE_FILTER = "PreFilterNodeResourcesFit"
_PRE_SCORE = "PreScoreNodeResourcesFit"

#: Reasons come in this order; reasons of scalar resources follow by name.
_FIRST_CLASS = (CPU, MEMORY, EPHEMERAL_STORAGE)

#: The bits of a row's code. After these, each demand has a bit, which says that it is not met.
_HOPELESS = 1
_FULL = 2
_FIRST_DEMAND = 4

_POD_EVENTS = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
_NODE_EVENTS = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
_CLASS_EVENTS = Action.ADD | Action.UPDATE


class Demand(NamedTuple):
    """A resource, and how much of it a pod requests: more than 0."""

    name: str
    amount: int


class _Demands(msgspec.Struct, frozen=True):
    """The state of PreFilter: the demands to check, in the order of their reasons."""

    demands: tuple[Demand, ...]


class _Asked(NamedTuple):
    """What Filter and Score count of a pod."""

    demands: tuple[Demand, ...]
    scored: ScoredRequest


class NodeResourcesFit:
    name = "NodeResourcesFit"
    #: Device classes decide which resources devices serve.
    depends_on_kinds = (DeviceClass,)
    #: See `runtime.usage_columns`.
    reads_usage_columns = True

    def __init__(self, args: NodeResourcesFitArgs | None, handle: Handle) -> None:
        args = args or NodeResourcesFitArgs()
        strategy = args.scoring_strategy
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._scored = strategy.resources or CPU_AND_MEMORY
        self._counted = resource_scoring.ScoredResources(self._scored)
        self._scores_states = strategy.type == LEAST_ALLOCATED and self._counted.are_plain
        self._score_node, self._score_rows = _strategy(strategy)
        self._served_by_devices = handle.cluster.device_classes
        self._device_counts = handle.cluster.device_counts
        self._infos = handle.cluster.infos
        self._workspace = resource_scoring.Workspace()
        self._offers = resource_scoring.KeptOffers()
        self._columns_of = resource_scoring.ScoredColumns()
        #: The pod that was last asked about, and what it requests.
        self._last_pod: Pod | None = None
        self._last_asked = _Asked((), ScoredRequest((), (), ()))
        #: A number for each set of failures that has more bits than an int64.
        self._wide_codes: dict[int, int] = {}
        self._placements = PlacementUsage(handle.cluster)

    # Filter

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        demands = self._demands(pod)
        if self._ignored or self._ignored_groups:
            demands = tuple(demand for demand in demands if not self._ignores(demand.name))
        state.write(_PRE_FILTER, _Demands(demands))
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """All reasons at once; unresolvable if a demand is larger than the whole node."""
        return self._verdict(_kept_demands(state), node)

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        """The same rule by resource: the failures of a row are the bits of its code."""
        demands = _kept_demands(state)
        full = _picked(columns.pod_count, rows) >= _picked(columns.allowed_pods, rows)
        codes: NDArray[Any] = np.zeros(len(full), _code_type(len(demands)))
        if np.count_nonzero(full):
            _set(codes, _FULL, full)
        for place, (name, amount) in enumerate(demands):
            index = columns.resources.get(name)
            if index is None:
                offered = left = np.zeros(len(full), np.int64)
            else:
                offered = _picked(columns.allocatable[index], rows)
                left = offered - _picked(columns.requested[index], rows)
            unmet = left < amount
            if not np.count_nonzero(unmet):
                continue
            if name in self._served_by_devices:
                unmet &= offered > 0
            _set(codes, _FIRST_DEMAND << place, unmet)
            _set(codes, _HOPELESS, unmet & (offered < amount))
        return self._verdicts(demands, codes)

    def passes_on_states(self, state: CycleState, pod: Pod, states: StateAmounts) -> bool:
        """Whether every state has room for the pod, as far as it requests cpu and memory alone."""
        cpu, memory, pods = states.left
        for name, amount in _kept_demands(state):
            if name not in (CPU, MEMORY):
                return False
            if np.count_nonzero((cpu if name == CPU else memory) < amount):
                return False
        return not np.count_nonzero(pods < 1.0)

    # Score

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        state.write(_PRE_SCORE, self._scored_request(pod))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        request = state.read(_PRE_SCORE, ScoredRequest) or self._scored_request(pod)
        held, offered = scored_as_held(node, request.names), node.allocatable
        allocatable = [offered.get(name, 0) for name in request.names]
        if 0 in allocatable:
            resource_scoring.count_devices(request, node, held, allocatable, self._device_counts)
        return self._score_node(request.added_to(held), allocatable, request.weights)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        wanted = state.read(_PRE_SCORE, ScoredRequest) or self._scored_request(pod)
        request = self._columns_of.request(wanted, columns)
        held = rows_scored_as_held(columns, request.indices, rows)
        allocatable: Ints | Offers = self._offers.of(columns, request.indices, rows)
        amounts, weights = request.amounts, request.weights
        if self._served_by_devices.any and any(map(self._device_counts.counts, wanted.names)):
            held, allocatable = resource_scoring.count_devices_of_rows(
                wanted,
                columns,
                rows,
                held,
                resource_scoring.gathered(columns.allocatable, request.indices, rows),
                self._device_counts,
                self._infos,
            )
            amounts, weights = map(resource_scoring.as_column, (wanted.amounts, wanted.weights))
        scores: Ints = np.empty(row_count(rows), np.int64)
        requested = self._workspace.sum(held, amounts)
        return self._score_rows(
            requested, allocatable, weights, out=scores, workspace=self._workspace
        )

    def score_states(self, state: CycleState, pod: Pod, states: StateAmounts) -> Floats | None:
        """The same by state; None if this is not how the resources are scored."""
        request = self._scored_request(pod)
        if not self._scores_states or not resource_scoring.is_exact_on_states(request):
            return None
        return resource_scoring.least_allocated_on_states(request, states)

    # Queueing

    def score_placement(self, group: PodGroupInfo, assignments: PodGroupAssignments) -> int:
        """How full the nodes would be together. The strategy for a single node does not matter."""
        return placement_score(self._scored, assignments)

    def placement_score_bounds(
        self, group: PodGroupInfo, placements: Sequence[Placement], snapshot: Snapshot
    ) -> Sequence[int] | None:
        """The score with all pods of the group placed."""
        return self._placements.bounds(self._scored, group, placements, snapshot)

    def events_to_register(self) -> Sequence[EventWithHint]:
        events: list[EventWithHint] = [
            on_update_or_delete(Pod, _POD_EVENTS, _after_pod_event),
            on_add_or_update(Node, _NODE_EVENTS, self._after_node_event),
        ]
        if self._served_by_devices.enabled:
            events.append(on_add_or_update(DeviceClass, _CLASS_EVENTS, _after_device_class_event))
        return events

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        """Less of each resource, down to the pod's overhead."""
        for resource, asked in pod.requests.items():
            overhead = pod.spec.overhead.get(resource)
            least = amount_of(resource, overhead) if overhead is not None else 0
            if asked > least:
                yield Suggestion(partial(_lower, resource, asked, least), asked - least)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sees_only_resources(self, pod: Pod) -> bool:
        """Devices are not among the columns. See `runtime.answers`."""
        return not self._served_by_devices.any

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """What Filter and Score count.

        The reference signs only what Filter counts, but with the defaults of Score, pods with the
        same requests may score differently.
        """
        if self._served_by_devices.serve_any_of(pod.requests):
            return NOT_SIGNABLE
        return {
            "v1.Pod.Spec.ContainerRequestsAndOverheads()": self._asked(pod).demands,
            "NodeResourcesFit.Score": self._asked(pod).scored,
        }

    def _ignores(self, name: str) -> bool:
        """Whether to ignore an extended resource, by its name or by its prefix before the slash."""
        return is_extended(name) and (
            name in self._ignored or name.partition("/")[0] in self._ignored_groups
        )

    def _demands(self, pod: Pod) -> tuple[Demand, ...]:
        return self._asked(pod).demands

    def _scored_request(self, pod: Pod) -> ScoredRequest:
        return self._asked(pod).scored

    def _asked(self, pod: Pod) -> _Asked:
        """What Filter and Score count; a new kind of pods is asked for it four times in a row."""
        if pod is not self._last_pod:
            request = self._counted.request(pod.scoring_requests)
            self._last_asked = _Asked(demands_of(pod.requests), request)
            self._last_pod = pod
        return self._last_asked

    def _verdict(self, demands: Sequence[Demand], node: NodeInfo) -> Status:
        reasons = []
        hopeless = False
        if len(node.pods) + 1 > node.allowed_pods:
            reasons.append(TOO_MANY_PODS)
        for name, amount in demands:
            offered = node.allocatable.get(name, 0)
            left = wrap_int64(offered - node.requested.get(name, 0))
            if amount > left and not self._left_to_devices(name, offered):
                reasons.append(INSUFFICIENT.format(name))
                hopeless = hopeless or amount > offered
        if not reasons:
            return SUCCESS
        return unresolvable(*reasons) if hopeless else unschedulable(*reasons)

    def _left_to_devices(self, name: str, offered: int) -> bool:
        """Whether DynamicResources judges this resource, on a node that offers this much."""
        return offered <= 0 and name in self._served_by_devices

    def _verdicts(self, demands: Sequence[Demand], codes: NDArray[Any]) -> RowVerdicts:
        if codes.dtype != np.object_:
            return RowVerdicts(codes, lambda code: _status(demands, code))
        numbers = self._wide_codes
        numbers.setdefault(0, 0)
        numbered = [numbers.setdefault(bits, len(numbers)) for bits in codes.tolist()]
        return RowVerdicts(
            np.array(numbered, np.int64), lambda code: _status(demands, list(numbers)[code])
        )

    def _after_node_event(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """Queue the pod if it fits on the empty node, and the node offers more than before.

        As in the reference, ignored resources are not ignored here.
        """
        demands = demands_of(pod.requests)
        after = _empty(new)
        if not self._verdict(demands, after).ok:
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        before = _empty(old)
        grown = after.allowed_pods > before.allowed_pods or any(
            after.allocatable.get(name, 0) > before.allocatable.get(name, 0)
            or self._left_to_devices(name, after.allocatable.get(name, 0))
            for name, _ in demands
        )
        return Hint.QUEUE if grown else Hint.SKIP


def _lower(resource: str, asked: int, least: int, step: int) -> LowerRequest:
    return LowerRequest(resource, asked, least + step)


def demands_of(requests: Amounts) -> tuple[Demand, ...]:
    """The demands in the order of their reasons. Requests of 0 or less are no demands."""
    first = [Demand(name, amount) for name in _FIRST_CLASS if (amount := requests.get(name, 0)) > 0]
    if len(first) == len(requests):
        return tuple(first)
    scalars = [name for name in requests if name not in _FIRST_CLASS and requests[name] > 0]
    return (*first, *[Demand(name, requests[name]) for name in sorted(scalars)])


class _NodeScorer(Protocol):
    def __call__(
        self, requested: Sequence[int], allocatable: Sequence[int], weights: Sequence[int], /
    ) -> int: ...


class _RowsScorer(Protocol):
    def __call__(
        self,
        requested: Ints,
        allocatable: Ints | Offers,
        weights: Ints,
        /,
        *,
        out: Ints,
        workspace: Workspace,
    ) -> Ints: ...


def _strategy(strategy: ScoringStrategy) -> tuple[_NodeScorer, _RowsScorer]:
    if strategy.type == LEAST_ALLOCATED:
        return resource_scoring.least_allocated_score, resource_scoring.least_allocated
    if strategy.type == MOST_ALLOCATED:
        return resource_scoring.most_allocated_score, resource_scoring.most_allocated
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO and strategy.requested_to_capacity_ratio:
        curve = resource_scoring.curve_of(strategy.requested_to_capacity_ratio.shape)
        return (
            partial(resource_scoring.requested_to_capacity_ratio_score, curve=curve),
            partial(resource_scoring.requested_to_capacity_ratio, curve=curve),
        )
    raise PluginError(f"scoring strategy {strategy.type} is not supported")


def _kept_demands(state: CycleState) -> tuple[Demand, ...]:
    kept = state.read(_PRE_FILTER, _Demands)
    if kept is None:
        raise PluginError(f'error reading "{_PRE_FILTER}" from cycleState: not found')
    return kept.demands


def _code_type(demands: int) -> type:
    """The smallest type for the bits of a code. Most pods need bytes; some need Python integers."""
    bits = _FIRST_DEMAND.bit_length() - 1 + demands
    if bits <= 8:
        return np.uint8
    return np.int64 if bits <= 63 else np.object_


def _picked(column: Ints, rows: Rows) -> Ints:
    """The values of these rows, not to be changed. `take` costs half of an index."""
    return column[rows] if isinstance(rows, slice) else column.take(rows)


def _set(codes: NDArray[Any], bit: int, where: NDArray[np.bool_]) -> None:
    np.bitwise_or(codes, bit, out=codes, where=where)


def _status(demands: Sequence[Demand], bits: int) -> Status:
    reasons = [TOO_MANY_PODS] if bits & _FULL else []
    reasons += [
        INSUFFICIENT.format(demand.name)
        for place, demand in enumerate(demands)
        if bits & _FIRST_DEMAND << place
    ]
    return unresolvable(*reasons) if bits & _HOPELESS else unschedulable(*reasons)


def _empty(node: Node) -> NodeInfo:
    """The node without pods."""
    info = NodeInfo(node.name)
    info.set_node(node)
    return info


def _after_pod_event(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    """Queue the pod if the other pod leaves a node, or holds less of a requested resource."""
    if new is None:
        return Hint.QUEUE if old.node_name or old.nominated_node_name else Hint.SKIP
    if new.uid == pod.uid:
        return Hint.QUEUE
    if not new.node_name:
        return Hint.SKIP
    # A huge quantity can wrap to a negative number, which counts as 0.
    shrunk = any(
        asked.unscaled != 0 and max(old.held.get(name, 0), 0) > max(new.held.get(name, 0), 0)
        for name, asked in pod.held_resources.items()
    )
    return Hint.QUEUE if shrunk else Hint.SKIP


def _after_device_class_event(pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
    """Queue the pod if the class now serves a resource that the pod names, even with quantity 0."""
    named = spec_requests(pod)
    explicit = new.spec.extended_resource_name
    if old is None:
        helps = DEVICE_CLASS_PREFIX + new.name in named or explicit in named
    else:
        helps = (old.spec.extended_resource_name or "") != (explicit or "") and explicit in named
    return Hint.QUEUE if helps else Hint.SKIP
