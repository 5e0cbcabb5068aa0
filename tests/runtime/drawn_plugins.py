"""Plugins that hypothesis draws: each is honest about what its answers depend on, and about nothing else.

A plugin's answer is a number made from its name, the method, the part of the pod that it signs, and
what it says it depends on. So two answers differ as soon as anything differs that they may depend on, and an
answer that was kept too long is soon a wrong one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, Handle, PreFilterResult
from mooring.framework.status import SKIP, SUCCESS, Code, Status, unschedulable
from mooring.framework.verdicts import RowVerdicts, by_table
from mooring.objects.node import Node
from mooring.objects.pod import Pod

#: The label of a pod that plugins sign, and the label of a node that they look at.
CLASS = "class"
COLOR = "color"

CLASSES = ("a", "b", "c")

#: What PreFilter does for the pods of a class.
PASSES, SKIPS, NARROWS, REJECTS, GIVES_UP = "pass", "skip", "narrow", "reject", "give up"

#: The methods that raise for some pods, or on some nodes.
MAY_RAISE = (
    "depends_on",
    "sign",
    "pre_filter",
    "add_pod",
    "filter",
    "pre_score",
    "score",
    "normalize_scores",
)


@dataclass(frozen=True)
class Design:
    """How a plugin is written."""

    #: By class of the pod; None if it does not say.
    depends: tuple[Depends, ...] | None
    #: "label", "nothing" or "refuses".
    signs: str
    #: What PreFilter does, by class; None if there is no such method.
    pre_filter: tuple[str, ...] | None
    #: The forms of Filter and of Score that it has: "node", "rows", both or none.
    filters: frozenset[str]
    scores: frozenset[str]
    #: Whether PreScore skips, by class; None if there is no such method.
    pre_score: tuple[bool, ...] | None
    #: "" if it does not normalise.
    normalizes: str
    weight: int
    #: The classes for which `filter_rows` returns None.
    not_by_rows: frozenset[str]
    raises_at: frozenset[str]
    #: Whether some scores are out of range.
    out_of_range: bool
    #: Whether it sees the pods of a node only through columns; only with Depends.USAGE.
    reads_usage_columns: bool
    #: Whether it looks at how many colours there are rather than at each node, and says when that changes;
    #: only with Depends.NODES.
    versions_nodes: bool


_FORMS = st.sampled_from([(), ("node",), ("rows",), ("node", "rows")]).map(frozenset)
_PRE_FILTERS = [PASSES, PASSES, SKIPS, REJECTS, GIVES_UP, NARROWS]
_NORMALIZERS = ["", "", "extremes", "identity", "sum"]
_NOT_BY_ROWS = st.sets(st.sampled_from(CLASSES)).map(frozenset)
_DEPENDS = st.sampled_from([Depends.NODE, Depends.USAGE, Depends.NODES, Depends.CLUSTER])


def _seldom(value: st.SearchStrategy[Any], otherwise: object) -> st.SearchStrategy[Any]:
    return st.one_of(*[st.just(otherwise)] * 5, value)


def _by_class(value: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    alike = value.map(lambda one: (one,) * len(CLASSES))
    return st.one_of(alike, st.tuples(*[value] * len(CLASSES)))


DESIGNS = st.builds(
    Design,
    depends=st.one_of(st.none(), *[_by_class(_DEPENDS)] * 4),
    signs=st.sampled_from(["label", "label", "nothing", "nothing", "refuses"]),
    pre_filter=st.one_of(
        st.none(),
        st.just((PASSES,) * len(CLASSES)),
        _by_class(st.sampled_from(_PRE_FILTERS)),
    ),
    filters=_FORMS,
    scores=_FORMS,
    pre_score=st.one_of(st.none(), _by_class(_seldom(st.just(True), False))),
    normalizes=st.sampled_from(_NORMALIZERS),
    weight=st.integers(1, 3),
    not_by_rows=_seldom(_NOT_BY_ROWS, frozenset()),
    raises_at=_seldom(
        st.sets(st.sampled_from(MAY_RAISE), min_size=1, max_size=2).map(frozenset), frozenset()
    ),
    out_of_range=_seldom(st.just(True), False),
    reads_usage_columns=st.booleans(),
    versions_nodes=st.booleans(),
).filter(lambda design: design.filters or design.scores)


class Seen:
    """What PreFilter or PreScore leaves for the methods after it; dry runs change a clone."""

    def __init__(self, around: object, pods: int = 0) -> None:
        self.around = around
        #: How many pods dry runs added.
        self.pods = pods

    def clone(self) -> Seen:
        return Seen(self.around, self.pods)


def make_plugin(name: str, design: Design) -> type[DrawnPlugin]:
    """A class that has the methods of its design and no others."""
    only = set(design.depends or (Depends.CLUSTER,))
    has = {
        "depends_on": design.depends is not None,
        "sign": True,
        "pre_filter": design.pre_filter is not None,
        "add_pod": design.pre_filter is not None and only == {Depends.CLUSTER},
        "filter": "node" in design.filters,
        "filter_rows": "rows" in design.filters,
        "pre_score": design.pre_score is not None,
        "score": "node" in design.scores,
        "score_rows": "rows" in design.scores,
        "normalize_scores": bool(design.scores and design.normalizes),
        "nodes_version": design.versions_nodes,
    }
    methods = {method: getattr(DrawnPlugin, f"_{method}") for method in has if has[method]}
    looks = design.reads_usage_columns and only == {Depends.USAGE}
    return type(
        name,
        (DrawnPlugin,),
        {
            **methods,
            "name": name,
            "design": design,
            "reads_usage_columns": looks,
            "normalizes_by_extremes": design.normalizes in ("extremes", "identity"),
        },
    )


class DrawnPlugin:
    """The methods that a design may have."""

    name: str
    design: Design

    def __init__(self, args: object, handle: Handle) -> None:
        self._cluster = handle.cluster

    # What it looks at

    def _depends_on(self, pod: Pod) -> Depends:
        self._maybe_raise("depends_on", pod.metadata.labels[CLASS])
        return self._declared(pod)

    def _sign(self, pod: Pod) -> dict[str, object] | Status:
        self._maybe_raise("sign", pod.metadata.labels[CLASS])
        if self.design.signs == "refuses":
            return unschedulable("does not sign")
        return {"class": pod.metadata.labels[CLASS]} if self.design.signs == "label" else {}

    def _declared(self, pod: Pod) -> Depends:
        depends = self.design.depends
        return Depends.CLUSTER if depends is None else depends[_place(pod)]

    def _part(self, pod: Pod) -> object:
        """Equal for pods that it signs alike."""
        if self.design.signs == "refuses" and self.design.depends is None:
            return pod.name
        signed = "" if self.design.signs == "nothing" else pod.metadata.labels[CLASS]
        return self._declared(pod), signed

    def _around(self, pod: Pod) -> object:
        """What it may see beside the node that it is asked about."""
        depends = self._declared(pod)
        if depends not in (Depends.NODES, Depends.CLUSTER):
            return None
        if depends == Depends.NODES and self.design.versions_nodes:
            return self._count_of_colors()
        nodes = self._nodes()
        seen = sorted((node.name, node.metadata.labels[COLOR]) for node in nodes)
        return seen, len(self._cluster.pods) if depends == Depends.CLUSTER else 0

    def _nodes_version(self) -> int:
        return self._count_of_colors()

    def _count_of_colors(self) -> int:
        return len({node.metadata.labels[COLOR] for node in self._nodes()})

    def _nodes(self) -> list[Node]:
        return [info.node for info in self._cluster.infos.values() if info.node is not None]

    # PreFilter

    def _pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status | None:
        assert self.design.pre_filter is not None
        around = self._around(pod)
        self._maybe_raise("pre_filter", self._part(pod), around)
        does = self.design.pre_filter[_place(pod) if self._tells_classes_apart() else 0]
        number = self._number("pre_filter", self._part(pod), around)
        if does == SKIPS:
            return SKIP
        state.write(self._key("pre_filter"), Seen(around))
        if does == REJECTS:
            return unschedulable(f"{self.name} rejects {number % 3}")
        if does == GIVES_UP:
            return Status(Code.UNRESOLVABLE, (f"{self.name} gives up {number % 3}",))
        if does == NARROWS:
            return PreFilterResult(
                frozenset(f"node-{i}" for i in range(9) if number >> i & 1 or i == number % 9)
            )
        return None

    def _add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        self._maybe_raise("add_pod", self._part(pod), node.name)
        seen = state.read(self._key("pre_filter"), Seen)
        if seen is None:
            raise LookupError(f"{self.name} did not find what its PreFilter left")
        seen.pods += 1

    # Filter

    def _filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert node.node is not None
        color = node.node.metadata.labels[COLOR]
        return self._judge(state, pod, node.name, color, len(node.pods))

    def _filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        classes = self.design.not_by_rows
        if classes and (
            pod.metadata.labels[CLASS] in classes if self._tells_classes_apart() else "a" in classes
        ):
            return None
        statuses = [SUCCESS]
        codes = []
        for name, color, pods in _cells(columns, rows):
            status = self._judge(state, pod, name, color, pods) if name else SUCCESS
            if status not in statuses:
                statuses.append(status)
            codes.append(statuses.index(status))
        return by_table(np.array(codes, np.int64), statuses)

    def _judge(self, state: CycleState, pod: Pod, name: str, color: str, pods: int) -> Status:
        seen = self._seen(state, pod, "pre_filter", name, color, pods)
        self._maybe_raise("filter", name, seen)
        number = self._number("filter", seen)
        if number % 5:
            return SUCCESS
        code = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE, Code.UNRESOLVABLE)[number // 5 % 3]
        return Status(code, (f"{self.name} refuses {number % 7}",))

    # Score

    def _pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        assert self.design.pre_score is not None
        around = self._around(pod)
        self._maybe_raise("pre_score", self._part(pod), around)
        if self.design.pre_score[_place(pod) if self._tells_classes_apart() else 0]:
            return SKIP
        if self._declared(pod) == Depends.CLUSTER:
            around = around, np.arange(snapshot.columns.size)[rows].tolist()
        state.write(self._key("pre_score"), Seen(around))
        return None

    def _score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        assert node.node is not None
        color = node.node.metadata.labels[COLOR]
        return self._value(state, pod, node.name, color, len(node.pods))

    def _score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores = [
            self._value(state, pod, name, color, pods)
            for name, color, pods in _cells(columns, rows)
        ]
        return np.array(scores, np.int64)

    def _value(self, state: CycleState, pod: Pod, name: str, color: str, pods: int) -> int:
        seen = self._seen(state, pod, "pre_score", name, color, pods)
        self._maybe_raise("score", name, seen)
        number = self._number("score", seen)
        if self.design.out_of_range and number % 11 == 0:
            return 101 + number % 3 if number % 2 else -1 - number % 3
        return number % 5 * 25

    def _normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        if "normalize_scores" in self.design.raises_at and scores.max() > 75:
            raise ArithmeticError(f"{self.name} cannot normalise {scores.max()}")
        kind = self.design.normalizes
        if kind == "extremes":
            lowest, highest = int(scores.min()), int(scores.max())
            scores[:] = (scores - lowest) * 100 // max(1, highest - lowest)
        elif kind == "sum":
            scores[:] = np.clip(scores, 0, 100) * 100 // max(1, int(np.clip(scores, 0, 100).sum()))

    # Numbers

    def _seen(
        self, state: CycleState, pod: Pod, point: str, name: str, color: str, pods: int
    ) -> tuple[object, ...]:
        """All that an answer about a node may depend on."""
        depends = self._declared(pod)
        around, added = self._around(pod), 0
        if getattr(self.design, point) is not None:
            left = state.read(self._key(point), Seen)
            if left is None:
                raise LookupError(f"{self.name} did not find what its {point} left")
            around, added = left.around, left.pods
        usage = pods if depends in (Depends.USAGE, Depends.CLUSTER) else 0
        return self._part(pod), name, color, usage, around, added

    def _tells_classes_apart(self) -> bool:
        """Else what it does must be the same for all classes, since it signs all pods alike."""
        return self.design.signs != "nothing"

    def _maybe_raise(self, method: str, *seen: object) -> None:
        if method in self.design.raises_at and not self._number(method, "raises", *seen) % 4:
            raise ArithmeticError(f"{self.name} cannot do {method} for {seen[0]}")

    def _number(self, *seen: object) -> int:
        return zlib.crc32(repr((self.name, *seen)).encode())

    def _key(self, point: str) -> str:
        return f"{self.name}/{point}"


def _place(pod: Pod) -> int:
    return CLASSES.index(pod.metadata.labels[CLASS])


def _cells(columns: Columns, rows: Rows) -> Iterator[tuple[str, str, int]]:
    """Name, colour and number of pods of each row; a free one has no name."""
    colors = columns.label(COLOR)
    for row in np.arange(columns.size)[rows].tolist():
        alive = bool(columns.alive[row])
        yield columns.names[row] if alive else "", colors.at(row) or "", int(columns.pod_count[row])
