"""The arguments of plugins, as configurations of scheduler-plugins write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mooring.objects.decoding import without_nulls
from mooring.objects.meta import decode_hook

#: The versions that scheduler-plugins has written its arguments in.
_VERSIONS = frozenset(
    f"kubescheduler.config.k8s.io/{version}" for version in ("v1", "v1beta3", "v1beta2", "v1beta1")
)


class PluginArgs(
    msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True
):
    """Arguments under the names of scheduler-plugins. A field that is missing or null has its default."""


A = TypeVar("A", bound=PluginArgs)


def read_args(args: object, kind: type[A]) -> A:
    """The arguments of a plugin, typed; all defaults for None. Raises ValueError.

    A mapping may name its `apiVersion` and `kind`, as upstream's examples do.
    """
    if isinstance(args, kind):
        return args
    if args is None:
        return kind()
    if not isinstance(args, Mapping):
        raise ValueError(f"args: expected a mapping, got {type(args).__name__}")
    given: dict[str, Any] = without_nulls(dict(args))
    version, name = given.pop("apiVersion", ""), given.pop("kind", "")
    if version and version not in _VERSIONS:
        raise ValueError(f"args.apiVersion: expected {max(_VERSIONS, key=len)} or later")
    if name and name != kind.__name__:
        raise ValueError(f"args.kind: expected {kind.__name__}, got {name}")
    try:
        return msgspec.convert(given, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise ValueError(f"args: {error}") from error


def problem(path: str, value: object, text: str) -> str:
    """A field with a value that is not allowed, in the words of the API."""
    shown = f'"{value}"' if isinstance(value, str) else value
    return f"{path}: Invalid value: {shown}: {text}"


def refuse(problems: list[str]) -> None:
    """Raise ValueError with all problems, if there are any; several stand in brackets."""
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        raise ValueError(f"[{', '.join(problems)}]")
