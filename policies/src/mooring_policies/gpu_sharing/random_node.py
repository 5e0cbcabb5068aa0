"""RandomScore: any node that fits, each as likely as the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    MIN_SCORE,
    SUCCESS,
    Columns,
    CycleState,
    Ints,
    NodeInfo,
    Rows,
    Snapshot,
    Status,
)
from mooring_policies.gpu_sharing.gpu_choice import draw

_STATE = "mooring-policies/random-node"


class RandomArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    #: Another seed chooses other nodes.
    seed: int = 0
    #: Configurations of the public simulator have these; they choose nothing here.
    dim_ext_method: str = "share"
    norm_method: str = "max"


@dataclass(frozen=True, slots=True)
class _Chosen:
    row: int


class RandomScore:
    """The choice follows from the seed, the pod's UID and the nodes: the same run gives the same result."""

    name = "RandomScore"
    Args = RandomArgs

    def __init__(self, args: RandomArgs | Mapping[str, object] | None) -> None:
        if not isinstance(args, RandomArgs):
            args = msgspec.convert(args or {}, RandomArgs)
        self._seed = args.seed

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        feasible = np.arange(rows.stop) if isinstance(rows, slice) else np.sort(rows)
        if len(feasible):
            place = draw(f"node/{self._seed}/{pod.uid}", len(feasible))
            state.write(_STATE, _Chosen(int(feasible[place])))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return MAX_SCORE if node.row == _chosen_row(state) else MIN_SCORE

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        asked = np.arange(rows.stop) if isinstance(rows, slice) else rows
        return np.where(asked == _chosen_row(state), MAX_SCORE, MIN_SCORE).astype(np.int64)


def _chosen_row(state: CycleState) -> int:
    chosen = state.read(_STATE, _Chosen)
    return chosen.row if chosen is not None else -1
