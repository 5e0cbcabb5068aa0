"""How full nodes are, for Score: of a node, of many rows, and of the nodes of a placement together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.objects.requests import CPU, MEMORY
from mooring.plugin import ClusterView, Columns, Ints, NodeInfo, Rows, Snapshot
from mooring.plugin.args import ResourceSpec
from mooring.plugin.groups import Placement, PodGroupAssignments, PodGroupInfo
from mooring.plugins import resource_scoring


def scored_as_held(node: NodeInfo, names: Sequence[str]) -> list[int]:
    """What the pods of a node hold, with the defaults of Score for cpu and memory."""
    requested = node.requested
    return [
        node.non_zero_cpu
        if name == CPU
        else node.non_zero_memory
        if name == MEMORY
        else requested.get(name, 0)
        for name in names
    ]


def rows_scored_as_held(columns: Columns, indices: Sequence[int], rows: Rows) -> Ints:
    """int64[resource, row]: the same for rows, not to be changed."""
    # Cpu and memory come first, both in the resource columns and in those for scoring.
    scored = len(columns.non_zero)
    if all(index < scored for index in indices):
        return resource_scoring.gathered(columns.non_zero, indices, rows)
    held = resource_scoring.gathered(columns.requested, indices, rows).copy()
    for place, index in enumerate(indices):
        if index < scored:
            held[place] = columns.non_zero[index][rows]
    return held


def placement_score(resources: Sequence[ResourceSpec], assignments: PodGroupAssignments) -> int:
    """The share of all nodes of a placement that would be taken, 0..100."""
    wanted: Counter[str] = Counter()
    for pod, _ in assignments.proposed.values():
        wanted.update(pod.scoring_requests)
    request = resource_scoring.ScoredResources(resources).request(wanted)
    requested, allocatable = list(request.amounts), [0] * len(request.names)
    for node in assignments.nodes:
        held = scored_as_held(node, request.names)
        for index, name in enumerate(request.names):
            offered = node.allocatable.get(name, 0)
            if offered:
                allocatable[index] += offered
                requested[index] += held[index]
    return resource_scoring.most_allocated_score(requested, allocatable, request.weights)


class PlacementUsage:
    """`placement_score` for many placements at once, with all pods of the group placed."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        #: The latest placements, and the position in the log of nodes.
        self._placements: Sequence[Placement] = ()
        self._position = -1
        #: intp[...]: the rows of all placements, one after another; and where each begins.
        self._rows: NDArray[np.intp] = np.empty(0, np.intp)
        self._starts: list[int] = []

    def bounds(
        self,
        resources: Sequence[ResourceSpec],
        group: PodGroupInfo,
        placements: Sequence[Placement],
        snapshot: Snapshot,
    ) -> Sequence[int] | None:
        """None if a placement has no nodes, or all."""
        columns = snapshot.columns
        if not self._take(placements, columns):
            return None
        wanted: Counter[str] = Counter()
        for pod in group.unscheduled:
            wanted.update(pod.scoring_requests)
        scored = resource_scoring.ScoredResources(resources).request(wanted)
        request = resource_scoring.ScoredColumns().request(scored, columns)
        offered = resource_scoring.gathered(columns.allocatable, request.indices, self._rows)
        held = rows_scored_as_held(columns, request.indices, self._rows)
        counted = np.where(offered == 0, 0, held)
        requested = np.add.reduceat(counted, self._starts, axis=1) + request.amounts
        allocatable = np.add.reduceat(offered, self._starts, axis=1)
        out = np.zeros(len(placements), np.int64)
        resource_scoring.most_allocated(requested, allocatable, request.weights, out=out)
        scores: list[int] = out.tolist()
        return scores

    def _take(self, placements: Sequence[Placement], columns: Columns) -> bool:
        position = self._cluster.changes.nodes.position
        if placements is self._placements and position == self._position:
            return True
        names: list[str] = []
        starts: list[int] = []
        for placement in placements:
            if not placement.nodes:
                return False
            starts.append(len(names))
            names += placement.nodes
        row_of = columns.row_of
        self._rows = np.fromiter((row_of[name] for name in names), np.intp, len(names))
        self._starts, self._placements, self._position = starts, placements, position
        return True
