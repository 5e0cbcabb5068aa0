"""PodTopologySpread: pods that are alike are spread evenly over zones, hosts or other domains.

A constraint counts the pods it selects by domain, that is by value of a node label. A hard one
(DoNotSchedule) refuses a node whose domain would hold too many more than the emptiest; a soft one
(ScheduleAnyway) scores the fuller domains lower. A pod without constraints of its own gets the
default ones, which count the pods of its services and its controller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import ABSENT, Codes, Columns, Ints, LabelColumn, Mask, Rows
from mooring.cluster.deduced_selectors import DeducedSelectors
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.node_matching import RequiredNodeAffinity
from mooring.cluster.pod_counts import PodCounts, PodQuery, look_up
from mooring.cluster.row_counts import RowCounts, by_domain, domains_among
from mooring.cluster.snapshot import Snapshot
from mooring.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventWithHint, Hint, Resource
from mooring.framework.interface import MAX_SCORE, Depends, Handle
from mooring.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from mooring.framework.verdicts import RowVerdicts, by_table
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod, TopologySpreadConstraint
from mooring.objects.selectors import Selector, compile_selector, selector_from_map
from mooring.objects.taints import Taint, untolerated

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"

#: Users meet these texts in Events and in `kubectl describe`: they are the reference's, verbatim.
SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
MISSING_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
NOT_SIGNABLE = unschedulable("pods with topology constraints are not signable")
NOT_SIGNABLE_BY_DEFAULT = unschedulable("pods with default topology constraints are not signable")

#: What spreads a pod that asks for nothing, unless the configuration lists something else.
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)

_PRE_FILTER = "PreFilterPodTopologySpread"
_PRE_SCORE = "PreScorePodTopologySpread"

#: By the code that the all-rows form gives; a domain that is too full is True, which is 1.
_VERDICTS = (SUCCESS, SKEWED, MISSING_LABEL)
_MISSING_CODE = 2

#: The emptiest domain's count where there is no domain at all.
_NO_DOMAIN = 2**31 - 1

_POD_CHANGES = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
_NODE_CHANGES = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


@dataclass(frozen=True, slots=True)
class Constraint:
    """A spread constraint with its selector compiled and its defaults filled in."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    #: Leave out nodes that the pod's node selector and required node affinity exclude.
    honors_affinity: bool = True
    #: Leave out nodes with taints that the pod does not tolerate.
    honors_taints: bool = False


class PodTopologySpread:
    name = "PodTopologySpread"

    def __init__(self, args: PodTopologySpreadArgs | None, handle: Handle) -> None:
        args = args or PodTopologySpreadArgs()
        self._system_defaults = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_CONSTRAINTS if self._system_defaults else args.default_constraints
        #: By whether they are hard or soft.
        self._defaults: Mapping[str, Sequence[TopologySpreadConstraint]] = {
            action: [c for c in defaults if c.when_unsatisfiable == action]
            for action in (HARD, SOFT)
        }
        self._selectors = DeducedSelectors(handle.cluster.listers)

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status | None:
        try:
            constraints = self._constraints(pod, HARD)
        except ValueError as error:
            return failure(ValueError(f"get constraints from pod: {error}"))
        if not constraints:
            return SKIP
        state.write(_PRE_FILTER, _HardState.count(constraints, pod, snapshot))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        _hard_state(state).update(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        _hard_state(state).update(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """The first constraint that the node fails decides."""
        for spread in _hard_state(state).spreads:
            value = node.labels.get(spread.constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            if spread.skew_at(value) > spread.constraint.max_skew:
                return SKEWED
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        """The same for every row: judge each domain once, then look every row's domain up."""
        # From the last constraint to the first, so that the first one's verdict is what stays.
        verdicts: NDArray[np.int8] | None = None
        for spread in reversed(_hard_state(state).spreads):
            judged = look_up(spread.judge_domains(), spread.column.codes[rows])
            verdicts = judged if verdicts is None else np.where(judged, judged, verdicts)
        assert verdicts is not None, "PreFilter skips a pod without hard constraints"
        return by_table(verdicts, _VERDICTS)

    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        if not len(snapshot):
            return SKIP
        try:
            constraints = self._constraints(pod, SOFT)
        except ValueError as error:
            return failure(ValueError(f"calculating preScoreState: {error}"))
        if not constraints:
            return SKIP
        # The system's defaults let nodes without a zone compete by host alone.
        require_all = bool(pod.spec.topology_spread_constraints) or not self._system_defaults
        soft = _SoftState.count(constraints, pod, snapshot, rows, require_all=require_all)
        state.write(_PRE_SCORE, soft)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return _soft_state(state).score(node)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return _soft_state(state).score_rows(rows)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        """The lower the raw score, the higher the result; nodes that lack a label get nothing.

        ``100 * (max + min - score) // max`` over the nodes that count, 100 if the maximum is 0.
        """
        ignored = _soft_state(state).ignored
        scored = scores if ignored is None else scores[~ignored]
        highest = int(scored.max(initial=0))
        if highest == 0:
            scores[:] = MAX_SCORE
        else:
            np.subtract(highest + int(scored.min()), scores, out=scores)
            np.multiply(scores, MAX_SCORE, out=scores)
            np.floor_divide(scores, highest, out=scores)
        if ignored is not None:
            scores[ignored] = 0

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """Where pods of one kind go depends on where the others went, so none can be signed."""
        if pod.spec.topology_spread_constraints:
            return NOT_SIGNABLE
        return NOT_SIGNABLE_BY_DEFAULT if any(self._defaults.values()) else {}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.POD, _POD_CHANGES), self._after_pod_change),
            EventWithHint(ClusterEvent(Resource.NODE, _NODE_CHANGES), self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
        """Whether the pod counts for a constraint, and did not before or does not any more."""
        before, after = _as_pod(old), _as_pod(new)
        if any(other is not None and not _involved(other, pod) for other in (before, after)):
            return Hint.SKIP
        try:
            constraints = self._constraints(pod, HARD)
        except ValueError:
            return Hint.QUEUE
        selectors = [constraint.selector for constraint in constraints]
        if before is not None and after is not None:
            if (
                after.uid == pod.uid
                and after.spec.tolerations != before.spec.tolerations
                and any(constraint.honors_taints for constraint in constraints)
            ):
                return Hint.QUEUE
            changed = any(s.matches(before.labels) != s.matches(after.labels) for s in selectors)
            return Hint.QUEUE if changed else Hint.SKIP
        only = after or before
        matched = only is not None and any(s.matches(only.labels) for s in selectors)
        return Hint.QUEUE if matched else Hint.SKIP

    def _after_node_change(self, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
        """Whether the node's domains, or what keeps pods off it, are not what they were."""
        try:
            keys = [constraint.topology_key for constraint in self._constraints(pod, HARD)]
        except ValueError:
            return Hint.QUEUE
        before, after = _as_node(old), _as_node(new)
        counted_before = before is not None and _has_all(before.labels, keys)
        counts_after = after is not None and _has_all(after.labels, keys)
        if before is None or after is None:
            return Hint.QUEUE if counted_before or counts_after else Hint.SKIP
        if counted_before != counts_after:
            return Hint.QUEUE
        changed = before.taints != after.taints or any(
            before.labels.get(key) != after.labels.get(key) for key in keys
        )
        return Hint.QUEUE if counts_after and changed else Hint.SKIP

    def _constraints(self, pod: Pod, action: str) -> list[Constraint]:
        """Those in effect. Raises ValueError if a selector is malformed.

        A pod's own constraint of either action keeps the defaults of both away.
        """
        own = pod.spec.topology_spread_constraints
        kind = "hard" if action == HARD else "soft"
        try:
            if own:
                context = f"obtaining pod's {kind} topology spread constraints"
                return [_compile(c, pod) for c in own if c.when_unsatisfiable == action]
            context = f"setting default {kind} topology spread constraints"
            return self._default_constraints(pod, action)
        except ValueError as error:
            raise ValueError(f"{context}: {error}") from error

    def _default_constraints(self, pod: Pod, action: str) -> list[Constraint]:
        defaults = self._defaults[action]
        if not defaults:
            return []
        selector = self._selectors.of(pod)
        if selector.everything:
            return []
        return [_with_defaults(constraint, selector) for constraint in defaults]


def _compile(constraint: TopologySpreadConstraint, pod: Pod) -> Constraint:
    selector = compile_selector(constraint.label_selector)
    merged = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    # A selector that was not given goes on matching nothing, whatever is added to it.
    return _with_defaults(constraint, selector.plus(selector_from_map(merged).requirements))


def _with_defaults(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


class _Inclusion:
    """Which nodes count for a pod's constraints, by their inclusion policies."""

    def __init__(self, pod: Pod, columns: Columns) -> None:
        self._tolerations = pod.spec.tolerations
        self._affinity = RequiredNodeAffinity.of(pod)
        self._columns = columns

    def accepts(self, constraint: Constraint, node: NodeInfo) -> bool:
        if constraint.honors_affinity and not self._affinity.matches(node):
            return False
        return not constraint.honors_taints or self._tolerates(node.taints)

    def accepted_rows(self, constraint: Constraint) -> Mask | None:
        """bool[row]: the same for every row; None where every node counts."""
        accepted = self._affine_rows if constraint.honors_affinity else None
        if constraint.honors_taints:
            accepted = _both(accepted, self._tolerated_rows)
        return accepted

    def _tolerates(self, taints: tuple[Taint, ...]) -> bool:
        return untolerated(taints, self._tolerations) is None

    @cached_property
    def _affine_rows(self) -> Mask | None:
        if self._affinity.selector.everything and self._affinity.terms is None:
            return None
        return self._affinity.match_rows(self._columns, self._columns.all_rows)

    @cached_property
    def _tolerated_rows(self) -> Mask:
        columns = self._columns
        return columns.taint_sets.judge(self._tolerates, columns.all_rows)


@dataclass(slots=True)
class _Spread:
    """How the pods that a hard constraint counts are spread over its domains."""

    constraint: Constraint
    column: LabelColumn
    #: int64[domain + 1]: pods by the column's code; the last place is not a domain.
    counts: Ints
    #: bool[domain + 1]: whether a node that counts is in the domain.
    exists: Mask
    #: 1 if the incoming pod would be counted itself.
    own: int

    @property
    def global_minimum(self) -> int:
        """What the emptiest domain holds; 0 if there are fewer domains than there should be."""
        if np.count_nonzero(self.exists) < self.constraint.min_domains:
            return 0
        return int(self.counts.min(initial=_NO_DOMAIN, where=self.exists))

    def skew_at(self, value: str) -> int:
        """By how much this domain would exceed the emptiest if the pod were put there."""
        code = self.column.code_of(value)
        count = 0 if code == ABSENT else int(self.counts[code])
        return count + self.own - self.global_minimum

    def judge_domains(self) -> NDArray[np.int8]:
        """int8[domain + 1]: the verdict on a node of each domain, and on one without the label."""
        skews = self.counts + (self.own - self.global_minimum)
        verdicts = (skews > self.constraint.max_skew).view(np.int8)
        verdicts[-1] = _MISSING_CODE
        return verdicts

    def add(self, value: str, delta: int) -> None:
        code = self.column.code_of(value)
        if code != ABSENT:
            self.counts[code] += delta

    def clone(self) -> _Spread:
        return _Spread(self.constraint, self.column, self.counts.copy(), self.exists, self.own)


@dataclass(slots=True)
class _HardState:
    """What PreFilter counted, constraint by constraint."""

    spreads: list[_Spread]
    inclusion: _Inclusion

    @classmethod
    def count(cls, constraints: Sequence[Constraint], pod: Pod, snapshot: Snapshot) -> _HardState:
        columns = snapshot.columns
        rows = columns.all_rows
        inclusion = _Inclusion(pod, columns)
        labels = [columns.label(constraint.topology_key) for constraint in constraints]
        complete = _complete(labels, rows)
        spreads = []
        for constraint, column in zip(constraints, labels, strict=True):
            accepted = _both(complete, inclusion.accepted_rows(constraint))
            counts = _counts(snapshot.pod_counts, constraint, pod.namespace)
            if accepted is None and counts is not None:
                sums = counts.by_domain(column, columns)
                totals, exists = sums.totals.copy(), sums.exists
            else:
                codes = _only(accepted, column.codes[rows])
                totals = _totals(column, codes, counts, rows)
                exists = domains_among(codes, len(column.values))
                exists[-1] = False
            spreads.append(
                _Spread(
                    constraint,
                    column,
                    counts=totals,
                    exists=exists,
                    own=int(constraint.selector.matches(pod.labels)),
                )
            )
        return cls(spreads, inclusion)

    def update(self, pod: Pod, other: Pod, node: NodeInfo, delta: int) -> None:
        """Another pod comes to a node, or leaves it.

        It is counted even if it is being deleted or the selector is empty, as the reference does it
        here, though neither is counted by PreFilter.
        """
        labels = node.labels
        keys = (spread.constraint.topology_key for spread in self.spreads)
        if other.namespace != pod.namespace or node.node is None or not _has_all(labels, keys):
            return
        for spread in self.spreads:
            constraint = spread.constraint
            if constraint.selector.matches(other.labels) and self.inclusion.accepts(
                constraint, node
            ):
                spread.add(labels[constraint.topology_key], delta)

    def clone(self) -> _HardState:
        return _HardState([spread.clone() for spread in self.spreads], self.inclusion)


@dataclass(frozen=True, slots=True)
class _SoftSpread:
    """How much each domain's pods weigh for a soft constraint."""

    constraint: Constraint
    column: LabelColumn
    #: int64[domain + 1]: pods by the column's code. None for the hostname: there each node is its
    #: own domain, whatever the label says, and the inclusion policies do not matter.
    totals: Ints | None
    #: int64[row]: pods on each row. None if none can be counted.
    counts: Ints | None
    #: The natural logarithm of the number of domains and two: few domains weigh less.
    weight: float
    namespace: str

    def score(self, node: NodeInfo) -> float:
        """What a node adds to its score, given that it has the label."""
        if self.totals is None:
            count = _count_on(node, self.constraint, self.namespace)
        else:
            code = self.column.code_of(node.labels[self.constraint.topology_key])
            count = 0 if code == ABSENT else int(self.totals[code])
        return float(count) * self.weight + float(self.constraint.max_skew - 1)

    def score_rows(self, rows: Rows) -> NDArray[np.float64]:
        """float64[row asked for]: the same for many rows, 0 for one without the label."""
        codes = self.column.codes[rows]
        if self.totals is not None:
            by_code = self._scores(self.totals)
            by_code[-1] = 0.0
            return look_up(by_code, codes)
        counts = np.zeros(len(codes), np.int64) if self.counts is None else self.counts[rows]
        return np.where(codes == ABSENT, 0.0, self._scores(counts))

    def _scores(self, counts: Ints) -> NDArray[np.float64]:
        return counts.astype(np.float64) * self.weight + float(self.constraint.max_skew - 1)


@dataclass(frozen=True, slots=True)
class _SoftState:
    """What PreScore counted, constraint by constraint."""

    spreads: list[_SoftSpread]
    #: bool[feasible row]: nodes that lack a label they need to be compared by. None if none do.
    ignored: Mask | None
    #: Whether nodes need every label; otherwise a missing one stands for the empty value.
    require_all: bool

    @classmethod
    def count(
        cls,
        constraints: Sequence[Constraint],
        pod: Pod,
        snapshot: Snapshot,
        feasible: Rows,
        *,
        require_all: bool,
    ) -> _SoftState:
        columns = snapshot.columns
        rows = columns.all_rows
        inclusion = _Inclusion(pod, columns)
        labels = [columns.label(constraint.topology_key) for constraint in constraints]
        complete = _complete(labels, rows) if require_all else None
        ignored = _lacking_any(labels, feasible) if require_all else None
        candidates = None if ignored is None else ~ignored

        def domains(column: LabelColumn, which: Rows, accepted: Mask | None) -> Codes:
            codes = column.codes[which]
            if not require_all:
                codes = _or_empty_value(column, codes, columns.alive[which])
            return _only(accepted, codes)

        spreads = []
        for constraint, column in zip(constraints, labels, strict=True):
            counts = _counts(snapshot.pod_counts, constraint, pod.namespace)
            if constraint.topology_key == HOSTNAME:
                totals = None
                size = len(columns.alive[feasible]) if candidates is None else candidates.sum()
            else:
                found = domains_among(domains(column, feasible, candidates), len(column.values))
                # Without all labels required, nodes that lack this one are in a domain as well.
                size = np.count_nonzero(found[:-1] if require_all else found)
                accepted = _both(complete, inclusion.accepted_rows(constraint))
                totals = _totals(column, domains(column, rows, accepted), counts, rows)
            weight = math.log(int(size) + 2)
            by_row = None if counts is None else counts.counts
            spreads.append(_SoftSpread(constraint, column, totals, by_row, weight, pod.namespace))
        return cls(spreads, ignored, require_all)

    def score(self, node: NodeInfo) -> int:
        """The sum over the constraints whose label the node has, in their order, rounded."""
        total = 0.0
        for spread in self.spreads:
            if spread.constraint.topology_key in node.labels:
                total += spread.score(node)
            elif self.require_all:
                return 0
        return math.floor(total + 0.5)

    def score_rows(self, rows: Rows) -> Ints:
        """int64[row asked for]: the same for many rows. A label that is missing adds 0.

        To round half away from zero, adding a half and cutting off is exact here: it could only err
        between 0 and 0.5, and a score is a sum of integers and of multiples of logarithms above it.
        """
        first, *others = self.spreads
        total = first.score_rows(rows)
        for spread in others:
            total += spread.score_rows(rows)
        total += 0.5
        scores = np.floor(total, out=total).astype(np.int64)
        if self.require_all:
            for spread in self.spreads:
                scores[spread.column.codes[rows] == ABSENT] = 0
        return scores


def _hard_state(state: CycleState) -> _HardState:
    found = state.read(_PRE_FILTER, _HardState)
    if found is None:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: not found')
    return found


def _soft_state(state: CycleState) -> _SoftState:
    found = state.read(_PRE_SCORE, _SoftState)
    if found is None:
        raise PluginError(f'error reading "{_PRE_SCORE}" from cycleState: not found')
    return found


def _complete(labels: Sequence[LabelColumn], rows: Rows) -> Mask | None:
    """bool[row]: which rows have all labels; None of one label, where the code says it already."""
    complete: Mask | None = None
    for column in labels if len(labels) > 1 else ():
        complete = _both(complete, column.codes[rows] != ABSENT)
    return complete


def _lacking_any(labels: Sequence[LabelColumn], rows: Rows) -> Mask | None:
    """bool[row asked for]: which rows lack one of the labels; None if none does."""
    first, *others = (column.codes[rows] == ABSENT for column in labels)
    for lacking in others:
        first |= lacking
    return first if first.any() else None


def _or_empty_value(column: LabelColumn, codes: Codes, alive: Mask) -> Codes:
    """Put nodes without the label into the domain of the empty value, if there is one."""
    empty = column.code_of("")
    if empty == ABSENT:
        return codes
    return np.where(alive & (codes == ABSENT), np.int32(empty), codes)


def _only(accepted: Mask | None, codes: Codes) -> Codes:
    """The codes of accepted rows; ABSENT for the others."""
    return codes if accepted is None else np.where(accepted, codes, np.int32(ABSENT))


def _totals(column: LabelColumn, codes: Codes, counts: RowCounts | None, rows: Rows) -> Ints:
    """int64[domain + 1]: the pods of each domain."""
    domains = len(column.values)
    if counts is None:
        return np.zeros(domains + 1, np.int64)
    return by_domain(codes, counts.counts[rows], domains)


def _both(some: Mask | None, others: Mask | None) -> Mask | None:
    """Where both hold; None stands for everywhere."""
    if some is None or others is None:
        return others if some is None else some
    return some & others


def _counts(pod_counts: PodCounts, constraint: Constraint, namespace: str) -> RowCounts | None:
    """The pods that a constraint counts, row by row.

    None if there are none: an empty selector matches every pod and yet counts none, as upstream.
    """
    selector = constraint.selector
    if selector.everything or selector.nothing:
        return None
    return pod_counts.kept(PodQuery(selector, frozenset((namespace,)), terminating=False))


def _count_on(node: NodeInfo, constraint: Constraint, namespace: str) -> int:
    """The same for one node."""
    if constraint.selector.everything:
        return 0
    query = PodQuery(constraint.selector, frozenset((namespace,)), terminating=False)
    return sum(1 for pod in node.pods.values() if query.picks(pod))


def _has_all(labels: Mapping[str, str], keys: Iterable[str]) -> bool:
    return all(key in labels for key in keys)


def _involved(other: Pod, pod: Pod) -> bool:
    """Whether a change of the other pod can matter: it is the pod, or placed in its namespace."""
    return other.uid == pod.uid or (
        bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace
    )


def _as_pod(obj: KubeObject | None) -> Pod | None:
    return obj if isinstance(obj, Pod) else None


def _as_node(obj: KubeObject | None) -> Node | None:
    return obj if isinstance(obj, Node) else None
