"""BatchSpread: batch pods go where fewest of them are, however large the node.

The number of batch pods on each node is a column of the plugin's own: the engine keeps it up to date, one
addition for each pod that comes or goes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    SKIP,
    Columns,
    CycleState,
    Depends,
    Handle,
    Ints,
    NodeInfo,
    PodsColumn,
    Rows,
    Snapshot,
    Status,
)

COLUMN = "batch_pods"
PER_POD = 20


def is_batch(pod: Pod) -> bool:
    return pod.labels.get("kind") == "batch"


class BatchSpread:
    name = "BatchSpread"
    own_columns = (PodsColumn(COLUMN, of=is_batch),)

    def __init__(self, args: object, handle: Handle) -> None:
        self._batch_pods = handle.column(COLUMN)

    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        """Other pods are left to the other plugins."""
        return None if is_batch(pod) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, MAX_SCORE - PER_POD * int(self._batch_pods.at(node)))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores: Ints = np.maximum(0, MAX_SCORE - PER_POD * columns.own(COLUMN)[rows])
        return scores

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"batch": is_batch(pod)}
