"""Parse label selectors as in kubectl: `app=web,tier!=cache,zone in (a, b),!spot`."""

from __future__ import annotations

import re

from mooring.objects.selectors import (
    LABEL_OPERATORS,
    Requirement,
    Selector,
    compile_requirement,
)

_COMMA = re.compile(r",(?![^()]*\))")
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(r"([^\s=!]+)\s*(==|=|!=)\s*(\S*)")


def parse_selector(text: str) -> Selector:
    """Raises ValueError."""
    if not text.strip():
        return Selector()
    try:
        return Selector(tuple(_requirement(part.strip()) for part in _COMMA.split(text)))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a label selector: {error}") from error


def _requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        values = tuple(each.strip() for each in found[3].split(","))
        return _compiled(found[1], "In" if found[2] == "in" else "NotIn", values)
    if found := _EQUAL.fullmatch(part):
        return _compiled(found[1], "NotIn" if found[2] == "!=" else "In", (found[3],))
    if part.startswith("!"):
        return _compiled(part[1:].strip(), "DoesNotExist", ())
    return _compiled(part, "Exists", ())


def _compiled(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    return compile_requirement(key, operator, values, LABEL_OPERATORS)
