"""The plugin: find constraints, count pods by domain, judge and score nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from mooring.objects.pod import Pod
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
    unschedulable,
)
from mooring.plugin.args import PodTopologySpreadArgs
from mooring.plugin.changes import RaiseMaxSkew, SoftenSpread
from mooring.plugins.pod_topology_spread.alike import KnownPods
from mooring.plugins.pod_topology_spread.constraints import HARD, SOFT, PodConstraints
from mooring.plugins.pod_topology_spread.hard_state import HardState
from mooring.plugins.pod_topology_spread.hints import Hints
from mooring.plugins.pod_topology_spread.soft_state import SoftState

NOT_SIGNABLE = unschedulable("pods with topology constraints are not signable")
NOT_SIGNABLE_BY_DEFAULT = unschedulable("pods with default topology constraints are not signable")

_PRE_FILTER = "PreFilterPodTopologySpread"
_PRE_SCORE = "PreScorePodTopologySpread"


class PodTopologySpread:
    name = "PodTopologySpread"
    #: See `framework.interface.DependsPlugin`.
    signature_fields: tuple[str, ...] = ()

    def __init__(self, args: PodTopologySpreadArgs | None, handle: Handle) -> None:
        self._constraints = PodConstraints(
            args or PodTopologySpreadArgs(), handle.cluster.deduced_selectors
        )
        self._known = KnownPods(self._constraints)

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status | None:
        alike = self._known.alike(pod, HARD)
        if alike is None:
            return SKIP
        try:
            constraints = alike.constraints(pod, HARD)
        except ValueError as error:
            return failure(ValueError(f"get constraints from pod: {error}"))
        if not constraints:
            return SKIP
        state.write(_PRE_FILTER, alike.count_hard(pod, snapshot))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        _hard_state(state).update(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        _hard_state(state).update(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return _hard_state(state).judge(node)

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        return _hard_state(state).judge_rows(rows)

    def dry_run_inputs(
        self, state: CycleState, pod: Pod, columns: Columns
    ) -> Mapping[str, Ints] | None:
        """Pods that leave a node lower the skew of its domain, or keep it. See `runtime.dry_run`.

        Default constraints count pods by Services and the like, which may change: no inputs.
        """
        if not pod.spec.topology_spread_constraints:
            return None
        return _hard_state(state).inputs(columns.all_rows)

    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        if not len(snapshot):
            return SKIP
        alike = self._known.alike(pod, SOFT)
        if alike is None:
            return SKIP
        try:
            constraints = alike.constraints(pod, SOFT)
        except ValueError as error:
            return failure(ValueError(f"calculating preScoreState: {error}"))
        if not constraints:
            return SKIP
        # With the system's default constraints, a node without a zone is scored by its host alone.
        own = bool(pod.spec.topology_spread_constraints)
        require_all = own or not self._constraints.system_defaults
        soft = alike.count_soft(pod, snapshot, rows, require_all=require_all)
        state.write(_PRE_SCORE, soft)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return _soft_state(state).score(node)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return _soft_state(state).score_rows(rows)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        _soft_state(state).normalize(scores)

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        most = sum(len(node.pods) for node in refusals.snapshot) + 1
        for index, spread in enumerate(pod.spec.topology_spread_constraints):
            if spread.when_unsatisfiable == "DoNotSchedule":
                key, skew = spread.topology_key, spread.max_skew
                largest = max(most, skew + 1)
                raise_it = partial(_raised, index, key, skew, largest)
                yield Suggestion(raise_it, largest - skew)
                yield Suggestion.fixed(SoftenSpread(index, key))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def skips_copies(self, pod: Pod) -> bool:
        """A pod is skipped if it has no constraints, and pods do not change that. See `runtime.copies`."""
        return True

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """Each placed pod changes where the next equal pod may go, so such pods are not signed."""
        if pod.spec.topology_spread_constraints:
            return NOT_SIGNABLE
        return NOT_SIGNABLE_BY_DEFAULT if self._constraints.has_defaults else {}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return Hints(self._constraints).events()


def _raised(index: int, key: str, skew: int, largest: int, step: int) -> RaiseMaxSkew:
    return RaiseMaxSkew(index, key, skew, largest - step)


def _hard_state(state: CycleState) -> HardState:
    found = state.read(_PRE_FILTER, HardState)
    if found is None:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: not found')
    return found


def _soft_state(state: CycleState) -> SoftState:
    found = state.read(_PRE_SCORE, SoftState)
    if found is None:
        raise PluginError(f'error reading "{_PRE_SCORE}" from cycleState: not found')
    return found
