"""The plugin: compile terms, count pods by domain, judge and score nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.objects.kinds import Namespace
from mooring.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from mooring.objects.selectors import LabelSelector
from mooring.plugin import (
    SKIP,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Ints,
    NodeInfo,
    PluginError,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    failure,
    unresolvable,
    unschedulable,
)
from mooring.plugin.args import InterPodAffinityArgs
from mooring.plugin.changes import SoftenPodAffinity, requirement_text
from mooring.plugins.inter_pod_affinity import hints, weights
from mooring.plugins.inter_pod_affinity.malformed import problems
from mooring.plugins.inter_pod_affinity.queries import QueryCompiler
from mooring.plugins.inter_pod_affinity.required import (
    Required,
    count_existing_anti,
    count_matching,
)
from mooring.plugins.inter_pod_affinity.topology_counts import TopologyCounts

NOT_SIGNABLE = unschedulable("pods with InterPodAffinity are not signable")

#: The name of the pod's labels in a signature.
LABELS = "v1.Pod.Labels"

_PRE_FILTER = "PreFilterInterPodAffinity"
_PRE_SCORE = "PreScoreInterPodAffinity"


class InterPodAffinity:
    name = "InterPodAffinity"
    #: See `framework.interface.DependsPlugin`.
    signature_fields: tuple[str, ...] = ()
    #: Terms select namespaces by their labels.
    dry_run_inputs_depend_on = (Namespace,)

    def __init__(self, args: InterPodAffinityArgs | None, handle: Handle) -> None:
        args = args or InterPodAffinityArgs()
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        self._listers = handle.cluster.listers
        self._compiler = QueryCompiler(self._listers)

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status | None:
        terms = pod.affinity_terms
        if terms.problem:
            return unresolvable(f"parsing pod: {problems(pod)}")
        if not snapshot.held_terms and not terms.any:
            return SKIP
        namespace_labels = self._listers.namespace_labels(pod.namespace)
        held_terms = snapshot.held_terms.matching(pod, namespace_labels)
        if not held_terms and not terms.any:
            return SKIP
        existing_anti = count_existing_anti(held_terms, snapshot)
        if not (existing_anti.touched or terms.required_affinity or terms.required_anti_affinity):
            return SKIP
        queries = self._compiler.queries(terms)
        required = Required(
            pod=pod,
            namespace_labels=namespace_labels,
            queries=queries,
            affinity=count_matching(queries.affinity, snapshot),
            anti=count_matching(queries.anti, snapshot),
            existing_anti=existing_anti,
        )
        state.write(_PRE_FILTER, required)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        _required(state).update(added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        _required(state).update(removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return _required(state).judge(node.labels)

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        return _required(state).judge_rows(rows)

    def dry_run_inputs(
        self, state: CycleState, pod: Pod, columns: Columns
    ) -> Mapping[str, Ints] | None:
        """Pods that leave can only help, unless the pod needs pods beside it. See `runtime.dry_run`."""
        required = _required(state)
        return None if required.queries.affinity else required.anti_on_rows(columns.all_rows)

    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        """Skip if no term matches a placed pod or, for terms of placed pods, the incoming pod."""
        if self._ignore_existing and not _has_preferences(pod):
            return SKIP
        terms = pod.affinity_terms
        if terms.problem:
            return failure(ValueError(f"failed to parse pod: {problems(pod)}"))
        if not snapshot.held_terms and not terms.any:
            return SKIP
        namespace_labels = self._listers.namespace_labels(pod.namespace)
        held_terms = snapshot.held_terms.matching(pod, namespace_labels)
        if not held_terms and not terms.any:
            return SKIP
        preferred = self._compiler.queries(terms).preferred if terms.any else ()
        counted = weights.count_weights(
            preferred, held_terms, snapshot, hard_weight=self._hard_weight
        )
        if not counted.touched:
            return SKIP
        state.write(_PRE_SCORE, counted)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return sum(_weights(state).on_node(node.labels))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return weights.score_rows(_weights(state), rows)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        weights.normalize(scores)

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        affinity = pod.spec.affinity
        if affinity is None:
            return
        for rules, anti in ((affinity.pod_affinity, False), (affinity.pod_anti_affinity, True)):
            for index, term in enumerate((rules or PodAffinity()).required):
                change = SoftenPodAffinity(index, term.topology_key, _selects(term), anti)
                yield Suggestion.fixed(change)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def skips_copies(self, pod: Pod) -> bool:
        """A copy without terms changes nothing for the next. See `runtime.copies`."""
        return not pod.affinity_terms.any

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        affinity = pod.spec.affinity
        if affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        ):
            return NOT_SIGNABLE
        return {} if self._ignore_existing else {LABELS: pod.label_items}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return hints.EVENTS


def _selects(term: PodAffinityTerm) -> str:
    selector = term.label_selector or LabelSelector()
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [requirement_text(line) for line in selector.match_expressions]
    return ",".join(parts) or "any labels"


def _has_preferences(pod: Pod) -> bool:
    affinity = pod.spec.affinity or Affinity()
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(side is not None and side.preferred for side in sides)


def _required(state: CycleState) -> Required:
    found = state.read(_PRE_FILTER, Required)
    if found is None:
        raise PluginError(f'error reading "{_PRE_FILTER}" from cycleState: not found')
    return found


def _weights(state: CycleState) -> TopologyCounts:
    found = state.read(_PRE_SCORE, TopologyCounts)
    if found is None:
        raise PluginError(f'failed to read "{_PRE_SCORE}" from cycleState: not found')
    return found
