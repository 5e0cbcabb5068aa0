"""InterPodAffinity: pods are drawn to, or kept away from, the places of other pods.

A term names pods and a topology key; two nodes are one place if they have the same value of that
label. Required terms filter: the incoming pod's affinity and anti-affinity, and the anti-affinity of
the pods that are placed already. Preferred terms score, in both directions, and so does the required
affinity of placed pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.affinity_terms import HeldTerm, TermKind
from mooring.cluster.columns import (
    ABSENT,
    Columns,
    Ints,
    LabelColumn,
    Mask,
    Rows,
    row_count,
)
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.pod_counts import MOST_COUNTERS, PodCounts, PodQuery, look_up
from mooring.cluster.row_counts import RowCounts
from mooring.cluster.snapshot import Snapshot
from mooring.config.args import InterPodAffinityArgs
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
from mooring.objects.affinity import AffinityTerm, PodTerms
from mooring.objects.kinds import Namespace
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from mooring.objects.selectors import Selector, compile_selector

#: Users meet these texts in Events and in `kubectl describe`: they are the reference's, verbatim.
NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
NOT_SIGNABLE = unschedulable("pods with InterPodAffinity are not signable")

#: The name of the pod's labels in a signature.
LABELS = "v1.Pod.Labels"

_PRE_FILTER = "PreFilterInterPodAffinity"
_PRE_SCORE = "PreScoreInterPodAffinity"

#: By the code that the all-rows form gives: of several verdicts on a node, the highest counts.
_VERDICTS = (SUCCESS, EXISTING_ANTI_AFFINITY, ANTI_AFFINITY, NO_AFFINITY)
_EXISTING_CODE, _ANTI_CODE, _AFFINITY_CODE = 1, 2, 3

#: How errors call the required terms.
_REQUIRED, _REQUIRED_ANTI = "requiredAffinityTerms", "requiredAntiAffinityTerms"

_POD_CHANGES = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
_NODE_CHANGES = Action.ADD | Action.UPDATE_NODE_LABEL


class InterPodAffinity:
    name = "InterPodAffinity"

    def __init__(self, args: InterPodAffinityArgs | None, handle: Handle) -> None:
        args = args or InterPodAffinityArgs()
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        self._listers = handle.cluster.listers
        self._queries: dict[PodTerms, _Queries] = {}
        # Which namespaces a term selects is up to these.
        self._listers.follow(Namespace, lambda _: self._queries.clear())

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status | None:
        terms = pod.affinity_terms
        if terms.problem:
            return unresolvable(f"parsing pod: {_problems(pod)}")
        namespace_labels = self._listers.namespace_labels(pod.namespace)
        speaking = snapshot.held_terms.speaking_of(pod, namespace_labels)
        if not speaking and not terms.any:
            return SKIP
        existing = TopologyCounts(snapshot.columns)
        for held in speaking:
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY:
                existing.add_rows(held.term.topology_key, held.rows)
        if not (existing.touched or terms.required_affinity or terms.required_anti_affinity):
            return SKIP
        required = _Required(
            pod=pod,
            namespace_labels=namespace_labels,
            queries=self._queries_of(terms),
            affinity=TopologyCounts(snapshot.columns),
            anti=TopologyCounts(snapshot.columns),
            existing_anti=existing,
        )
        required.count(snapshot.pod_counts)
        state.write(_PRE_FILTER, required)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        _required(state).update(added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        _required(state).update(removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        required = _required(state)
        labels = node.labels
        if not required.satisfies_affinity(labels):
            return NO_AFFINITY
        if any(required.anti.at(key, labels) > 0 for key, _ in required.queries.anti):
            return ANTI_AFFINITY
        if any(required.existing_anti.at(key, labels) > 0 for key in required.existing_anti.keys):
            return EXISTING_ANTI_AFFINITY
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        """The same for every row: judge each domain of each key once, then look the rows up."""
        verdicts: NDArray[np.int8] | None = None
        for column, judged in _required(state).judge_domains():
            found = look_up(judged, column.codes[rows])
            verdicts = found if verdicts is None else np.maximum(verdicts, found, out=verdicts)
        if verdicts is None:
            verdicts = np.zeros(row_count(rows), np.int8)
        return by_table(verdicts, _VERDICTS)

    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        """Add up the weight of every domain, feasible or not; Skip if no pod had any say in it."""
        if self._ignore_existing and not _has_preferences(pod):
            return SKIP
        terms = pod.affinity_terms
        if terms.problem:
            return failure(ValueError(f"failed to parse pod: {_problems(pod)}"))
        namespace_labels = self._listers.namespace_labels(pod.namespace)
        speaking = snapshot.held_terms.speaking_of(pod, namespace_labels)
        if not speaking and not terms.any:
            return SKIP
        weights = TopologyCounts(snapshot.columns)
        if terms.preferred_affinity or terms.preferred_anti_affinity:
            for key, weight, query in self._queries_of(terms).preferred:
                weights.add_rows(key, snapshot.pod_counts.kept(query), weight)
        for held in speaking:
            if (given := self._weight_of(held)) is not None:
                weights.add_rows(held.term.topology_key, held.rows, given)
        if not weights.touched:
            return SKIP
        state.write(_PRE_SCORE, weights)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        weights = _weights(state)
        return sum(weights.at(key, node.labels) for key in weights.keys)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores: Ints | None = None
        for column, totals in _weights(state).tables():
            found = look_up(totals, column.codes[rows])
            scores = found if scores is None else np.add(scores, found, out=scores)
        return np.zeros(row_count(rows), np.int64) if scores is None else scores

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        """Stretch them from 0 to 100: ``int(100.0 * ((score - min) / (max - min)))``.

        The quotient comes first and is rounded to a float64, so 29 of 100 becomes 28.
        """
        if not len(scores):
            return
        lowest = scores.min()
        spread = float(scores.max() - lowest)
        if spread == 0:
            scores[:] = 0
        else:
            shares = np.divide(scores - lowest, spread)
            scores[:] = np.multiply(shares, MAX_SCORE, out=shares)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        affinity = pod.spec.affinity
        if affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        ):
            return NOT_SIGNABLE
        return {} if self._ignore_existing else {LABELS: pod.label_items}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.POD, _POD_CHANGES), _after_pod_change),
            EventWithHint(ClusterEvent(Resource.NODE, _NODE_CHANGES), _after_node_change),
        )

    def _weight_of(self, held: HeldTerm) -> int | None:
        """What a placed pod's term gives to its domain if it speaks of the incoming pod."""
        match held.kind:
            case TermKind.REQUIRED_AFFINITY if self._hard_weight > 0:
                return self._hard_weight
            case TermKind.PREFERRED_AFFINITY:
                return held.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -held.weight
        return None

    def _queries_of(self, terms: PodTerms) -> _Queries:
        """Pods of one make ask the same, so this is found once for all of them."""
        queries = self._queries.get(terms)
        if queries is None:
            if len(self._queries) >= MOST_COUNTERS:
                self._queries.clear()
            queries = self._queries[terms] = self._compile(terms)
        return queries

    def _compile(self, terms: PodTerms) -> _Queries:
        return _Queries(
            affinity_keys=tuple(term.topology_key for term in terms.required_affinity),
            affinity=self._query_of_all(terms.required_affinity),
            anti=tuple(
                (term.topology_key, self._query(term)) for term in terms.required_anti_affinity
            ),
            preferred=tuple(
                (term.topology_key, sign * weight, self._query(term))
                for sign, preferred in (
                    (1, terms.preferred_affinity),
                    (-1, terms.preferred_anti_affinity),
                )
                for weight, term in preferred
            ),
        )

    def _query(self, term: AffinityTerm) -> PodQuery:
        """The pods that a term of the incoming pod speaks of.

        The namespaces it selects are named; after that no namespace's labels are looked at. But the
        selector is still asked, of no labels at all. So one that accepts that (it is empty, or made
        of NotIn and DoesNotExist) covers every namespace, which is a trap of the reference.
        """
        selector = term.namespace_selector
        if selector.matches({}):
            return PodQuery(term.selector, None)
        if selector.nothing:
            return PodQuery(term.selector, term.namespaces)
        selected = (
            namespace.name
            for namespace in self._listers.all(Namespace)
            if selector.matches(namespace.labels)
        )
        return PodQuery(term.selector, term.namespaces.union(selected))

    def _query_of_all(self, terms: Iterable[AffinityTerm]) -> PodQuery | None:
        """The pods that all of the terms speak of; None if there are no terms."""
        queries = [self._query(term) for term in terms]
        if len(queries) < 2:
            return queries[0] if queries else None
        namespaces = [query.namespaces for query in queries if query.namespaces is not None]
        return PodQuery(
            Selector(
                tuple(r for query in queries for r in query.selector.requirements),
                nothing=any(query.selector.nothing for query in queries),
            ),
            frozenset.intersection(*namespaces) if namespaces else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queries:
    """The pods that a pod's own terms speak of."""

    #: The topology key of each required affinity term.
    affinity_keys: tuple[str, ...]
    #: The pods that match all of those terms at once: no others count for any of them.
    affinity: PodQuery | None
    #: The topology key and the pods of each required anti-affinity term: they count one by one.
    anti: tuple[tuple[str, PodQuery], ...]
    #: The topology key, the weight (below 0 for anti-affinity) and the pods of each preferred term.
    preferred: tuple[tuple[str, int, PodQuery], ...]


class TopologyCounts:
    """A number for each value of each topology key; 0 for those that nothing was added to."""

    __slots__ = ("_borrowed", "_columns", "_tables", "touched")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        #: Topology key → its column, and int64[domain + 1] by the column's code. The last place, which
        #: ABSENT finds, stays 0.
        self._tables: dict[str, tuple[LabelColumn, Ints]] = {}
        #: Keys whose table is that of a count which is kept: not to be written to.
        self._borrowed: set[str] = set()
        #: Whether some pod was ever counted, be it with 0.
        self.touched = False

    @property
    def keys(self) -> Iterable[str]:
        return self._tables.keys()

    @property
    def empty(self) -> bool:
        return not any(totals.any() for _, totals in self._tables.values())

    def tables(self) -> Iterable[tuple[LabelColumn, Ints]]:
        return self._tables.values()

    def at(self, key: str, labels: Mapping[str, str]) -> int:
        """For a node with these labels; 0 if it does not have the key."""
        if key not in self._tables:
            return 0
        column, totals = self._tables[key]
        return int(totals[column.code_of(labels.get(key))])

    def add_rows(self, key: str, counts: RowCounts, weight: int = 1) -> None:
        """Add the pods that are counted, each with a weight, to the domains of their rows."""
        known = self._tables.get(key)
        column = self._columns.label(key) if known is None else known[0]
        sums = counts.by_domain(column, self._columns)
        self.touched = self.touched or sums.all != 0
        if known is None and weight == 1:
            # Mostly there is nothing to add to it, and with a domain a node it is long.
            self._tables[key] = column, sums.totals
            self._borrowed.add(key)
            return
        added = sums.totals if weight == 1 else weight * sums.totals
        if known is None:
            self._tables[key] = column, added
        else:
            totals = self._own(key)
            totals += added

    def add(self, key: str, labels: Mapping[str, str], delta: int) -> None:
        """Add to the domain of a node with these labels, if it is in one."""
        if key not in self._tables:
            column = self._columns.label(key)
            self._tables[key] = column, np.zeros(len(column.values) + 1, np.int64)
        code = self._tables[key][0].code_of(labels.get(key))
        if code != ABSENT:
            self._own(key)[code] += delta

    def clone(self) -> TopologyCounts:
        other = TopologyCounts(self._columns)
        other._tables = {
            key: (column, totals.copy()) for key, (column, totals) in self._tables.items()
        }
        other.touched = self.touched
        return other

    def _own(self, key: str) -> Ints:
        """A table that may be written to."""
        column, totals = self._tables[key]
        if key in self._borrowed:
            self._borrowed.discard(key)
            totals = totals.copy()
            self._tables[key] = column, totals
        return totals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Required:
    """What PreFilter counted for the required terms, the pod's own and those of placed pods."""

    pod: Pod
    #: Of the pod's namespace, for the selectors of placed pods' terms.
    namespace_labels: Mapping[str, str]
    queries: _Queries
    affinity: TopologyCounts
    anti: TopologyCounts
    #: Placed pods whose required anti-affinity speaks of the pod.
    existing_anti: TopologyCounts

    def count(self, pod_counts: PodCounts) -> None:
        queries = self.queries
        if queries.affinity is not None:
            counts = pod_counts.kept(queries.affinity)
            for key in queries.affinity_keys:
                self.affinity.add_rows(key, counts)
        for key, query in queries.anti:
            self.anti.add_rows(key, pod_counts.kept(query))

    def update(self, other: Pod, node: NodeInfo, delta: int) -> None:
        """Another pod comes to a node, or leaves it."""
        pod, labels, queries = self.pod, node.labels, self.queries
        for term in other.affinity_terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                self.existing_anti.add(term.topology_key, labels, delta)
        if queries.affinity is not None and queries.affinity.picks(other):
            for key in queries.affinity_keys:
                self.affinity.add(key, labels, delta)
        for key, query in queries.anti:
            if query.picks(other):
                self.anti.add(key, labels, delta)

    def satisfies_affinity(self, labels: Mapping[str, str]) -> bool:
        """A node needs every key, and in each of those places a pod that matches all terms."""
        keys = self.queries.affinity_keys
        if not all(key in labels for key in keys):
            return False
        return all(self.affinity.at(key, labels) > 0 for key in keys) or self.is_first_of_its_kind

    @property
    def is_first_of_its_kind(self) -> bool:
        """A pod drawn to its like may go anywhere while there is none, or it would wait forever."""
        query = self.queries.affinity
        return query is not None and self.affinity.empty and query.picks(self.pod)

    def judge_domains(self) -> Iterator[tuple[LabelColumn, NDArray[np.int8]]]:
        """int8[domain + 1] for each key: the verdict on its domains, and on nodes without it."""
        verdicts: dict[LabelColumn, NDArray[np.int8]] = {}

        def refuse(column: LabelColumn, refused: Mask, code: int) -> None:
            judged = refused.view(np.int8)
            judged *= np.int8(code)
            known = verdicts.get(column)
            verdicts[column] = judged if known is None else np.maximum(known, judged, out=known)

        for column, totals in self.existing_anti.tables():
            refuse(column, totals > 0, _EXISTING_CODE)
        for column, totals in self.anti.tables():
            refuse(column, totals > 0, _ANTI_CODE)
        first = self.is_first_of_its_kind
        for column, totals in self.affinity.tables():
            unmatched = np.zeros_like(totals, np.bool_) if first else totals <= 0
            unmatched[-1] = True
            refuse(column, unmatched, _AFFINITY_CODE)
        return iter(verdicts.items())

    def clone(self) -> _Required:
        return replace(
            self,
            affinity=self.affinity.clone(),
            anti=self.anti.clone(),
            existing_anti=self.existing_anti.clone(),
        )


def _required(state: CycleState) -> _Required:
    found = state.read(_PRE_FILTER, _Required)
    if found is None:
        raise PluginError(f'error reading "{_PRE_FILTER}" from cycleState: not found')
    return found


def _weights(state: CycleState) -> TopologyCounts:
    found = state.read(_PRE_SCORE, TopologyCounts)
    if found is None:
        raise PluginError(f'failed to read "{_PRE_SCORE}" from cycleState: not found')
    return found


def _after_pod_change(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
    """Whether a pod that this one waits for came, or one that keeps it away left.

    As upstream, terms are matched without the labels of namespaces, and a pod that keeps this one
    away has to match all anti-affinity terms, though Filter heeds any of them.
    """
    before, after = _as_pod(old), _as_pod(new)
    if before is not None and after is not None and after.uid == pod.uid:
        return Hint.QUEUE
    if any(other is not None and not _placed(other) for other in (before, after)):
        return Hint.SKIP
    if _unreadable(pod, _REQUIRED, _REQUIRED_ANTI):
        return Hint.QUEUE
    affinity = pod.affinity_terms.required_affinity
    anti = pod.affinity_terms.required_anti_affinity
    if before is not None and after is not None:
        came = not _matches_all(affinity, before) and _matches_all(affinity, after)
        left = _matches_all(anti, before) and not _matches_all(anti, after)
        return Hint.QUEUE if came or left else Hint.SKIP
    if after is not None:
        return Hint.QUEUE if _matches_all(affinity, after) else Hint.SKIP
    if before is None or _matches_all(anti, before) or _unreadable(before, _REQUIRED_ANTI):
        return Hint.QUEUE
    theirs = before.affinity_terms.required_anti_affinity
    return Hint.QUEUE if _matches_all(theirs, pod) else Hint.SKIP


def _after_node_change(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
    """Whether a node joined a domain that the pod's terms look at, or left one it is kept from."""
    before, after = _as_node(old), _as_node(new)
    if after is None or _unreadable(pod, _REQUIRED, _REQUIRED_ANTI):
        return Hint.QUEUE
    anti_affinity = pod.affinity_terms.required_anti_affinity
    if before is None and anti_affinity:
        return Hint.QUEUE
    old_labels = before.labels if before is not None else {}
    for term in pod.affinity_terms.required_affinity:
        value = after.labels.get(term.topology_key)
        if value is not None and value != old_labels.get(term.topology_key):
            return Hint.QUEUE
    for term in anti_affinity:
        value = old_labels.get(term.topology_key)
        if value is not None and value != after.labels.get(term.topology_key):
            return Hint.QUEUE
    return Hint.SKIP


def _placed(pod: Pod) -> bool:
    return bool(pod.node_name or pod.nominated_node_name)


def _matches_all(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """No terms match no pod."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _unreadable(pod: Pod, *kinds: str) -> bool:
    """Whether terms of these kinds are malformed: a hint that cannot tell lets the pod be tried."""
    return bool(pod.affinity_terms.problem) and any(
        _problem(terms) for kind, terms in _kinds(pod) if kind in kinds
    )


def _has_preferences(pod: Pod) -> bool:
    affinity = pod.spec.affinity or Affinity()
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(side is not None and side.preferred for side in sides)


def _problems(pod: Pod) -> str:
    """What is wrong with the pod's terms, kind by kind, as the reference words it."""
    problems = [f"{kind}: {problem}" for kind, terms in _kinds(pod) if (problem := _problem(terms))]
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _kinds(pod: Pod) -> Iterator[tuple[str, Sequence[PodAffinityTerm]]]:
    affinity = pod.spec.affinity or Affinity()
    toward, away = (
        side or PodAffinity() for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
    yield _REQUIRED, toward.required
    yield _REQUIRED_ANTI, away.required
    yield "preferredAffinityTerms", [term.pod_affinity_term for term in toward.preferred]
    yield "preferredAntiAffinityTerms", [term.pod_affinity_term for term in away.preferred]


def _problem(terms: Iterable[PodAffinityTerm]) -> str:
    """What is wrong with the first term that cannot be read; "" if all can."""
    try:
        for term in terms:
            compile_selector(term.label_selector)
            compile_selector(term.namespace_selector)
    except ValueError as error:
        return str(error)
    return ""


def _as_pod(obj: KubeObject | None) -> Pod | None:
    return obj if isinstance(obj, Pod) else None


def _as_node(obj: KubeObject | None) -> Node | None:
    return obj if isinstance(obj, Node) else None
