"""Fields that the Kubernetes API does not have: most are misspelt, and would be ignored in silence.

mooring's types have only the fields that it reads. The names of all fields are in `api_fields.json`;
`tools/api_fields.py` says how it is made. Checking is fast where nothing is wrong: the names become
types that refuse unknown fields, and msgspec decodes the object to them. Only if it refuses, the
object is walked.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import yaml

Steps = tuple[str | int, ...]

_ALIKE = 0.7


class _Table(msgspec.Struct):
    #: apiVersion/kind → type.
    kinds: dict[str, str]
    #: Type → field → the type of its value, or of its items; empty if its fields are not known.
    types: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class UnknownField:
    steps: Steps
    #: What to write instead; empty if nothing is like it.
    advice: str

    @property
    def path(self) -> str:
        path = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.steps)
        return path.removeprefix(".")

    def __str__(self) -> str:
        return f"{self.path}: there is no such field{self.advice}"


def unknown_fields(
    api_version: str, kind: str, body: Mapping[str, Any] | msgspec.Raw
) -> list[UnknownField]:
    """The fields of an object that its kind does not have; none if the kind is not in the table."""
    name = _table().kinds.get(f"{api_version}/{kind}")
    if name is None or _is_known(name, body):
        return []
    if isinstance(body, msgspec.Raw):
        body = msgspec.json.decode(body)
    return list(_unknown(body, name, ()))


def line_of(chunk: bytes, first_line: int, steps: Steps) -> int | None:
    """The line of a field in the YAML text of its document; None if it cannot be found."""
    try:
        node = yaml.compose(chunk, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return None
    line = None
    for step in steps:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            if step >= len(node.value):
                return None
            node = node.value[step]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == step]
            if not found:
                return None
            line, node = found[0][0].start_mark.line, found[0][1]
        else:
            return None
    return None if line is None else first_line + line


@cache
def _table() -> _Table:
    file = resources.files("mooring.objects") / "api_fields.json"
    return msgspec.json.decode(file.read_bytes(), type=_Table)


def _is_known(name: str, body: Mapping[str, Any] | msgspec.Raw) -> bool:
    try:
        if isinstance(body, msgspec.Raw):
            _strict_decoder(name).decode(body)
        else:
            msgspec.convert(body, _strict_types()[name])
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _strict_decoder(name: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict_types()[name])


@cache
def _strict_types() -> dict[str, type]:
    """A struct for each type, which takes any value where the type of a field is not known."""
    types = _table().types
    structs: dict[str, type] = {}
    waiting: set[str] = set()

    def struct(name: str) -> Any:
        if name in structs:
            return structs[name]
        if name in waiting:
            # Few types contain themselves; what lies in there is not checked.
            return Any
        waiting.add(name)
        fields, renamed = [], {}
        for index, (field, inner) in enumerate(types[name].items()):
            attribute = f"f{index}"
            renamed[attribute] = field
            kind: Any = Any
            if inner:
                inside = struct(inner)
                if inside is not Any:
                    items: Any = list
                    kind = inside | items[inside | None] | None
            fields.append((attribute, kind, None))
        waiting.discard(name)
        structs[name] = msgspec.defstruct(
            name.replace(".", "_"), fields, rename=renamed, forbid_unknown_fields=True, gc=False
        )
        return structs[name]

    for name in types:
        struct(name)
    return structs


def _unknown(value: Any, name: str, steps: Steps) -> Iterator[UnknownField]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _unknown(each, name, (*steps, index))
        return
    if not isinstance(value, Mapping):
        return
    fields = _table().types[name]
    for field, inner in value.items():
        if field not in fields:
            yield UnknownField((*steps, field), _advice(field, fields))
        elif fields[field]:
            yield from _unknown(inner, fields[field], (*steps, field))


def _advice(field: str, fields: Mapping[str, str]) -> str:
    by_lower = {each.lower(): each for each in fields}
    found = difflib.get_close_matches(field.lower(), by_lower, n=1, cutoff=_ALIKE)
    if not found and len(field) > 3:
        found = [each for each in by_lower if each.startswith(field.lower())]
    if found:
        return f"; did you mean {by_lower[found[0]]}?"
    types = _table().types
    for holder, inner in fields.items():
        if inner and field in types[inner]:
            return f"; it belongs into {holder}"
    return ""
