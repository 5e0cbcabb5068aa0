"""Watching another scheduler: what would mooring have decided, pod by pod?

When the watch shows that a pod was bound, or was refused, mooring decides about the same pod on the cluster
as the watch had shown it up to then. Nothing is written and nothing assumed, so a decision that differs does
not make the next one differ too. Ties are no difference: any of the best nodes is as good as another.

The other scheduler may have seen a little more or less when it decided: pods that it had placed but not yet
bound, or bound since. So a few differences in a busy cluster are to be expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from mooring.errors import ApiError, ExtenderError
from mooring.framework.api import ClaimWriter, Event, PodStatusPatch
from mooring.live.driver import Driver
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.decision import Decision, NoNodesError

#: How many of the best nodes are named.
_MOST_NAMED = 3

K = TypeVar("K", bound=KubeObject)


class Verdict(Enum):
    """How two decisions about one pod compare."""

    SAME = "same"
    #: The node is one of several that are equally good.
    TIE = "tie"
    #: The node would do, but another is better.
    LESS_GOOD = "less good"
    #: A rule refuses the node.
    REFUSED = "refused"
    #: The other refused a pod that has a place.
    HAS_A_PLACE = "has a place"
    #: Both find no place.
    BOTH_REFUSE = "both refuse"
    #: Mooring could not decide.
    FAILED = "failed"

    @property
    def agrees(self) -> bool:
        return self in (Verdict.SAME, Verdict.TIE, Verdict.BOTH_REFUSE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pod, as two schedulers see it."""

    pod: str
    scheduler: str
    verdict: Verdict
    #: Where it was bound; empty if it was refused.
    actual: str
    #: The best nodes, a few of them.
    best: tuple[str, ...] = ()
    best_count: int = 0
    #: Why, where the two differ.
    explanation: str = ""
    #: Plugin → (weighted score of the actual node, of the best one), where they differ.
    scores: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "scheduler": self.scheduler,
            "agrees": self.verdict.agrees,
            "verdict": self.verdict.value,
            "actual": self.actual,
            "best": list(self.best),
            "bestCount": self.best_count,
            "explanation": self.explanation,
            "scores": {
                plugin: {"actual": actual, "best": best}
                for plugin, (actual, best) in self.scores.items()
            },
        }


class ReadOnlyWriter:
    """Nothing is ever written."""

    @property
    def claims(self) -> ClaimWriter:
        raise ApiError("a shadow writes nothing")

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise ApiError("a shadow binds nothing")

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        raise ApiError("a shadow writes nothing")

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        raise ApiError("a shadow writes nothing")

    async def delete_pod(self, pod: Pod) -> None:
        raise ApiError("a shadow deletes nothing")

    async def update_object(self, obj: K) -> K:
        raise ApiError("a shadow writes nothing")

    def record_event(self, event: Event) -> None:
        pass


class Shadow:
    """Told what happens, tells how decisions compare. The driver keeps the cache and is never started."""

    def __init__(self, driver: Driver, on_comparison: Callable[[Comparison], None]) -> None:
        self._driver = driver
        self._on_comparison = on_comparison
        #: Whether the whole cluster is known; until then nothing is compared.
        self.ready = False
        self.tally: Counter[Verdict] = Counter()

    @property
    def compared(self) -> int:
        return sum(self.tally.values())

    @property
    def agreed(self) -> int:
        return sum(count for verdict, count in self.tally.items() if verdict.agrees)

    def added(self, obj: KubeObject) -> None:
        self._driver.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if self.ready and isinstance(old, Pod) and isinstance(new, Pod) and not old.node_name:
            if new.node_name:
                self._compare(old, new.node_name)
            elif _newly_refused(old, new):
                self._compare(new, "")
        self._driver.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        self._driver.deleted(obj)

    def _compare(self, pod: Pod, actual: str) -> None:
        scheduler = self._driver.scheduler
        if pod.scheduler_name not in scheduler.frameworks:
            return
        try:
            comparison = compare(scheduler.decide(pod), actual)
        except NoNodesError as error:
            verdict = Verdict.REFUSED if actual else Verdict.BOTH_REFUSE
            comparison = _plain(pod, verdict, actual, str(error))
        except (PluginFailure, ExtenderError) as error:
            comparison = _plain(pod, Verdict.FAILED, actual, str(error))
        self.tally[comparison.verdict] += 1
        self._on_comparison(comparison)


def compare(decision: Decision, actual: str) -> Comparison:
    """How mooring's decision compares with the node that another chose; "" if it chose none."""
    pod, diagnosis = decision.pod, decision.diagnosis
    names = diagnosis.snapshot.columns.names
    best = sorted(names[row] for row in decision.winners.tolist())
    if not best:
        verdict = Verdict.REFUSED if actual else Verdict.BOTH_REFUSE
        why = _refusal(decision, actual) if actual else ""
        return _plain(pod, verdict, actual, why)
    shown, count = tuple(best[:_MOST_NAMED]), len(best)
    if not actual:
        why = f"{decision.feasible_count} nodes would take it"
        return Comparison(pod.key, pod.scheduler_name, Verdict.HAS_A_PLACE, "", shown, count, why)
    if actual in best:
        verdict = Verdict.SAME if count == 1 else Verdict.TIE
        return Comparison(pod.key, pod.scheduler_name, verdict, actual, shown, count)
    row = diagnosis.snapshot.columns.row_of.get(actual)
    if row is None or row not in decision.feasible:
        why = _refusal(decision, actual)
        return Comparison(pod.key, pod.scheduler_name, Verdict.REFUSED, actual, shown, count, why)
    scores = _differing_scores(decision, row)
    return Comparison(
        pod.key,
        pod.scheduler_name,
        Verdict.LESS_GOOD,
        actual,
        shown,
        count,
        _score_text(decision, row, actual, shown[0], scores),
        scores,
    )


def _refusal(decision: Decision, actual: str) -> str:
    if actual not in decision.diagnosis.snapshot:
        return f"{actual} is not known"
    if decision.pod.nominated_node_name and len(decision.feasible):
        return f"the pod is nominated to {decision.pod.nominated_node_name}, which fits"
    status = decision.diagnosis.get(actual)
    by = f"{status.plugin}: " if status.plugin else ""
    return f"{actual}: {by}{status.message or 'not looked at'}"


def _differing_scores(decision: Decision, row: int) -> dict[str, tuple[int, int]]:
    """By plugin, the weighted scores of the actual node and of the best, where they are not equal."""
    matrix = decision.scores
    if matrix is None:
        return {}
    (at,) = np.flatnonzero(matrix.rows == row).tolist()
    best = int(np.argmax(matrix.total))
    found = {}
    for plugin, weight, normalized in zip(
        matrix.plugins, matrix.weights, matrix.normalized, strict=True
    ):
        theirs, ours = int(normalized[at]) * weight, int(normalized[best]) * weight
        if theirs != ours:
            found[plugin] = theirs, ours
    return found


def _score_text(
    decision: Decision, row: int, actual: str, best: str, scores: dict[str, tuple[int, int]]
) -> str:
    matrix = decision.scores
    if matrix is None:
        return f"{best} is the only node that was looked at"
    total = int(matrix.total[matrix.rows == row][0])
    parts = ", ".join(f"{name} {theirs}:{ours}" for name, (theirs, ours) in scores.items())
    return f"{actual} scores {total}, {best} {int(matrix.total.max())} ({parts})"


def _plain(pod: Pod, verdict: Verdict, actual: str, why: str) -> Comparison:
    return Comparison(pod.key, pod.scheduler_name, verdict, actual, explanation=why)


def _newly_refused(old: Pod, new: Pod) -> bool:
    before, now = old.condition("PodScheduled"), new.condition("PodScheduled")
    if now is None or now.status != "False" or now.reason != "Unschedulable":
        return False
    return before is None or (before.status, before.message) != (now.status, now.message)
