"""Plugins that break one promise each, and the honest plugin that they are made from."""

from __future__ import annotations

import random
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Action,
    ClusterEvent,
    Columns,
    CycleState,
    Depends,
    EventResource,
    EventWithHint,
    Hint,
    Ints,
    NodeInfo,
    PreFilterResult,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_mask,
    row_count,
    unschedulable,
)

DISK = "disk"
NO_DISK = unschedulable("node(s) have another disk")
NODE_CHANGED = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)

POD_RELABELLED = ClusterEvent(EventResource.POD, Action.UPDATE_POD_LABEL)


def accepts(pod: Pod, disk: str | None) -> bool:
    wanted = pod.labels.get(DISK)
    return wanted is None or wanted == disk


def after_node_change(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
    fits = isinstance(new, Node) and accepts(pod, new.labels.get(DISK))
    return Hint.QUEUE if fits else Hint.SKIP


class Honest:
    """A pod goes to nodes with the disk that it wants; the fewer pods, the better."""

    name = "Honest"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return SUCCESS if accepts(pod, node.labels.get(DISK)) else NO_DISK

    def filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        wanted, disks = pod.labels.get(DISK), columns.label(DISK)
        if wanted is None:
            return by_mask(np.ones(row_count(rows), np.bool_), NO_DISK)
        code = disks.code_of(wanted)
        return by_mask((disks.codes[rows] == code) & (code >= 0), NO_DISK)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - 10 * len(node.pods))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return np.maximum(0, 100 - 10 * columns.pod_count[rows])

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {DISK: pod.labels.get(DISK)}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(NODE_CHANGED, after_node_change),
            EventWithHint(POD_RELABELLED),
        )


# rows


class RowsForgetMissingLabels(Honest):
    """A disk that no node has is taken for the code of no label."""

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        wanted, disks = pod.labels.get(DISK), columns.label(DISK)
        if wanted is None:
            return by_mask(np.ones(row_count(rows), np.bool_), NO_DISK)
        return by_mask(disks.codes[rows] == disks.code_of(wanted), NO_DISK)


class RowsGiveAnotherReason(Honest):
    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        verdicts = super().filter_rows(state, pod, columns, rows)
        assert verdicts is not None
        return by_mask(verdicts.codes == 0, unschedulable("no"))


class RowsScoreOtherwise(Honest):
    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return np.maximum(0, 100 - 11 * columns.pod_count[rows])


class RowsIgnoreWhichRows(Honest):
    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return np.maximum(0, 100 - 10 * columns.pod_count[: columns.size])


# depends_on


class SaysNodeAndReadsPods(Honest):
    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE


class SaysUsageAndReadsOtherNodes(Honest):
    """PreFilter counts all nodes."""

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status | None:
        return SUCCESS if len(snapshot) % 2 else unschedulable("an even number of nodes")

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (EventWithHint(ClusterEvent(EventResource.WILDCARD, Action.ALL)),)


class SaysNodesAndReadsPods(Honest):
    """The score of a node counts the pods of all."""

    def __init__(self, args: object, handle: Any) -> None:
        self.cluster = handle.cluster

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODES

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return min(100, len(self.cluster.pods))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return np.full(row_count(rows), min(100, len(self.cluster.pods)), np.int64)


class SaysExtremesAndReadsTheSum(Honest):
    normalizes_by_extremes = True

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        scores[:] = scores * 100 // max(1, int(scores.sum()))


# sign


class SignsNothing(Honest):
    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {}


class ReadsTheName(Honest):
    """Pods that differ in their names only get different scores."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(pod.name) * 7 % 100 + (pod.name[-1] == "1")

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        score = len(pod.name) * 7 % 100 + (pod.name[-1] == "1")
        return np.full(row_count(rows), score, np.int64)


class SignsAList(Honest):
    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {DISK: [pod.labels.get(DISK)]}


# hints


class RegistersNothing(Honest):
    def events_to_register(self) -> Sequence[EventWithHint]:
        return ()


class SkipsUpdates(Honest):
    """The hint forgets that a node that is there may get the label."""

    def events_to_register(self) -> Sequence[EventWithHint]:
        def hint(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
            return after_node_change(pod, old, new) if old is None else Hint.SKIP

        return (EventWithHint(NODE_CHANGED, hint), EventWithHint(POD_RELABELLED))


class ForgetsThatPodsGo(Honest):
    """A node takes two pods, and no hint tells when one goes."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return SUCCESS if len(node.pods) < 1 else unschedulable("full")

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        return by_mask(columns.pod_count[rows] < 1, unschedulable("full"))


class ForgetsTheLabelsOfThePod(Honest):
    """The pod itself may get another label; no event of pods is registered."""

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (EventWithHint(NODE_CHANGED, after_node_change),)


# repeats


class DrawsLots(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return random.randrange(100)

    score_rows = None  # type: ignore[assignment]


class DependsOnTheOrderOfASet(Honest):
    """The order of a set of strings is another one in each process."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        # One set for each node: the scores of one node alone are equal in one of a hundred processes.
        names = ("blue", "green", "red", "white", "black", "brown", "pink", "grey")
        colors = {f"{node.name} {name}" for name in names}
        return sum(place * ord(color[-1]) for place, color in enumerate(colors)) % 101

    score_rows = None  # type: ignore[assignment]


# blocks


class Sleeps(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        time.sleep(0.003)  # noqa: TID251 - a liar
        return super().filter(state, pod, node)


class ReadsAFile(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        Path(__file__).read_bytes()
        return super().score(state, pod, node)


class AsksAServer(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        with socket.socket() as server:
            server.setblocking(False)
            server.connect_ex(("127.0.0.1", 9))
        return super().filter(state, pod, node)


class StartsAProcess(Honest):
    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status | None:
        subprocess.run(["true"], check=True)
        return None


class WaitsForALock(Honest):
    """No audit event tells of it."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        threading.Event().wait(0.003)
        return super().filter(state, pod, node)


class SleepsInAHint(Honest):
    def events_to_register(self) -> Sequence[EventWithHint]:
        def hint(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
            time.sleep(0.003)  # noqa: TID251 - a liar
            return Hint.QUEUE

        return (EventWithHint(NODE_CHANGED, hint), EventWithHint(POD_RELABELLED, hint))


# scores


class ScoresTooHigh(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 101

    score_rows = None  # type: ignore[assignment]


class ScoresBelowZero(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return -len(node.pods)

    score_rows = None  # type: ignore[assignment]


class ScoresFractions(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 1 / 3  # type: ignore[return-value]

    score_rows = None  # type: ignore[assignment]


class ScoresFloatRows(Honest):
    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return super().score_rows(state, pod, columns, rows) / 1  # type: ignore[return-value]


# inputs


class ChangesThePod(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if pod.metadata.labels:
            pod.metadata.labels["seen"] = "yes"
        return super().filter(state, pod, node)


class ChangesAnEmptyMap(Honest):
    """All pods that have no annotations share one map, which refuses."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        pod.metadata.annotations["seen"] = "yes"
        return super().filter(state, pod, node)


class ChangesTheColumns(Honest):
    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores = columns.pod_count[rows]
        scores *= -10
        scores += 100
        return np.maximum(scores, 0)


class ChangesTheNode(Honest):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        node.requested["cpu"] = node.requested.get("cpu", 0) + 1
        return super().score(state, pod, node)


class ChangesTheStateOfOthers(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        for key in state.values():
            if key.startswith("another-plugin/"):
                state.delete(key)
        return super().filter(state, pod, node)


# raises


class FailsWithoutALabel(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return SUCCESS if node.labels[DISK] == "a" else NO_DISK

    filter_rows = None  # type: ignore[assignment]


class AnswersYes(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return True  # type: ignore[return-value]

    filter_rows = None  # type: ignore[assignment]


class HintFails(Honest):
    """The queue tries the pod then, so the mistake would stay unnoticed."""

    def events_to_register(self) -> Sequence[EventWithHint]:
        def hint(pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
            raise LookupError("no such node")

        return (EventWithHint(NODE_CHANGED, hint), EventWithHint(POD_RELABELLED, hint))


class EndsTheProcess(Honest):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        raise SystemExit(0)


# unreserve


class Reserves(Honest):
    """A node is held by one pod. Honest."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    filter_rows = None  # type: ignore[assignment]

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        held = node.name in self.held.values()
        return unschedulable("held") if held else super().filter(state, pod, node)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (EventWithHint(ClusterEvent(EventResource.WILDCARD, Action.ALL)),)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self.held[pod.uid] = node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.held.pop(pod.uid, None)


class KeepsTheReservation(Reserves):
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass


class UnreservesOnlyOnce(Reserves):
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        del self.held[pod.uid]


class Leaks(Reserves):
    """Nobody reads what it remembers, but it is never forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self.seen.append(pod.uid)
        return super().reserve(state, pod, node_name)


#: The rule that each breaks.
LIARS: dict[type[Honest], str] = {
    RowsForgetMissingLabels: "rows",
    RowsGiveAnotherReason: "rows",
    RowsScoreOtherwise: "rows",
    RowsIgnoreWhichRows: "rows",
    SaysNodeAndReadsPods: "depends_on",
    SaysUsageAndReadsOtherNodes: "depends_on",
    SaysNodesAndReadsPods: "depends_on",
    SaysExtremesAndReadsTheSum: "depends_on",
    SignsNothing: "sign",
    ReadsTheName: "sign",
    SignsAList: "sign",
    RegistersNothing: "hints",
    SkipsUpdates: "hints",
    ForgetsThatPodsGo: "hints",
    ForgetsTheLabelsOfThePod: "hints",
    DrawsLots: "repeats",
    Sleeps: "blocks",
    ReadsAFile: "blocks",
    AsksAServer: "blocks",
    StartsAProcess: "blocks",
    WaitsForALock: "blocks",
    SleepsInAHint: "blocks",
    ScoresTooHigh: "scores",
    ScoresBelowZero: "scores",
    ScoresFractions: "scores",
    ScoresFloatRows: "scores",
    ChangesThePod: "inputs",
    ChangesAnEmptyMap: "raises",
    ChangesTheColumns: "inputs",
    ChangesTheNode: "inputs",
    ChangesTheStateOfOthers: "inputs",
    FailsWithoutALabel: "raises",
    AnswersYes: "raises",
    HintFails: "raises",
    EndsTheProcess: "raises",
    KeepsTheReservation: "unreserve",
    UnreservesOnlyOnce: "unreserve",
    Leaks: "unreserve",
}
