"""A plugin asked directly, in both forms: node by node, and all rows at once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import MAX_SCORE, MIN_SCORE, PreFilterResult
from mooring.framework.status import SKIP, Status
from mooring.objects.pod import Pod
from mooring.plugin_kit.rules import DEPENDS, INPUTS, RAISES, ROWS, SCORES, Broken
from mooring.plugin_kit.world import status_of
from mooring.runtime.plugin_calls import Calls, describe

_OTHERS_KEY = "another-plugin/left-this"
_PASSES = ("Success",)
_MOST = 5


@dataclass(slots=True)
class Said:
    """What a plugin says about one pod, by the name of the node."""

    pre_filter: tuple[str, ...] = ()
    verdicts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    raw: dict[str, int] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    #: How many answers of the two forms were compared.
    compared: int = 0

    def difference(self, other: Said) -> str | None:
        """The first cell that differs, in words."""
        if self.pre_filter != other.pre_filter:
            return f"PreFilter says {shown(self.pre_filter)} and {shown(other.pre_filter)}"
        pairs: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
            ("Filter says", self.verdicts, other.verdicts),
            ("the raw score is", self.raw, other.raw),
            ("the score is", self.scores, other.scores),
        )
        for what, ours, theirs in pairs:
            for node in sorted(ours.keys() | theirs.keys()):
                if ours.get(node) != theirs.get(node):
                    return (
                        f"on {node}, {what} {shown(ours.get(node))} and {shown(theirs.get(node))}"
                    )
        return None


def ask(call: Calls, pod: Pod, snapshot: Snapshot) -> Said:
    """Raises Broken if the two forms differ, if a score is no score, or if a method raises."""
    state = CycleState()
    others = object()
    state.write(_OTHERS_KEY, others)
    try:
        said = _ask(call, state, pod, snapshot)
    except Broken:
        raise
    except Exception as error:
        raise Broken(RAISES, f"for pod {pod.name}: {describe(error)}") from error
    if state.read(_OTHERS_KEY, object) is not others:
        raise Broken(INPUTS, "it changes what another plugin has written into the cycle state")
    return said


def _ask(call: Calls, state: CycleState, pod: Pod, snapshot: Snapshot) -> Said:
    said = Said()
    nodes = list(snapshot)
    skips = False
    if call.pre_filter is not None:
        result = call.pre_filter(state, pod, snapshot)
        if isinstance(result, PreFilterResult):
            said.pre_filter = ("only", *sorted(result.node_names))
            nodes = [node for node in nodes if node.name in result.node_names]
        else:
            said.pre_filter = status_of(result)
            skips = result is not None and result.code == SKIP.code
            if result is not None and not result.ok and not skips:
                return said
    if skips:
        # To skip and to let every node pass is the same answer.
        said.pre_filter = _PASSES
    else:
        _filter(call, state, pod, snapshot, nodes, said)
    for node in nodes if call.filter is not None or call.filter_rows is not None else ():
        said.verdicts.setdefault(node.name, _PASSES)
    passing = [node for node in nodes if said.verdicts.get(node.name, _PASSES) == _PASSES]
    if passing and (call.score is not None or call.score_rows is not None):
        _score(call, state, pod, snapshot, passing, said)
    return said


# Filter


def _filter(
    call: Calls,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nodes: list[NodeInfo],
    said: Said,
) -> None:
    if call.filter is not None:
        for node in nodes:
            said.verdicts[node.name] = status_of(_status(call.filter(state, pod, node), "filter"))
    if call.filter_rows is None:
        return
    for rows, numbers in _ways_to_ask(snapshot, nodes):
        verdicts = call.filter_rows(state, pod, snapshot.columns, rows)
        if verdicts is None:
            if call.filter is None:
                raise Broken(
                    ROWS, "filter_rows returns None, and there is no filter to ask instead"
                )
            return
        if verdicts.codes.shape != (len(numbers),):
            raise Broken(
                ROWS,
                f"filter_rows is asked for {len(numbers)} rows and answers {verdicts.codes.shape}",
            )
        by_rows = {row: verdicts.status(i) for i, row in enumerate(numbers)}
        for node in nodes:
            if node.row in by_rows:
                _same_verdict(pod, node.name, by_rows[node.row], said)


def _status(answer: Any, method: str) -> Status | None:
    """Raises Broken for what is neither a status nor None."""
    if answer is None or isinstance(answer, Status):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
        raise Broken(RAISES, f"{method} is `async def`; methods of the scheduling cycle are plain")
    raise Broken(RAISES, f"{method} returns {answer!r}, and not a Status or None")


def _same_verdict(pod: Pod, node: str, by_rows: Status, said: Said) -> None:
    verdict = status_of(by_rows)
    known = said.verdicts.setdefault(node, verdict)
    said.compared += 1
    if known != verdict:
        raise Broken(
            ROWS,
            f"for pod {pod.name} on {node}, filter says {shown(known)}"
            f" and filter_rows says {shown(verdict)}",
        )


# Score


def _score(
    call: Calls,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nodes: list[NodeInfo],
    said: Said,
) -> None:
    feasible = np.array([node.row for node in nodes], np.intp)
    if call.pre_score is not None:
        status = call.pre_score(state, pod, snapshot, feasible)
        if status is not None and status.code == SKIP.code:
            return
    if call.score is not None:
        for node in nodes:
            said.raw[node.name] = _whole(call.score(state, pod, node), pod, node.name)
    if call.score_rows is not None:
        _score_rows(call, state, pod, snapshot, nodes, said)
    raw = np.array([said.raw[node.name] for node in nodes], np.int64)
    scores = _normalized(call, state, pod, raw)
    _check_range(scores, pod, nodes)
    said.scores = dict(zip((node.name for node in nodes), scores.tolist(), strict=True))


def _whole(score: object, pod: Pod, node: str) -> int:
    try:
        return index(score)  # type: ignore[arg-type]
    except TypeError:
        raise Broken(
            SCORES, f"for pod {pod.name} on {node}, score is {score!r}, not a whole number"
        ) from None


def _score_rows(
    call: Calls,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nodes: list[NodeInfo],
    said: Said,
) -> None:
    assert call.score_rows is not None
    for rows, numbers in _ways_to_ask(snapshot, nodes):
        scores = call.score_rows(state, pod, snapshot.columns, rows)
        if getattr(scores, "dtype", None) != np.int64:
            kind = getattr(scores, "dtype", type(scores).__name__)
            raise Broken(SCORES, f"score_rows returns {kind}, not int64")
        if scores.shape != (len(numbers),):
            raise Broken(
                ROWS, f"score_rows is asked for {len(numbers)} rows and answers {scores.shape}"
            )
        by_rows = dict(zip(numbers, scores.tolist(), strict=True))
        for node in nodes:
            if node.row not in by_rows:
                continue
            known = said.raw.setdefault(node.name, by_rows[node.row])
            said.compared += 1
            if known != by_rows[node.row]:
                raise Broken(
                    ROWS,
                    f"for pod {pod.name} on {node.name}, score is {known}"
                    f" and score_rows says {by_rows[node.row]}",
                )


def _normalized(call: Calls, state: CycleState, pod: Pod, raw: Ints) -> Ints:
    scores = raw.copy()
    if call.normalize_scores is None:
        return scores
    status = call.normalize_scores(state, pod, scores)
    if status is not None and not status.ok:
        raise Broken(RAISES, f"normalize_scores fails: {status.message}")
    if call.normalizes_by_extremes and len(raw) > 2:
        _check_extremes(call, state, pod, raw, scores)
    return scores


def _check_extremes(call: Calls, state: CycleState, pod: Pod, raw: Ints, scores: Ints) -> None:
    """Each score alone with the lowest and the highest one is what it is among all."""
    assert call.normalize_scores is not None
    lowest, highest = int(raw.min()), int(raw.max())
    for place, score in enumerate(raw.tolist()):
        alone = np.array([score, lowest, highest], np.int64)
        call.normalize_scores(state, pod, alone)
        if int(alone[0]) != int(scores[place]):
            raise Broken(
                DEPENDS,
                f"normalizes_by_extremes is True, but {score} becomes {int(scores[place])} among"
                f" {raw.tolist()} and {int(alone[0])} beside {lowest} and {highest} alone",
            )


def _check_range(scores: Ints, pod: Pod, nodes: list[NodeInfo]) -> None:
    for node, score in zip(nodes, scores.tolist(), strict=True):
        if not MIN_SCORE <= score <= MAX_SCORE:
            raise Broken(SCORES, f"for pod {pod.name} on {node.name}, the score is {score}")


def _ways_to_ask(snapshot: Snapshot, nodes: list[NodeInfo]) -> Iterator[tuple[Rows, list[int]]]:
    """Every slot, free ones too, as a slice; the nodes in reverse; one node; none."""
    columns = snapshot.columns
    yield columns.all_rows, list(range(columns.size))
    some: NDArray[np.intp] = np.array([node.row for node in nodes], np.intp)
    for rows in (some[::-1], some[:1], some[:0]):
        yield rows, rows.tolist()


def shown(value: object) -> str:
    """A verdict or a score as a user reads it."""
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        code, *reasons = value
        return f"{code} ({', '.join(reasons[:_MOST])})" if reasons else str(code)
    return str(value)
