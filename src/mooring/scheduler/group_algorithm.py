"""Finding nodes for all members of a pod group, one after another, as if those before were placed.

    for each placement:  for each member:  PreFilter … Score (PostFilter) → assume → Reserve → Permit
                         undo all of it
    the best placement

The group fits as soon as Permit lets one member go: of a gang, the member that completes minCount; of other
groups, the first that fits. Members that fit nowhere do not change that.

The members are assumed in the cluster itself and forgotten before anybody else looks at it: the engine does
one thing at a time, so no copy of the cluster is needed. The kept verdicts and scores of
`runtime.evaluation` follow, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.cluster.cache import CacheError
from mooring.cluster.columns import Mask
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError
from mooring.framework.interface import Nomination
from mooring.framework.placements import Placement, PodGroupAssignments, PodGroupInfo
from mooring.framework.status import Code, Status, failure, unschedulable
from mooring.objects.quantity import MAX_INT64
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.placements import generate_placements, score_bounds, score_placements
from mooring.scheduler.dependencies import OnDecision
from mooring.scheduler.diagnosis import node_refusal
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_group import (
    WAITING_ON_PREEMPTION,
    GroupResult,
    MemberResult,
    QueuedGroup,
    error_text,
)
from mooring.scheduler.scheduling_cycle import SchedulingCycle

#: More than any score.
_UNBOUNDED = MAX_INT64
_SEARCHING = (Point.PRE_FILTER, Point.FILTER, Point.PRE_SCORE, Point.SCORE, Point.RESERVE)

#: The reference's texts.
_OTHER_FAILED = "failed to schedule other pod from a pod group: {}"
_NO_PLACEMENT_FITS = "0/{} placements are available, first placement status: {}"


class GroupAlgorithm:
    def __init__(self, parts: Parts, scheduling_cycle: SchedulingCycle) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self._cycle = scheduling_cycle
        self._on_decision = parts.deps.on_decision
        self._keeps_reasons = parts.deps.keeps_reasons
        #: Whether a group may be limited to some nodes.
        self._by_placement = parts.gates.enabled("TopologyAwareWorkloadScheduling")

    def run(self, group: QueuedGroup, *, post_filters: bool = True) -> GroupResult:
        """What would become of the group; nothing but PostFilter plugins changes anything.

        Without `post_filters`, this is a dry run: no pod is evicted, and no status is written.
        """
        if self._by_placement:
            return self._run_placements(group, post_filters=post_filters)
        on_decision = self._on_decision if post_filters else None
        return self._try_members(group, None, post_filters, on_decision)

    def try_all(
        self,
        group: QueuedGroup,
        on_decision: OnDecision,
        within: list[str],
        *,
        only: str | None = None,
    ) -> list[tuple[Placement, GroupResult, int | None]] | Status:
        """Every placement with what would become of the group there, and its score if it fits.

        A dry run. While a placement is tried, `within[0]` is its name. `only` leaves the others out.
        """
        info, snapshot = group.info, self._cluster.snapshot()
        placements: Sequence[Placement] | Status = (Placement(""),)
        if self._by_placement:
            placements = generate_placements(group.framework, info, snapshot)
        if isinstance(placements, Status):
            return placements
        tried = []
        for placement in placements:
            if only not in (None, placement.name):
                continue
            within[0] = placement.name
            result = self._try_members(group, self._rows_of(placement), False, on_decision)
            if result.status.code == Code.ERROR:
                return result.status
            tried.append((placement, result))
        fitting = [each for each in tried if each[1].fits]
        scores: dict[int, int] = {}
        if self._by_placement and fitting:
            found = score_placements(
                group.framework, info, [self._assignments(*each) for each in fitting]
            )
            if isinstance(found, Status):
                return found
            scores = {id(each[1]): score for each, score in zip(fitting, found, strict=True)}
        return [(placement, result, scores.get(id(result))) for placement, result in tried]

    # Placements

    def _run_placements(self, group: QueuedGroup, *, post_filters: bool) -> GroupResult:
        """Try the group in each placement, and take the best of those where it fits."""
        info = group.info
        placements = generate_placements(group.framework, info, self._cluster.snapshot())
        if isinstance(placements, Status):
            return GroupResult(placements)
        results: dict[int, GroupResult] = {}
        #: (score, minus the place in the order) of the best placement that takes the whole group.
        best = (-1, 0)
        bounds = self._bounds(group, info, placements)
        for order in sorted(range(len(placements)), key=lambda order: (-bounds[order], order)):
            if (bounds[order], -order) <= best:
                continue
            placement = placements[order]
            result = self._try_members(group, self._rows_of(placement), post_filters, None)
            if result.status.code == Code.ERROR:
                return result
            results[order] = result
            if result.status.ok and all(member.placed for member in result.members):
                assignments = self._assignments(placement, result)
                scores = score_placements(group.framework, info, [assignments])
                if not isinstance(scores, Status):
                    best = max(best, (scores[0], -order))
        tried = [(placements[order], results[order]) for order in sorted(results)]
        taken = self._choose(group, info, tried)
        if post_filters and self._on_decision is not None:
            for member in taken.members:
                if member.decision is not None:
                    self._on_decision(member.attempt, member.decision)
        return taken

    def _bounds(
        self, group: QueuedGroup, info: PodGroupInfo, placements: Sequence[Placement]
    ) -> list[int]:
        """The most that each placement can score; if that is not known, all are to be tried.

        A placement that takes the whole group and scores more than others can is the best. The others
        need not be tried, unless that could fail: a failure anywhere is the failure of the group.
        """
        unknown = [_UNBOUNDED] * len(placements)
        if len(placements) == 1 or not self._cannot_fail(group):
            return unknown
        snapshot = self._cluster.snapshot()
        return score_bounds(group.framework, info, placements, snapshot) or unknown

    def _cannot_fail(self, group: QueuedGroup) -> bool:
        """Whether only PreFilter can fail, which looks at all nodes: plugins that read nothing else."""
        points = group.framework.points
        calls = (call for point in _SEARCHING for call in points[point])
        return (
            not len(group.search.extenders)
            and all(call.depends_on is not None for call in calls)
            and all(not pod.spec.volumes and not pod.spec.resource_claims for pod in group.pods)
        )

    def _rows_of(self, placement: Placement) -> Mask | None:
        if placement.nodes is None:
            return None
        columns = self._cluster.snapshot().columns
        rows = np.zeros(columns.size, np.bool_)
        rows[[columns.row_of[name] for name in placement.nodes]] = True
        return rows

    def _choose(
        self,
        group: QueuedGroup,
        info: PodGroupInfo,
        tried: list[tuple[Placement, GroupResult]],
    ) -> GroupResult:
        fitting = [(placement, result) for placement, result in tried if result.fits]
        if not fitting:
            _, first = tried[0]
            text = _NO_PLACEMENT_FITS.format(len(tried), error_text(first.status))
            first.status = unschedulable(text)
            return first
        if len(fitting) == 1:
            return fitting[0][1]
        scores = score_placements(
            group.framework, info, [self._assignments(*each) for each in fitting]
        )
        if isinstance(scores, Status):
            return GroupResult(scores)
        # The first of equal ones; the reference takes any.
        return fitting[scores.index(max(scores))][1]

    def _assignments(self, placement: Placement, result: GroupResult) -> PodGroupAssignments:
        snapshot = self._cluster.snapshot()
        names = snapshot.order if placement.nodes is None else placement.nodes
        nodes = [info for name in names if (info := snapshot.get(name)) is not None]
        proposed = {
            member.attempt.queued.uid: (member.attempt.queued.pod, member.node_name)
            for member in result.members
            if member.node_name
        }
        return PodGroupAssignments(placement, nodes, proposed)

    # Members

    def _try_members(
        self,
        group: QueuedGroup,
        within: Mask | None,
        post_filters: bool,
        on_decision: OnDecision | None,
    ) -> GroupResult:
        result = GroupResult()
        needs_preemption = False
        try:
            for queued in group.members:
                member = self._try(group, queued, within, post_filters, on_decision)
                result.members.append(member)
                if not member.placed:
                    if member.status.rejected:
                        continue
                    text = _OTHER_FAILED.format(error_text(member.status))
                    result.status = failure(MooringError(text))
                    result.waiting_on_preemption = False
                    break
                needs_preemption |= member.needs_preemption
                if member.permit is not None and member.permit.ok:
                    result.waiting_on_preemption = needs_preemption
                    result.status = WAITING_ON_PREEMPTION if needs_preemption else member.permit
        finally:
            for member in reversed(result.members):
                if member.placed:
                    self._undo(member)
        return result

    def _try(
        self,
        group: QueuedGroup,
        queued: QueuedPodInfo,
        within: Mask | None,
        post_filters: bool,
        on_decision: OnDecision | None,
    ) -> MemberResult:
        """Place one member. One for which preemption makes room counts where it will go."""
        attempt = self._cycle.attempt(group.framework, queued)
        found = self._cycle.find_node(
            attempt,
            group.search,
            within=within,
            post_filters=post_filters,
            on_decision=on_decision,
        )
        if self._keeps_reasons and found.decision is not None:
            found.decision.keep_reasons()
        member = MemberResult(
            attempt,
            found.status,
            found.node_name or "",
            nominating=found.nominating,
            decision=found.decision,
        )
        if found.node_name is None:
            if found.nominating is None or not found.nominating.node_name:
                return member
            member.node_name = found.nominating.node_name
            member.needs_preemption = True
        status = self._assume(member)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            refused = node_refusal(status) if status.rejected else status
            return MemberResult(attempt, refused, decision=found.decision)
        member.permit = status
        return member

    def _assume(self, member: MemberResult) -> Status:
        """Assume → Reserve → Permit. What is neither Success nor Wait is undone."""
        attempt, node_name = member.attempt, member.node_name
        assumed = attempt.pod.placed_on(node_name)
        try:
            self._cluster.assume_pod(assumed, trying=True)
        except CacheError as error:
            return failure(error)
        attempt.pod = assumed
        self._parts.nominator.delete(assumed)
        try:
            status = attempt.framework.run_reserve(attempt.state, assumed, node_name)
            if status.ok:
                status, _ = attempt.framework.ask_permit(attempt.state, assumed, node_name)
        except BaseException:
            self._undo(member)
            raise
        if status.code not in (Code.SUCCESS, Code.WAIT):
            self._undo(member)
        return status

    def _undo(self, member: MemberResult) -> None:
        """Unreserve, forget, and hold the node that was held for the pod before."""
        attempt = member.attempt
        assumed, attempt.pod = attempt.pod, attempt.queued.pod
        attempt.framework.run_unreserve(attempt.state, assumed, member.node_name)
        self._cluster.forget_pod(assumed, trying=True)
        held = attempt.pod.nominated_node_name
        if held:
            self._parts.nominator.add(attempt.pod, Nomination(held))
