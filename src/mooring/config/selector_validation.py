"""Validation of node selectors, with the path of each problem.

`objects.selectors` refuses the same selectors, without a path. Users who write a selector into the
configuration need to know where and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.config.field_errors import child, invalid, not_supported
from mooring.config.label_names import label_key_problems, label_value_problems
from mooring.objects.pod import PreferredSchedulingTerm
from mooring.objects.selectors import (
    NODE_OPERATORS,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    parse_int64,
)

_FIELD_OPERATORS = ("In", "NotIn")


def node_selector_problems(selector: NodeSelector, path: str) -> Iterator[str]:
    for i, term in enumerate(selector.node_selector_terms):
        yield from _term(term, f"{child(path, 'nodeSelectorTerms')}[{i}]")


def preferred_term_problems(terms: Sequence[PreferredSchedulingTerm], path: str) -> Iterator[str]:
    """The problems of preferred terms. A term without weight is not checked."""
    for i, term in enumerate(terms):
        if term.weight:
            yield from _term(term.preference, f"{path}[{i}]")


def _term(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for i, line in enumerate(term.match_expressions):
        yield from _label_requirement(line, f"{child(path, 'matchExpressions')}[{i}]")
    for i, line in enumerate(term.match_fields):
        yield from _field_requirement(line, f"{child(path, 'matchFields')}[{i}]")


def _label_requirement(line: SelectorRequirement, path: str) -> Iterator[str]:
    if line.operator not in NODE_OPERATORS:
        yield not_supported(child(path, "operator"), line.operator, NODE_OPERATORS)
        return
    if problems := label_key_problems(line.key):
        yield invalid(child(path, "key"), line.key, "; ".join(problems))
    values_path = child(path, "values")
    match line.operator:
        case "In" | "NotIn" if not line.values:
            detail = "for 'in', 'notin' operators, values set can't be empty"
            yield invalid(values_path, None, detail)
        case "Exists" | "DoesNotExist" if line.values:
            detail = "values set must be empty for exists and does not exist"
            yield invalid(values_path, line.values, detail)
        case "Gt" | "Lt":
            yield from _numeric_values(line.values, values_path)
    for i, value in enumerate(line.values):
        if problems := label_value_problems(value):
            yield invalid(f"{values_path}[{i}][{line.key}]", value, "; ".join(problems))


def _numeric_values(values: Sequence[str], path: str) -> Iterator[str]:
    operators = "for 'Gt', 'Lt' operators"
    if len(values) != 1:
        yield invalid(path, values or None, f"{operators}, exactly one value is required")
    for i, value in enumerate(values):
        if parse_int64(value) is None:
            yield invalid(f"{path}[{i}]", value, f"{operators}, the value must be an integer")


def _field_requirement(line: SelectorRequirement, path: str) -> Iterator[str]:
    if line.operator not in _FIELD_OPERATORS:
        yield not_supported(child(path, "operator"), line.operator, _FIELD_OPERATORS)
    elif len(line.values) != 1:
        yield invalid(child(path, "values"), line.values or None, "must have one element")
