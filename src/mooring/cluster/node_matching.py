"""Which nodes match a pod's nodeSelector and node affinity: one node, or many rows at once.

The rule for one value of one label is `Requirement.accepts`. For rows, the few values of a
requirement become codes, which are compared. Only `Gt` and `Lt`, which have a bound instead of
values, use the rule itself, once for each distinct value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.cluster.columns import ABSENT, Codes, Columns, LabelColumn, Mask, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import (
    EVERYTHING,
    NAME_FIELD,
    NodeTerm,
    Requirement,
    Selector,
    compile_node_terms,
    selector_from_map,
)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """A pod's nodeSelector and required node affinity: a node must match both."""

    selector: Selector = EVERYTHING
    #: The terms, one of which must match; None if there is no required affinity. An empty list
    #: matches no node.
    terms: tuple[NodeTerm, ...] | None = None
    #: Whether some terms are malformed. They never match; only queueing hints need to know.
    malformed: bool = False

    @classmethod
    def of(cls, pod: Pod) -> RequiredNodeAffinity:
        selector = selector_from_map(pod.spec.node_selector or {})
        affinity = pod.spec.affinity
        if (
            affinity is None
            or affinity.node_affinity is None
            or affinity.node_affinity.required is None
        ):
            return cls(selector)
        given = affinity.node_affinity.required.node_selector_terms
        terms = compile_node_terms(given)
        filled = sum(1 for term in given if term.match_expressions or term.match_fields)
        return cls(selector, terms, malformed=len(terms) < filled)

    def matches(self, info: NodeInfo) -> bool:
        return info.node is not None and self.matches_node(info.node)

    def matches_node(self, node: Node) -> bool:
        return self.selector.matches(node.labels) and (
            self.terms is None or matches_any(self.terms, node)
        )

    def match_rows(self, columns: Columns, rows: Rows) -> Mask:
        """bool[row asked for]: the same for many rows; a row without a node does not match."""
        passes = _all_of(self.selector.requirements, columns, rows)
        if self.terms is not None:
            passes &= match_rows_any(self.terms, columns, rows)
        return passes


def matches_any(terms: Iterable[NodeTerm], node: Node) -> bool:
    return any(term.matches(node.labels, node.name) for term in terms)


def match_rows_any(terms: Sequence[NodeTerm], columns: Columns, rows: Rows) -> Mask:
    """bool[row asked for]: whether one of the terms matches; False if there are none."""
    passes = np.zeros_like(columns.alive[rows])
    for term in terms:
        passes |= match_rows(term, columns, rows)
    return passes


def match_rows(term: NodeTerm, columns: Columns, rows: Rows) -> Mask:
    """bool[row asked for]: whether the term matches."""
    passes = _all_of(term.requirements, columns, rows)
    for requirement in term.fields:
        passes &= _accepts_field(requirement, columns, rows)
    return passes


def rows_named(name: str, columns: Columns, rows: Rows) -> Mask:
    """bool[row asked for]: whether the node has this name."""
    named = np.zeros(columns.size, np.bool_)
    if (row := columns.row_of.get(name)) is not None:
        named[row] = True
    return named[rows]


def _all_of(requirements: Iterable[Requirement], columns: Columns, rows: Rows) -> Mask:
    passes = np.array(columns.alive[rows])
    for requirement in requirements:
        passes &= _accepts_label(requirement, columns.label(requirement.key), rows)
    return passes


def _accepts_label(requirement: Requirement, column: LabelColumn, rows: Rows) -> Mask:
    codes = column.codes[rows]
    match requirement.operator:
        case "In":
            return _among(codes, requirement.values, column)
        case "NotIn":
            return ~_among(codes, requirement.values, column)
        case "Exists":
            return ~_equal(codes, ABSENT)
        case "DoesNotExist":
            return _equal(codes, ABSENT)
    return _judge(codes, requirement, column)


def _among(codes: Codes, values: Iterable[str], column: LabelColumn) -> Mask:
    """Whether each code is that of one of the values."""
    wanted = [code for code in map(column.code_of, values) if code != ABSENT]
    if len(wanted) == 1:
        # Comparing codes takes a sixth of the time of looking them up.
        return _equal(codes, wanted[0])
    # One element more than there are values, for ABSENT (-1): it stays False.
    table = np.zeros(len(column.values) + 1, np.bool_)
    table[wanted] = True
    return table[codes]


def _equal(codes: Codes, code: int) -> Mask:
    mask: Mask = codes == code
    return mask


def _judge(codes: Codes, requirement: Requirement, column: LabelColumn) -> Mask:
    """Apply the rule to each distinct value, or to each row if there are fewer rows."""
    if len(codes) <= len(column.values):
        return np.fromiter(
            (
                requirement.accepts(None if code == ABSENT else column.values[code])
                for code in codes.tolist()
            ),
            np.bool_,
            len(codes),
        )
    verdicts = map(requirement.accepts, (*column.values, None))
    return np.fromiter(verdicts, np.bool_, len(column.values) + 1)[codes]


def _accepts_field(requirement: Requirement, columns: Columns, rows: Rows) -> Mask:
    """The only field is the name; any other field is empty on every node."""
    if requirement.key != NAME_FIELD:
        return np.full_like(columns.alive[rows], requirement.accepts(""))
    named = np.zeros_like(columns.alive[rows])
    for name in requirement.values:
        named |= rows_named(name, columns, rows)
    return named if requirement.operator == "In" else ~named
