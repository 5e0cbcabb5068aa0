"""Formats of strings by name (`format.dns1123Label().validate(name)`)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.library.urls import request_error
from mooring.cel.types import STRING, list_of, optional_of, struct
from mooring.cel.values import NONE, Opaque, Optional

TYPE = struct("kubernetes.NamedFormat")

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME_PART})?"
_UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)
_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character"
)


class NamedFormat(Opaque):
    __slots__ = ("name", "pattern_size", "problems")
    type_name = TYPE.name

    def __init__(self, name: str, problems: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.problems = problems
        #: The length of the pattern that cost assumes.
        self.pattern_size = pattern_size

    def equals(self, other: Any) -> bool | None:
        return self.name == other.name if isinstance(other, NamedFormat) else None


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _pattern_problem(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, longest: int) -> list[str]:
    long = len(text.encode()) > longest
    return [f"must be no more than {longest} characters"] if long else []


def _label(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _is(_LABEL, text):
        if _is(_SUBDOMAIN, text):
            problems.append("must not contain dots")
        else:
            problems.append(_pattern_problem(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
    return problems


def _subdomain(text: str) -> list[str]:
    problems = _too_long(text, 253)
    if not _is(_SUBDOMAIN, text):
        problems.append(_pattern_problem(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _is(_LABEL_1035, text):
        problems.append(_pattern_problem(_LABEL_1035_TEXT, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """For text that something is appended to: it may end with a dash."""

    def of_prefix(text: str) -> list[str]:
        if len(text) > 1 and text.endswith("-"):
            text = text[:-2] + "a"
        return problems(text)

    return of_prefix


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        problem = _pattern_problem(
            "a qualified name " + _NAME_TEXT, _NAME_PART, "MyName", "my.name", "123-abc"
        )
        return [
            f"{problem} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if len(parts) == 2:
        found = ["must be non-empty"] if not parts[0] else _subdomain(parts[0])
        problems += [f"prefix part {problem}" for problem in found]
    name = parts[-1]
    found = ["must be non-empty"] if not name else _too_long(name, 63)
    if not _is(_NAME_PART, name):
        found.append(_pattern_problem(_NAME_TEXT, _NAME_PART, "MyName", "my.name", "123-abc"))
    return problems + [f"name part {problem}" for problem in found]


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _is(_LABEL_VALUE, text):
        problems.append(_pattern_problem(_VALUE_TEXT, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def _uri(text: str) -> list[str]:
    problem = request_error(text)
    return [] if problem is None else [problem]


def _uuid(text: str) -> list[str]:
    return (
        []
        if _is(_UUID.replace("^", "").replace("$", ""), text)
        else ["does not match the UUID format"]
    )


def _byte(text: str) -> list[str]:
    try:
        # Go skips line breaks.
        base64.b64decode(text.replace("\r", "").replace("\n", "").encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _is_date(text: str) -> bool:
    if not _is(r"\d{4}-\d\d-\d\d", text):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        # The year 0 exists for Go, and is a leap year like 2000.
        date(year or 2000, month, day)
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    invalid = ["invalid datetime"]
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return invalid
    match = re.fullmatch(_TIME.replace("^", "").replace("$", ""), parts[1], re.ASCII)
    if match is None or match[1] > "23" or match[2] > "59" or match[3] > "59":
        return invalid
    return []


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _uuid, len(_UUID)),
    "byte": NamedFormat("byte", _byte, 84),
    "date": NamedFormat("date", _date, len(_TIME)),
    "datetime": NamedFormat("datetime", _datetime, len(_TIME)),
}


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.problems(text)
    return Optional(problems) if problems else NONE


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


FUNCTIONS = [
    Function(
        "validate",
        [
            Overload(
                "format-validate",
                (TYPE, STRING),
                optional_of(list_of(STRING)),
                _validate,
                member=True,
            )
        ],
    ),
    Function("format.named", [Overload("format-named", (STRING,), optional_of(TYPE), _named)]),
    *(
        Function(f"format.{name}", [Overload(f"format.{name}", (), TYPE, _constant(named))])
        for name, named in FORMATS.items()
    ),
]
