"""Messages about one field, in the form of Kubernetes.

`parallelism: Invalid value: 0: should be an integer value greater than zero`: the path, what kind
of mistake it is, the value found, and what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from mooring.config.durations import Duration


def child(path: str, name: str) -> str:
    """The path of a field; the path of the root is empty."""
    return f"{path}.{name}" if path else name


def invalid(path: str, value: object, detail: str) -> str:
    return f"{path}: Invalid value: {shown(value)}: {detail}"


def required(path: str, detail: str = "") -> str:
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def duplicate(path: str, value: object) -> str:
    return f"{path}: Duplicate value: {shown(value)}"


def not_supported(path: str, value: object, supported: Iterable[str]) -> str:
    choices = ", ".join(shown(choice) for choice in supported)
    return f"{path}: Unsupported value: {shown(value)}: supported values: {choices}"


def not_found(path: str, value: object, detail: str) -> str:
    return f"{path}: Not found: {shown(value)}: {detail}"


def forbidden(path: str, detail: str) -> str:
    return f"{path}: Forbidden: {detail}"


def shown(value: object) -> str:
    """The value as JSON, on one line."""
    return json.dumps(_as_go_json(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _as_go_json(value: object) -> object:
    """The value as Go marshals it: with Go's names, and null for an empty list."""
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return {
            field.name.title().replace("_", ""): _as_go_json(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
        }
    if isinstance(value, tuple):
        return [_as_go_json(item) for item in value] or None
    return value
