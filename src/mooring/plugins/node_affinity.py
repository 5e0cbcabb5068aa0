"""NodeAffinity: a pod's nodeSelector and node affinity filter and score nodes.

The configuration may add an affinity to that of every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from mooring.objects import pod as pods
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PreferredSchedulingTerm
from mooring.objects.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    SelectorRequirement,
    compile_node_term,
)
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Hint,
    Ints,
    NodeInfo,
    PluginError,
    PreFilterResult,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    by_mask,
    by_table,
    failure,
    on_add_or_update,
    unresolvable,
)
from mooring.plugin.args import NodeAffinityArgs
from mooring.plugin.changes import DropNodeAffinity, DropNodeSelector, requirement_text
from mooring.plugin.nodes import RequiredNodeAffinity, match_rows, match_rows_any, matches_any
from mooring.plugins.labels_needed import labellings
from mooring.plugins.normalize import normalize

MISMATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
#: For the affinity that the configuration adds.
ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")

_PRE_FILTER = "PreFilterNodeAffinity"
_PRE_SCORE = "PreScoreNodeAffinity"

_NODE_CHANGED = Action.ADD | Action.UPDATE_NODE_LABEL

#: Preferred terms, each with its weight.
Preferences = tuple[tuple[int, NodeTerm], ...]


class NodeAffinity:
    name = "NodeAffinity"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.affinity", "spec.node_selector")
    normalizes_by_extremes = True

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        """Raises PluginError if the added affinity is malformed."""
        added = args.added_affinity if args is not None else None
        #: None if nothing is added; an empty list matches no node.
        self._added_required: tuple[NodeTerm, ...] | None = None
        self._added_preferred: Preferences | None = None
        if added is not None and added.required is not None:
            self._added_required = _added_terms(added.required)
        if added is not None and added.preferred:
            self._added_preferred = _added_preferences(added.preferred)

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status:
        required = _required_of(pod)
        if required is None and self._added_required is None and pod.spec.node_selector is None:
            return SKIP
        state.write(_PRE_FILTER, RequiredNodeAffinity.of(pod))
        names = _node_names(required.node_selector_terms) if required is not None else None
        if names is None:
            return SUCCESS
        return PreFilterResult(names) if names else CONFLICT

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert node.node is not None
        if not self._allows(node.node):
            return ENFORCED
        return SUCCESS if _required_affinity(state, pod).matches(node) else MISMATCH

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        matches = _required_affinity(state, pod).match_rows(columns, rows)
        if self._added_required is None:
            return by_mask(matches, MISMATCH)
        allowed = match_rows_any(self._added_required, columns, rows)
        codes = np.where(allowed, np.where(matches, 0, 2), 1)
        return by_table(codes, (SUCCESS, ENFORCED, MISMATCH))

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        try:
            preferences = _preferences_of(pod)
        except ValueError as error:
            return failure(error)
        if preferences is None and self._added_preferred is None:
            return SKIP
        state.write(_PRE_SCORE, preferences or ())
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The sum of the weights of all terms that match."""
        return sum(
            weight
            for weight, term in self._preferences(state, pod)
            if term.matches(node.labels, node.name)
        )

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores = np.zeros(columns.alive[rows].shape, np.int64)
        for weight, term in self._preferences(state, pod):
            np.add(scores, weight, out=scores, where=match_rows(term, columns, rows))
        return scores

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> Status:
        normalize(scores)
        return SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (on_add_or_update(Node, _NODE_CHANGED, self._after_node_change),)

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        """Without one of the pod's demands; or with labels on a node that no other plugin refuses."""
        for key, value in (pod.spec.node_selector or {}).items():
            yield Suggestion.fixed(DropNodeSelector(key, value))
        required = _required_of(pod)
        for place, term in enumerate(required.node_selector_terms if required is not None else ()):
            for line, requirement in enumerate((*term.match_expressions, *term.match_fields)):
                change = DropNodeAffinity(place, line, requirement_text(requirement))
                yield Suggestion.fixed(change)
        nodes = (refusals.snapshot.get(name) for name in refusals.alone)
        for labelling in labellings(pod, (info.node for info in nodes if info is not None)):
            yield Suggestion.fixed(labelling, combines=False)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        affinity = _affinity_of(pod)
        return {
            "v1.Pod.Spec.Affinity.NodeAffinity": (
                None if affinity.required is None else _canonical_terms(affinity.required),
                _canonical_preferences(affinity.preferred or ()),
            ),
            "v1.Pod.Spec.Affinity.NodeSelector": frozenset((pod.spec.node_selector or {}).items()),
        }

    def _allows(self, node: Node) -> bool:
        return self._added_required is None or matches_any(self._added_required, node)

    def _preferences(self, state: CycleState, pod: Pod) -> Preferences:
        """Raises ValueError if PreScore did not run and the pod's terms are malformed."""
        own: Preferences | None = state.read(_PRE_SCORE, tuple)
        if own is None:
            own = _preferences_of(pod) or ()
        return (*own, *(self._added_preferred or ()))

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """Queue the pod if the node now matches the pod's own terms.

        As in the reference, the added affinity does not matter here.
        """
        if not self._allows(new):
            return Hint.SKIP
        required = RequiredNodeAffinity.of(pod)
        if not required.matches_node(new):
            # If a term is malformed, the hint cannot tell, and the pod is queued.
            return Hint.QUEUE if required.malformed else Hint.SKIP
        return Hint.SKIP if old is not None and required.matches_node(old) else Hint.QUEUE


def _added_terms(required: NodeSelector) -> tuple[NodeTerm, ...]:
    try:
        terms = map(compile_node_term, required.node_selector_terms)
        return tuple(term for term in terms if term is not None)
    except ValueError as error:
        where = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        raise PluginError(f"parsing {where}: {error}") from error


def _added_preferences(preferred: Iterable[PreferredSchedulingTerm]) -> Preferences:
    try:
        return _compile_preferences(preferred)
    except ValueError as error:
        where = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        raise PluginError(f"parsing {where}: {error}") from error


def _compile_preferences(preferred: Iterable[PreferredSchedulingTerm]) -> Preferences:
    """Compile the terms, without empty ones and those without a weight, which may be malformed."""
    weighted = (
        (line.weight, compile_node_term(line.preference)) for line in preferred if line.weight
    )
    return tuple((weight, term) for weight, term in weighted if term is not None)


def _required_of(pod: Pod) -> NodeSelector | None:
    return _affinity_of(pod).required


def _affinity_of(pod: Pod) -> pods.NodeAffinity:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return _NO_AFFINITY
    return affinity.node_affinity


_NO_AFFINITY = pods.NodeAffinity()


def _node_names(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name; None if a term allows nodes of any name."""
    by_term = [_names_in(term) for term in terms]
    named = [names for names in by_term if names is not None]
    if not terms or len(named) < len(by_term):
        return None
    return frozenset().union(*named)


def _names_in(term: NodeSelectorTerm) -> frozenset[str] | None:
    named = [
        frozenset(line.values)
        for line in term.match_fields
        if line.key == NAME_FIELD and line.operator == "In"
    ]
    return frozenset.intersection(*named) if named else None


def _required_affinity(state: CycleState, pod: Pod) -> RequiredNodeAffinity:
    """The state of PreFilter; computed here if PreFilter is disabled."""
    return state.read(_PRE_FILTER, RequiredNodeAffinity) or RequiredNodeAffinity.of(pod)


def _preferences_of(pod: Pod) -> Preferences | None:
    """The pod's preferred terms; None if it has no list. Raises ValueError if one is malformed."""
    preferred = _affinity_of(pod).preferred
    return None if preferred is None else _compile_preferences(preferred)


#: Requirements, sorted, with their values sorted.
CanonicalLines = tuple[tuple[str, str, tuple[str, ...]], ...]
CanonicalTerm = tuple[CanonicalLines, CanonicalLines]


def _canonical_terms(selector: NodeSelector) -> tuple[CanonicalTerm, ...]:
    return tuple(sorted(map(_canonical_term, selector.node_selector_terms)))


def _canonical_preferences(
    preferred: Iterable[PreferredSchedulingTerm],
) -> tuple[tuple[int, CanonicalTerm], ...]:
    return tuple(sorted((line.weight, _canonical_term(line.preference)) for line in preferred))


def _canonical_term(term: NodeSelectorTerm) -> CanonicalTerm:
    return _canonical_lines(term.match_expressions), _canonical_lines(term.match_fields)


def _canonical_lines(lines: Iterable[SelectorRequirement]) -> CanonicalLines:
    return tuple(sorted((line.key, line.operator, tuple(sorted(line.values))) for line in lines))
