"""Decode plain values or JSON text to typed objects, and describe what does not decode."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.objects import device_versions
from mooring.objects.kinds import KINDS, Kind
from mooring.objects.meta import KubeObject, decode_hook

K = TypeVar("K", bound=KubeObject)

#: How many wrong fields of one object are reported.
_MOST_PROBLEMS = 20

_STRUCTS = {(kind.group, kind.name): kind.struct for kind in KINDS}
_BY_LOWER_NAME = {kind.name.lower(): kind for kind in KINDS}
#: The API groups whose kinds only Kubernetes defines.
_GROUPS = {kind.group for kind in KINDS} | {"extensions"}
#: How alike a misspelt kind and the one that is meant are.
_ALIKE = 0.85

_PATH = re.compile(r"(?s)(.*) - at (`key` in )?`\$(.*)`")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`")

_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
    "datetime": "a time",
}

_ADVICE = (
    ("quantit", "; write it as 500m, 2 or 1.5Gi"),
    ("RFC3339", "; write it as 2026-01-31T12:00:00Z"),
)


def decode_object(raw: Mapping[str, Any]) -> KubeObject:
    """Decode one object. Nothing is defaulted, and only types are checked.

    Raises ValueError, whose message starts with the path of the wrong field.
    """
    kind = kind_of(raw.get("apiVersion"), raw.get("kind"))
    if kind is None:
        raise ValueError(f"kind: mooring does not read {raw.get('kind')!r}")
    if device_versions.is_older(raw.get("apiVersion")):
        raw = device_versions.upgraded(raw)
    try:
        return convert(raw, kind)
    except msgspec.ValidationError:
        path, problem = next(type_problems(raw, kind))
        raise ValueError(f"{path}: {problem}" if path else problem) from None


def kind_of(
    api_version: object, kind: object, custom: Iterable[Kind] = ()
) -> type[KubeObject] | None:
    """The type for a kind, in any version; None if mooring does not read the kind.

    `custom` are the kinds that plugins declare.
    """
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    if device_versions.is_another_api(api_version):
        return None
    group = group_of(api_version)
    for each in custom:
        if each.group == group and each.name == kind:
            return each.struct
    return _STRUCTS.get((group, kind))


def kind_meant(api_version: str, kind: str) -> Kind | None:
    """The kind that was probably meant by one that mooring does not read, as `Deployment` in `v1`."""
    if group_of(api_version).lower() not in _GROUPS:
        return None
    found = difflib.get_close_matches(kind.lower(), _BY_LOWER_NAME, n=1, cutoff=_ALIKE)
    return _BY_LOWER_NAME[found[0]] if found else None


def group_of(api_version: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""


def convert(raw: Mapping[str, Any], kind: type[KubeObject]) -> KubeObject:
    """Raises msgspec.ValidationError."""
    return msgspec.convert(raw, kind, dec_hook=decode_hook)


def decode_json(text: msgspec.Raw | bytes, kind: type[K]) -> K:
    """Raises msgspec.ValidationError, also for a null where a value is required."""
    decoded: K = _decoder(kind).decode(text)
    return decoded


@cache
def _decoder(kind: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=decode_hook)


def identified(obj: KubeObject, api_version: str, kind: str) -> KubeObject:
    """Set the apiVersion and kind of an item of a typed list, which lacks both."""
    if obj.kind and obj.api_version:
        return obj
    return replace(obj, api_version=obj.api_version or api_version, kind=obj.kind or kind)


def without_nulls(value: Any) -> Any:
    """A value as the API reads it: a key with null is absent."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def type_problems(raw: Mapping[str, Any], kind: type[KubeObject]) -> Iterator[tuple[str, str]]:
    """The path of every field of the wrong type, and what is wrong with it.

    The decoder stops at the first one, so each one found is removed and the rest decoded again.
    """
    rest = copy.deepcopy(dict(raw))
    for _ in range(_MOST_PROBLEMS):
        try:
            convert(rest, kind)
        except msgspec.ValidationError as error:
            problem, steps = _problem_and_steps(error)
            steps = _with_key(rest, kind, steps)
            yield _spelled(steps), _in_words(problem)
            if not _taken_out(rest, steps):
                return
        else:
            return


def _problem_and_steps(error: msgspec.ValidationError) -> tuple[str, list[str | int]]:
    found = _PATH.fullmatch(str(error))
    if found is None:
        return str(error), []
    problem, _, path = found.groups()
    steps: list[str | int] = []
    for name, index, anything in _STEP.findall(path):
        steps.append(int(index) if index else anything or name)
    return problem, steps


def _with_key(raw: Any, kind: type[KubeObject], steps: list[str | int]) -> list[str | int]:
    """The decoder does not say which key of a map is wrong: try each key."""
    if "[...]" not in steps:
        return steps
    at = steps.index("[...]")
    holder = _at(raw, steps[:at])
    if not isinstance(holder, dict):
        return steps[:at]
    entries = dict(holder)
    culprit = None
    for key, value in entries.items():
        holder.clear()
        holder[key] = value
        try:
            convert(raw, kind)
        except msgspec.ValidationError as error:
            if _problem_and_steps(error)[1][: at + 1] == steps[: at + 1]:
                culprit = key
                break
    holder.clear()
    holder.update(entries)
    return steps[:at] if culprit is None else [*steps[:at], culprit, *steps[at + 1 :]]


def _at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _taken_out(raw: dict[str, Any], steps: list[str | int]) -> bool:
    while steps and isinstance(steps[-1], int):
        # Remove the whole list: without one entry, the indices of the others would be wrong.
        steps = steps[:-1]
    holder = _at(raw, steps[:-1]) if steps else None
    return isinstance(holder, dict) and holder.pop(steps[-1], None) is not None


def _spelled(steps: list[str | int]) -> str:
    """`spec.containers[0].resources.requests[cpu]`."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif re.fullmatch(r"\w+", step):
            path += f".{step}"
        else:
            path += f"[{step}]"
    return path.lstrip(".")


def _in_words(problem: str) -> str:
    expected = _EXPECTED.fullmatch(problem)
    if expected is None:
        return next((problem + advice for start, advice in _ADVICE if start in problem), problem)
    wanted = [_WORDS.get(word, word) for word in expected[1].split(" | ") if word != "null"]
    got = _WORDS.get(expected[2], expected[2])
    advice = "; put it in quotes" if "str" in expected[1] and got != "a mapping" else ""
    return f"must be {' or '.join(wanted)}, not {got}{advice}"
