"""PodGroupPodsCount: prefer the placement that takes most pods of the group."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.plugin import MAX_SCORE, Handle, MooringError, Snapshot, Status, failure
from mooring.plugin.groups import Placement, PodGroupAssignments, PodGroupInfo

#: The reference's text, verbatim.
NO_PODS = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount:
    name = "PodGroupPodsCount"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle

    def score_placement(
        self, group: PodGroupInfo, assignments: PodGroupAssignments
    ) -> int | Status:
        """The pods that have a node already, and those that would get one."""
        groups = self._handle.cluster.pod_groups
        assert groups is not None, "only the group cycle scores placements"
        return groups.get(group.key).scheduled_count + len(assignments.proposed)

    def placement_score_bounds(
        self, group: PodGroupInfo, placements: Sequence[Placement], snapshot: Snapshot
    ) -> Sequence[int]:
        return [MAX_SCORE] * len(placements)

    def normalize_placement_scores(
        self, group: PodGroupInfo, scores: Sequence[int]
    ) -> Sequence[int] | Status:
        most = max(scores, default=0)
        if not most:
            return failure(MooringError(NO_PODS))
        return [score * MAX_SCORE // most for score in scores]
