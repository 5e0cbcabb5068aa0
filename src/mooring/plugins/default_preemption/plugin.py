"""The plugin: who may preempt, which nodes are candidates, which node is best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cmp_to_key, partial

import numpy as np

from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugin import (
    CLEAR_NOMINATION,
    SUCCESS,
    Code,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Hint,
    MooringError,
    NodeInfo,
    NodeStatuses,
    Nomination,
    PostFilterResult,
    Snapshot,
    Status,
    on_delete,
    unresolvable,
    unschedulable,
)
from mooring.plugin.args import DefaultPreemptionArgs
from mooring.plugins.default_preemption.agreement import agreed
from mooring.plugins.default_preemption.budgets import BudgetCache
from mooring.plugins.default_preemption.candidates import (
    Candidate,
    VictimSearch,
    candidates_wanted,
)
from mooring.plugins.default_preemption.choice import Best, best
from mooring.plugins.default_preemption.coverage import Coverage
from mooring.plugins.default_preemption.eviction import (
    Evictions,
    Preemptor,
    terminating_by_preemption,
)
from mooring.plugins.default_preemption.group_victims import WHOLE_CLUSTER, select_victims
from mooring.plugins.default_preemption.kept_outcomes import KeptOutcomes, alike
from mooring.plugins.default_preemption.many_nodes import FEW_ROWS, SMALLEST_PART, ManyNodes
from mooring.plugins.default_preemption.outcomes import NOWHERE, Found, Outcomes
from mooring.plugins.default_preemption.pods_by_importance import PodsByImportance

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
PREFIX = "preemption: {}"
NEVER = unschedulable("not eligible due to preemptionPolicy=Never.")
VICTIMS_TERMINATING = unschedulable("not eligible due to a terminating pod on the nominated node.")
NO_NODES = Status(Code.ERROR, ("no nodes available",))
NO_CANDIDATE = unschedulable("no candidate node for preemption")
NOT_HELPFUL = "Preemption is not helpful for scheduling"
WAITING = unresolvable("waiting for the preemption for this pod to be finished")
GROUP_WAITING = unresolvable("waiting for the preemption for this pod group to be finished")
NO_GROUP = unschedulable("preemption: pod group for pod not found")
GROUP_CONSTRAINED = unschedulable(
    "preemption: not eligible due to placement-based pod group scheduling limitation"
)
GROUP_PREEMPTS = unschedulable("preemption: not eligible due to workload aware preemption enabled")


@dataclass(frozen=True, slots=True)
class PreemptionDetail:
    """Details of a preemption, for explanations."""

    #: Node name → the candidate, for nodes where preemption helps.
    candidates: Mapping[str, Candidate]
    #: Node name → why preemption does not help, for other nodes that were tried.
    rejected: Mapping[str, Status]
    #: Gives `tied`.
    tied_names: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)
    #: The pods to evict, from most to least important.
    victims: tuple[Pod, ...] = ()
    #: "" if preemption does not help on any node.
    nominated_node: str = ""

    @property
    def tied(self) -> tuple[str, ...]:
        """The names of the equally good nodes, in order; the first is chosen."""
        return self.tied_names()


class DefaultPreemption:
    name = "DefaultPreemption"
    #: Up to so many nodes are tried one by one.
    few_rows = FEW_ROWS
    #: Each victim that goes concerns all pods that wait for victims.
    gates_first = True

    def __init__(self, args: DefaultPreemptionArgs | None, handle: Handle) -> None:
        self._args = args or DefaultPreemptionArgs()
        self._handle = handle
        self._budgets = BudgetCache(handle.cluster.listers)
        self._coverage = Coverage()
        #: None until a pod preempts.
        self._pods: PodsByImportance | None = None
        self._kept = KeptOutcomes(handle.cluster.listers)
        self._evictions = Evictions(handle, self.name)
        self._preempts_for_groups = handle.gates.enabled("WorkloadAwarePreemption")
        self._by_placement = handle.gates.enabled("TopologyAwareWorkloadScheduling")

    # To be overridden

    def is_eligible_pod(self, node: NodeInfo, victim: Pod, preemptor: Pod) -> bool:
        """Whether a pod of lower priority may be evicted for this one."""
        return True

    def more_important_pod(self, a: Pod, b: Pod) -> bool:
        """Whether `a` is more important than `b`, so that `b` is evicted first."""
        now = self._now()
        return _importance(a, now) < _importance(b, now)

    def narrow_candidates(
        self, pod: Pod, candidates: Mapping[str, Candidate]
    ) -> Mapping[str, Candidate]:
        """The candidates, by node name, that the extenders agree to.

        Extenders may remove nodes and change victims. Raises MooringError to fail the attempt.
        """
        handle = self._handle
        return agreed(handle.extenders, pod, candidates, handle.cluster.snapshot())

    def offset(self, nodes: int) -> int:
        """The index of the first node to try; the reference chooses it at random."""
        return 0

    @property
    def is_settled(self) -> bool:
        """Whether the watch has shown every eviction that ended."""
        return self._evictions.are_seen

    # Extension points

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        result, status = self.decide(state, pod, statuses)
        if result is not None and isinstance(result.detail, PreemptionDetail) and status.ok:
            detail = result.detail
            latest = self._latest(pod) or pod
            preemptor = Preemptor(latest, (latest,))
            self._evictions.start(preemptor, detail.nominated_node, detail.victims)
        return result, status

    def decide(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """What `post_filter` would do; nothing is evicted."""
        if pod.spec.scheduling_group is not None:
            refusal = self._refuses_member(pod)
            if refusal is not None:
                return None, refusal
        result, status = self._preempt(state, pod, statuses)
        if status.message:
            status = Status(status.code, (PREFIX.format(status.message),))
        return result, status

    def post_filter_repeats(self, pod: Pod) -> bool:
        """True if the pod may not preempt, or no pod has a lower priority."""
        if pod.spec.preemption_policy == "Never":
            return True
        snapshot = self._handle.cluster.snapshot()
        pods = self._pods_of(snapshot)
        pods.refresh(snapshot, snapshot.rows)
        return not pods.has_lower(pod.priority, snapshot.rows).any()

    def pre_enqueue(self, pod: Pod) -> Status:
        if self._preempts_for_groups and pod.spec.scheduling_group is not None:
            group = self._group_of(pod)
            holds_back = group is not None and self._evictions.holds_back(group)
            return GROUP_WAITING if holds_back else SUCCESS
        return WAITING if self._evictions.holds_back(pod) else SUCCESS

    # Pod groups

    def preempt_for_group(
        self, group: PodGroup, pods: Sequence[Pod], fits: Callable[[], Status]
    ) -> Status:
        """Evict what stands in the way of the whole group; Success if that helps."""
        victims = self.victims_for_group(group, pods, fits)
        if isinstance(victims, Status):
            return victims
        self._evictions.start(Preemptor(group, tuple(pods)), WHOLE_CLUSTER, victims)
        return SUCCESS

    def victims_for_group(
        self, group: PodGroup, pods: Sequence[Pod], fits: Callable[[], Status]
    ) -> list[Pod] | Status:
        """What `preempt_for_group` would evict; nothing is evicted."""
        return select_victims(
            group,
            pods,
            fits,
            handle=self._handle,
            budgets=self._budgets.current(),
            now=self._now(),
        )

    def _refuses_member(self, pod: Pod) -> Status | None:
        """Why no pod is evicted for a single pod of a group; None if pods may be."""
        if self._by_placement:
            group = self._group_of(pod)
            if group is None:
                return NO_GROUP
            if group.spec.scheduling_constraints is not None:
                return GROUP_CONSTRAINED
        return GROUP_PREEMPTS if self._preempts_for_groups else None

    def _group_of(self, pod: Pod) -> PodGroup | None:
        return self._handle.cluster.listers.get(PodGroup, pod.group_key)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def events_to_register(self) -> Sequence[EventWithHint]:
        """This event only lets PreEnqueue run again for a pod that waits for its victims.

        The filters that refused the pod register the events that help it.
        """
        return (on_delete(Pod, _never_helps),)

    # The steps

    def _preempt(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        latest = self._latest(pod)
        if latest is None:
            return None, Status(Code.ERROR, (f'pod "{pod.name}" not found',))
        # The filters know the pod as it was tried: what they say of it is no use for a changed one.
        keeps = alike(latest, pod) and self._keeps()
        pod, snapshot = latest, self._handle.cluster.snapshot()
        ineligible = self._ineligible(pod, statuses, snapshot)
        if ineligible is not None:
            return None, ineligible
        if not len(snapshot):
            return None, NO_NODES
        found = self._find_candidates(state, pod, statuses, snapshot, keeps=keeps)
        if not found:
            return _no_help(found.rejected, len(snapshot))
        candidates = found.candidates
        if self._handle.extenders or self._is_overridden("narrow_candidates"):
            try:
                candidates = self.narrow_candidates(pod, dict(candidates))
            except MooringError as error:
                return None, Status(Code.ERROR, (str(error),))
            tied = best(candidates.values(), self._now())
            if not tied:
                return None, NO_CANDIDATE
            chosen = Best(tied[0], lambda: tuple(each.node_name for each in tied))
        else:
            chosen = found.best(self._now())
        return _take(chosen, candidates, found.rejected), SUCCESS

    def _latest(self, pod: Pod) -> Pod | None:
        return self._handle.observed_pod(pod.key)

    def _ineligible(self, pod: Pod, statuses: NodeStatuses, snapshot: Snapshot) -> Status | None:
        """Why the pod may not preempt; None if it may."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        if self._evictions.are_leaving(pod):
            return VICTIMS_TERMINATING
        name = pod.nominated_node_name
        node = snapshot.get(name) if name else None
        if node is None or statuses.get(name).code == Code.UNRESOLVABLE:
            return None
        waits = any(
            victim.priority < pod.priority
            and self.is_eligible_pod(node, victim, pod)
            and terminating_by_preemption(victim)
            for victim in node.pods.values()
        )
        return VICTIMS_TERMINATING if waits else None

    def _find_candidates(
        self,
        state: CycleState,
        pod: Pod,
        statuses: NodeStatuses,
        snapshot: Snapshot,
        *,
        keeps: bool,
    ) -> Found:
        rows = statuses.rows_with(Code.UNSCHEDULABLE)
        if not len(rows):
            return NOWHERE
        start = self.offset(len(rows))
        wanted = candidates_wanted(len(rows), self._args)
        trial = self._trial(state, pod, snapshot)
        columns = snapshot.columns
        outcomes = self._kept.of(trial) if keeps else Outcomes(columns.size)
        found = outcomes.search(
            np.roll(rows, -start) if start else rows,
            wanted,
            max(wanted, SMALLEST_PART),
            # With hooks of its own, a policy may have other potential victims, in another order.
            trial.on_rows if self._keeps() else trial.on_each,
            trial.now,
            columns.names,
        )
        moves = trial.pods.moves_with_time(trial.now.timestamp())
        outcomes.forget(np.flatnonzero(moves[: len(outcomes)]))
        return found

    def _trial(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> ManyNodes:
        search, pods = self._search(state, pod), self._pods_of(snapshot)
        return ManyNodes(search, pods, self._coverage, self._now(), self.few_rows)

    def _pods_of(self, snapshot: Snapshot) -> PodsByImportance:
        if self._pods is None or not self._pods.fits(snapshot.columns):
            self._pods = PodsByImportance(snapshot.columns)
        return self._pods

    def _keeps(self) -> bool:
        """Whether no hook is overridden on which victims depend."""
        return not (
            self._is_overridden("is_eligible_pod") or self._is_overridden("more_important_pod")
        )

    def _search(self, state: CycleState, pod: Pod) -> VictimSearch:
        return VictimSearch(
            filters=self._handle.dry_run(state, pod),
            budgets=self._budgets.current(),
            is_eligible=(
                (lambda node, victim: self.is_eligible_pod(node, victim, pod))
                if self._is_overridden("is_eligible_pod")
                else None
            ),
            by_importance=self._by_importance(),
        )

    def _by_importance(self) -> Callable[[Iterable[Pod]], list[Pod]]:
        """A stable sort of pods, from most to least important."""
        if self._is_overridden("more_important_pod"):
            return partial(sorted, key=cmp_to_key(self._compare))
        now = self._now()
        return partial(sorted, key=lambda pod: _importance(pod, now))

    def _compare(self, a: Pod, b: Pod) -> int:
        return int(self.more_important_pod(b, a)) - int(self.more_important_pod(a, b))

    def _is_overridden(self, hook: str) -> bool:
        method = getattr(self, hook)
        return getattr(method, "__func__", None) is not getattr(DefaultPreemption, hook)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._handle.clock.now(), UTC)


def _importance(pod: Pod, now: datetime) -> tuple[int, datetime]:
    """Less is more important: a higher priority, then an earlier start."""
    return -pod.priority, pod.status.start_time or now


def _no_help(rejected: Mapping[str, Status], nodes: int) -> tuple[PostFilterResult | None, Status]:
    # Thousands of nodes share a few statuses, and statuses are slow to hash.
    statuses = {id(status): status for status in rejected.values()}
    failed = (status.message for status in statuses.values() if status.code == Code.ERROR)
    errors = list(dict.fromkeys(failed))
    if errors:
        error = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        return None, Status(Code.ERROR, (error,))
    reasons: Counter[str] = Counter()
    for number, count in Counter(map(id, rejected.values())).items():
        for reason in statuses[number].all_reasons:
            reasons[reason] += count
    detail = PreemptionDetail(candidates={}, rejected=rejected)
    return (
        PostFilterResult(CLEAR_NOMINATION, detail),
        unschedulable(_fit_error(reasons, len(rejected), nodes)),
    )


def _fit_error(reasons: Counter[str], rejected: int, nodes: int) -> str:
    """The message if preemption helps nowhere, with the number of nodes for each reason."""
    if rejected < nodes:
        reasons[NOT_HELPFUL] += nodes - rejected
    entries = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f"0/{nodes} nodes are available: {', '.join(entries)}."


def _take(
    chosen: Best,
    candidates: Mapping[str, Candidate],
    rejected: Mapping[str, Status],
) -> PostFilterResult:
    taken = chosen.first
    return PostFilterResult(
        Nomination(taken.node_name),
        PreemptionDetail(
            candidates=candidates,
            rejected=rejected,
            tied_names=chosen.names,
            victims=taken.victims,
            nominated_node=taken.node_name,
        ),
    )


def _never_helps(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    return Hint.SKIP
