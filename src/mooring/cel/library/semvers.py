"""Semantic versions (`semver("1.2.3")`)."""

from __future__ import annotations

import json
import re
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import CelError
from mooring.cel.types import BOOL, INT, STRING, struct
from mooring.cel.values import MAX_UINT, Opaque

TYPE = struct("kubernetes.Semver")

_IDENTIFIER = re.compile(r"[0-9A-Za-z-]*", re.ASCII)


class Semver(Opaque):
    """A semantic version. Build metadata plays no part in comparisons."""

    __slots__ = ("build", "numbers", "prerelease")
    type_name = TYPE.name

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...], build: str
    ) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return f"{text}+{self.build}" if self.build else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def equals(self, other: Any) -> bool | None:
        return self.compare(other) == 0 if isinstance(other, Semver) else None

    def compare(self, other: Semver) -> int:
        mine, its = self._key(), other._key()
        return (mine > its) - (mine < its)

    def _key(self) -> tuple[Any, ...]:
        # A release is after its prereleases; numbers are before words.
        parts = tuple(
            (0, each, "") if isinstance(each, int) else (1, 0, each) for each in self.prerelease
        )
        return (self.numbers, not self.prerelease, parts)


def parse(text: str) -> Semver:
    """Read a version strictly. Raises CelError with the text of the reference's library."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, _, build = parts[2].partition("+")
    has_build = "+" in parts[2]
    patch, _, prerelease = rest.partition("-")
    has_prerelease = "-" in rest
    numbers = (major, minor, _number(patch, "patch"))
    found = tuple(_prerelease(each) for each in prerelease.split(".")) if has_prerelease else ()
    if has_build:
        for each in build.split("."):
            if not each:
                raise CelError("Build meta data is empty")
            if not _IDENTIFIER.fullmatch(each):
                raise CelError(f"Invalid character(s) found in build meta data {_quoted(each)}")
    return Semver(numbers, found, build)


def _number(text: str, name: str) -> int:
    if not re.fullmatch("[0-9]*", text, re.ASCII):
        raise CelError(f"Invalid character(s) found in {name} number {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        label = name.capitalize() if name != "patch" else "Patch"
        raise CelError(f"{label} number must not contain leading zeroes {_quoted(text)}")
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if re.fullmatch("[0-9]+", text, re.ASCII):
        if len(text) > 1 and text[0] == "0":
            raise CelError(
                f"Numeric PreRelease version must not contain leading zeroes {_quoted(text)}"
            )
        if len(text) > 20 or int(text) > MAX_UINT:
            raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
        return int(text)
    if not _IDENTIFIER.fullmatch(text):
        raise CelError(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parse_loosely(text: str) -> Semver:
    """Without a `v` in front, with missing numbers as 0 and leading zeros removed."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            short = part.lstrip("0")
            parts[position] = short if short[:1] in tuple("0123456789") else "0" + short
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _parse_normalized(text: str, normalize: bool) -> Semver:
    return _parse_loosely(text) if normalize else parse(text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _parse_normalized(text, normalize)
    except CelError:
        return False
    return True


def _number_of(position: int) -> Any:
    def read(version: Semver) -> int:
        # The reference holds the number without a sign and returns it with one.
        return (version.numbers[position] + 2**63) % 2**64 - 2**63

    return read


def _member(name: str, overload: str, args: Any, result: Any, implementation: Any) -> Function:
    return Function(name, [Overload(overload, (TYPE, *args), result, implementation, member=True)])


FUNCTIONS = [
    Function(
        "semver",
        [
            Overload("string_to_semver", (STRING,), TYPE, parse),
            Overload("string_bool_to_semver", (STRING, BOOL), TYPE, _parse_normalized),
        ],
    ),
    Function(
        "isSemver",
        [
            Overload("is_semver_string", (STRING,), BOOL, _is_semver),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
        ],
    ),
    _member(
        "isGreaterThan", "semver_is_greater_than", (TYPE,), BOOL, lambda a, b: a.compare(b) > 0
    ),
    _member("isLessThan", "semver_is_less_than", (TYPE,), BOOL, lambda a, b: a.compare(b) < 0),
    _member("compareTo", "semver_compare_to", (TYPE,), INT, Semver.compare),
    _member("major", "semver_major", (), INT, _number_of(0)),
    _member("minor", "semver_minor", (), INT, _number_of(1)),
    _member("patch", "semver_patch", (), INT, _number_of(2)),
]
