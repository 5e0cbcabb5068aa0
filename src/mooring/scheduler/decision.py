"""Where a pod goes, or why nowhere."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.errors import MooringError
from mooring.framework.interface import PostFilterResult
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.runtime.evaluation import PreFilterOutcome, Scores
from mooring.runtime.scoring import ScoreMatrix
from mooring.scheduler.diagnosis import Diagnosis

_NO_ROWS = np.empty(0, np.intp)


class Decision(msgspec.Struct, eq=False):
    """Where a pod goes, or why nowhere, with everything that led there.

    The reasons are worked out when they are asked for, which must be before the cluster changes.
    """

    pod: Pod
    pre_filter: PreFilterOutcome
    diagnosis: Diagnosis
    #: The node taken; None if none fits.
    node_name: str | None = None
    #: How many nodes are feasible.
    feasible_count: int = 0
    #: intp[...]: the feasible rows.
    feasible: NDArray[np.intp] = _NO_ROWS
    #: None where there was nothing to compare: one feasible node, or none.
    scored: Scores | None = None
    #: How many nodes were looked at.
    evaluated: int = 0
    #: Whether plugins score the nodes as if they were empty; see `extenders.Survivors`.
    bare: bool = False
    #: What PostFilter did for a pod that fits nowhere; None until then, or if it did nothing.
    post_filter: PostFilterResult | None = None
    #: What the attempt at a pod of the same class came to, if that holds for this one; then PostFilter
    #: is not asked.
    conclusion: Status | None = None

    @property
    def scores(self) -> ScoreMatrix | None:
        return self.scored.matrix if self.scored is not None else None

    def keep_reasons(self) -> None:
        """Work the reasons out now, for those who ask after the cluster has changed."""
        if self.diagnosis.filtered is not None:
            self.diagnosis.filtered.matrix(complete=True)
        if self.scored is not None:
            self.scored.keep_matrix()

    @property
    def winners(self) -> NDArray[np.intp]:
        """intp[...]: the best of the feasible rows."""
        return self.feasible if self.scores is None else self.scores.best


class NoNodesError(MooringError):
    """There is not a single node."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


class NoProfileError(MooringError):
    """No profile has the scheduler name of a pod."""

    def __init__(self, pod: Pod) -> None:
        super().__init__(f"no profile has the scheduler name {pod.scheduler_name!r}")
