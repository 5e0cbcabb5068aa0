"""Fill in the placeholders of a description: `${spec.replicas | 1}`.

A placeholder has alternatives, tried in order: a path, or a number, a quoted text, `true` or `false`.
A whole number may be added or subtracted, and two values compared with `==`. Where a value is one
placeholder and nothing else, it is replaced by what the path leads to, whatever that is; in a longer
text, by its text. What is absent leaves no field. In a list, a placeholder for a list stands for its
items. Labels and annotations become text.

Some keys of a mapping are instructions:

    $if       keep the mapping only if this is there, and neither false nor empty
    $merge    start from these mappings, then set the other fields
    $named    a list: these lists as one, where items with the same name become one
    $sha1     a text: the SHA-1 of this text
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_SUM = re.compile(r"(.*?)\s+([+-])\s+(\d+)\s*")
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']*)'\]")
_NUMBER = re.compile(r"-?\d+")
#: Mappings whose values are text, as the API wants it.
_TEXTS = ("labels", "annotations", "matchLabels")
_BOOLEANS = {"true": True, "false": False}


class _Absent:
    """There is no value; the field that holds it goes too."""


ABSENT = _Absent()


class DescriptionError(ValueError):
    """A description that cannot be used."""


def filled(value: Any, values: Mapping[str, Any], *, as_text: bool = False) -> Any:
    """The value with its placeholders filled in; ABSENT if nothing is left. Raises DescriptionError.

    `as_text` makes text of what a mapping holds, but not of what a user wrote: that stays wrong.
    """
    if isinstance(value, str):
        return _text(value, values)
    if isinstance(value, list):
        return _items(value, values)
    if isinstance(value, dict):
        return _mapping(value, values, as_text=as_text)
    return value


def is_set(value: Any) -> bool:
    return value is not ABSENT and value not in (None, False, "", 0, {}, [])


def merged(base: Any, over: Any) -> Any:
    """Mappings become one; of anything else, the second one stays."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        both = {**base, **over}
        for key in base.keys() & over.keys():
            both[key] = merged(base[key], over[key])
        return both
    return over


def merged_by_name(lists: Sequence[Any]) -> list[Any]:
    """The items of all lists. Items with the same `name` become one, in the place of the first."""
    found: dict[object, Any] = {}
    for each in lists:
        for item in each if isinstance(each, list) else ():
            name = item.get("name") if isinstance(item, Mapping) else None
            key = ("", len(found)) if name is None else name
            found[key] = merged(found[key], item) if key in found else item
    return list(found.values())


def _text(text: str, values: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        return _evaluated(whole[1], values)

    def replaced(match: re.Match[str]) -> str:
        value = _evaluated(match[1], values)
        return "" if value is ABSENT else _spelled(value)

    return _PLACEHOLDER.sub(replaced, text)


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _items(items: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
    done: list[Any] = []
    for item in items:
        value = filled(item, values)
        if isinstance(item, str) and isinstance(value, list):
            done += value
        elif value is not ABSENT:
            done.append(value)
    return done


def _mapping(mapping: Mapping[str, Any], values: Mapping[str, Any], *, as_text: bool) -> Any:
    if "$if" in mapping and not is_set(filled(mapping["$if"], values)):
        return ABSENT
    if "$sha1" in mapping:
        text = str(filled(mapping["$sha1"], values))
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    if "$named" in mapping:
        return merged_by_name([filled(each, values) for each in mapping["$named"]])
    fields = {}
    for key, value in mapping.items():
        if not key.startswith("$"):
            value = filled(value, values, as_text=key in _TEXTS)
            if value is not ABSENT:
                fields[str(_text(key, values))] = _spelled(value) if as_text else value
    bases = mapping.get("$merge", [])
    result: Any = {}
    for base in bases if isinstance(bases, list) else [bases]:
        base = filled(base, values, as_text=as_text)
        result = merged(result, base) if isinstance(base, Mapping) else result
    return merged(result, fields)


def _evaluated(expression: str, values: Mapping[str, Any]) -> Any:
    left, equal, right = expression.partition("==")
    if equal:
        return _evaluated(left.strip(), values) == _evaluated(right.strip(), values)
    added = 0
    with_sum = _SUM.fullmatch(expression)
    if with_sum is not None:
        expression, sign, number = with_sum.groups()
        added = int(number) if sign == "+" else -int(number)
    for alternative in expression.split("|"):
        value = _alternative(alternative.strip(), values)
        if value is not ABSENT:
            return value + added if added and isinstance(value, int) else value
    return ABSENT


def _alternative(text: str, values: Mapping[str, Any]) -> Any:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NUMBER.fullmatch(text):
        return int(text)
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    return _at(text, values)


def _at(path: str, values: Any) -> Any:
    position = 0
    value = values
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise DescriptionError(
                f"{path!r} is not a path; write it as spec.template, or a['b/c']"
            )
        position = step.end()
        name, index, quoted = step.groups()
        if index is not None:
            if not isinstance(value, list) or int(index) >= len(value):
                return ABSENT
            value = value[int(index)]
        else:
            key = name if name is not None else quoted
            if not isinstance(value, Mapping) or value.get(key) is None:
                return ABSENT
            value = value[key]
    return value
