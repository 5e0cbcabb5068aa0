"""The counts of required terms, and the verdicts that follow from them (PreFilter, Filter)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Ints,
    Mask,
    NodeInfo,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_table,
    row_count,
    unresolvable,
    unschedulable,
)
from mooring.plugin.nodes import LabelColumn
from mooring.plugin.pods import HeldTerm, PodQuery, TermKind, look_up
from mooring.plugins.inter_pod_affinity.queries import TermQueries
from mooring.plugins.inter_pod_affinity.topology_counts import TopologyCounts

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

#: The status for each code. If a node has several verdicts, the highest code decides.
_VERDICTS = (SUCCESS, EXISTING_ANTI_AFFINITY, ANTI_AFFINITY, NO_AFFINITY)
_EXISTING_CODE, _ANTI_CODE, _AFFINITY_CODE = 1, 2, 3


@dataclass(slots=True, kw_only=True)
class Required:
    """What PreFilter counts for the required terms of the incoming pod and of placed pods."""

    pod: Pod
    #: The labels of the pod's namespace, for the namespace selectors of placed pods' terms.
    namespace_labels: Mapping[str, str]
    queries: TermQueries
    #: The placed pods that match the required terms of the pod.
    affinity: TopologyCounts
    anti: TopologyCounts
    #: The placed pods that have a required anti-affinity term which matches the pod.
    existing_anti: TopologyCounts

    def update(self, other: Pod, node: NodeInfo, delta: int) -> None:
        """Count another pod that is added to a node (delta 1) or removed from it (delta -1)."""
        pod, labels = self.pod, node.labels
        for term in other.affinity_terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                self.existing_anti.add(term.topology_key, labels, delta)
        for key, query in self.queries.affinity:
            if query.picks(other):
                self.affinity.add(key, labels, delta)
        for key, query in self.queries.anti:
            if query.picks(other):
                self.anti.add(key, labels, delta)

    def judge(self, labels: Mapping[str, str]) -> Status:
        """The verdict for a node with these labels."""
        if not self._satisfies_affinity(labels):
            return NO_AFFINITY
        if any(count > 0 for count in self.anti.on_node(labels)):
            return ANTI_AFFINITY
        if any(count > 0 for count in self.existing_anti.on_node(labels)):
            return EXISTING_ANTI_AFFINITY
        return SUCCESS

    def judge_rows(self, rows: Rows) -> RowVerdicts:
        """The same rule for many rows: judge each domain once, then look up each row's domain."""
        verdicts: NDArray[np.int8] | None = None
        for column, judged in self._judge_domains().items():
            found = look_up(judged, column.codes[rows])
            verdicts = found if verdicts is None else np.maximum(verdicts, found, out=verdicts)
        if verdicts is None:
            verdicts = np.zeros(row_count(rows), np.int8)
        return by_table(verdicts, _VERDICTS)

    def anti_on_rows(self, rows: Rows) -> dict[str, Ints]:
        """int64[row] each: how many pods in the domains of a row stand against the pod, by topology key."""
        return {
            f"{what} {table.column.key}": look_up(table.totals, table.column.codes[rows])
            for what, counts in (("own", self.anti), ("existing", self.existing_anti))
            for table in counts.tables()
        }

    def clone(self) -> Required:
        return replace(
            self,
            affinity=self.affinity.clone(),
            anti=self.anti.clone(),
            existing_anti=self.existing_anti.clone(),
        )

    def _satisfies_affinity(self, labels: Mapping[str, str]) -> bool:
        """A node needs every key, and in each of its domains a pod that matches all terms."""
        terms = self.queries.affinity
        if not all(key in labels for key, _ in terms):
            return False
        return all(self.affinity.at(key, labels) > 0 for key, _ in terms) or self._is_first

    @property
    def _is_first(self) -> bool:
        """Whether the pod is the first that matches its own terms: it may then go to any domain.

        Otherwise the first pod of a group that attracts itself would wait forever.
        """
        return self.affinity.empty and all(
            query.picks(self.pod) for _, query in self.queries.affinity
        )

    def _judge_domains(self) -> dict[LabelColumn, NDArray[np.int8]]:
        """int8[domain + 1] for each key: the code for its domains, and for nodes without the key."""
        verdicts: dict[LabelColumn, NDArray[np.int8]] = {}

        def refuse(column: LabelColumn, refused: Mask, code: int) -> None:
            judged = refused.view(np.int8)
            judged *= np.int8(code)
            known = verdicts.get(column)
            verdicts[column] = judged if known is None else np.maximum(known, judged, out=known)

        for table in self.existing_anti.tables():
            refuse(table.column, table.totals > 0, _EXISTING_CODE)
        for table in self.anti.tables():
            refuse(table.column, table.totals > 0, _ANTI_CODE)
        is_first = self._is_first
        for table in self.affinity.tables():
            unmatched = np.zeros_like(table.totals, np.bool_) if is_first else table.totals <= 0
            unmatched[-1] = True
            refuse(table.column, unmatched, _AFFINITY_CODE)
        return verdicts


def count_matching(queries: Iterable[tuple[str, PodQuery]], snapshot: Snapshot) -> TopologyCounts:
    """Count the placed pods that each query picks, for its topology key."""
    counts = TopologyCounts(snapshot.columns)
    for key, query in queries:
        counts.add_rows(key, snapshot.pod_counts.kept(query))
    return counts


def count_existing_anti(held_terms: Iterable[HeldTerm], snapshot: Snapshot) -> TopologyCounts:
    """Count the placed pods whose required anti-affinity is among these terms."""
    counts = TopologyCounts(snapshot.columns)
    for held in held_terms:
        if held.kind is TermKind.REQUIRED_ANTI_AFFINITY and held.listed:
            counts.add_rows(held.term.topology_key, held.rows)
    return counts
