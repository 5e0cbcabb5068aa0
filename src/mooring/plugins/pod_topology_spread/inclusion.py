"""The nodes that a constraint counts: one node, or all rows as a list of conditions.

A condition is a ``bool[row]``. A row counts if it meets every condition in the list; if the list is
empty, all rows count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from mooring.objects.pod import Pod
from mooring.objects.taints import Taint, untolerated
from mooring.plugin import Columns, Mask, NodeInfo
from mooring.plugin.nodes import ABSENT, Codes, LabelColumn, RequiredNodeAffinity
from mooring.plugins.pod_topology_spread.constraints import Constraint


class Inclusion:
    """Applies the inclusion policies (nodeAffinityPolicy, nodeTaintsPolicy) of a pod's constraints."""

    def __init__(self, pod: Pod, columns: Columns) -> None:
        self._tolerations = pod.spec.tolerations
        self._affinity = RequiredNodeAffinity.of(pod)
        self._columns = columns

    def accepts(self, constraint: Constraint, node: NodeInfo) -> bool:
        if constraint.honors_affinity and not self._affinity.matches(node):
            return False
        return not constraint.honors_taints or self._tolerates(node.taints)

    def conditions(self, constraint: Constraint) -> list[Mask]:
        """The same rule for all rows."""
        affinity = self._affinity
        selects_nodes = not affinity.selector.everything or affinity.terms is not None
        conditions = []
        if constraint.honors_affinity and selects_nodes:
            conditions.append(self._affine_rows)
        if constraint.honors_taints:
            conditions.append(self._tolerated_rows)
        return conditions

    def _tolerates(self, taints: tuple[Taint, ...]) -> bool:
        return untolerated(taints, self._tolerations) is None

    @cached_property
    def _affine_rows(self) -> Mask:
        return self._affinity.match_rows(self._columns, self._columns.all_rows)

    @cached_property
    def _tolerated_rows(self) -> Mask:
        columns = self._columns
        return columns.taint_sets.judge(self._tolerates, columns.all_rows)


def other_labels(
    column: LabelColumn, labels: Sequence[LabelColumn], columns: Columns
) -> list[Mask]:
    """The conditions that a row has the labels of the other constraints.

    The column's own label needs no condition: a row without it has the code ABSENT.
    """
    rows = columns.all_rows
    return [other.codes[rows] != ABSENT for other in labels if other is not column]


def included(codes: Codes, conditions: Sequence[Mask]) -> Codes:
    """int32[row]: the code of each row that meets all conditions, ABSENT for the other rows.

    If no row is left out, this is `codes` itself.
    """
    if not conditions:
        return codes
    found = np.where(reduce(np.logical_and, conditions), codes, np.int32(ABSENT))
    return codes if np.array_equal(found, codes) else found
