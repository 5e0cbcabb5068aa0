"""Recognise text that a program or a person has yet to fill in: `{{ .x }}`, `${X}`, `<x>`.

YAML reads a quoted mark as a string, so a template can look like an object. Its names, counts and
selectors are not what would be applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.objects.large_texts import Content

#: The last alternative is a whole string: `a<b` is text.
_MARK = re.compile(
    r"\{\{.*?\}\}|\{%.*?%\}|\$\{[^}]*\}|\$[A-Z][A-Z0-9_]+|^<[A-Za-z][\w .,/-]*>$", re.DOTALL
)
#: In text that is not YAML.
_TEXT_MARK = re.compile(
    rb"\{\{[^\n]{0,60}?\}\}|\{\{[^\n]{0,60}|\{%[^\n]{0,60}|\$\{[^}\n]{0,60}\}|\{[A-Z][A-Z0-9_]{1,60}\}"
)
#: A line that is nothing but `{{ if .x }}` or the like. It can go on for several lines.
_ACTION = re.compile(rb"^[ \t]*(\{\{[^{}]{1,1000}\}\})[ \t\r]*$", re.MULTILINE)
_MAYBE = re.compile(rb"\{\{|\{%|\$\{|\"<|\$[A-Z]")
#: One of these is in whatever `_MAYBE` finds. Looking for these takes a fraction of the time, above all for
#: single characters that JSON itself has no use for.
_SIGNS = (b"{{", b"%", b"$", b"<")
#: In JSON that an API server has printed: it is no template, and its names, labels and amounts were checked.
_STORED = b'"resourceVersion"'
_LONGEST = 60

#: Fields that have no effect on scheduling, and often contain such text for another program.
_FREE_TEXT = frozenset(
    {
        "annotations",
        "args",
        "command",
        "data",
        "description",
        "env",
        "image",
        "lifecycle",
        "livenessProbe",
        "nfs",
        "parameters",
        "readinessProbe",
        "serviceAccount",
        "serviceAccountName",
        "startupProbe",
        "stringData",
        "volumeAttributes",
        "volumeMounts",
        "workingDir",
    }
)


def mark_in_text(text: Content) -> str:
    """The first mark in text that is not YAML; empty if there is none."""
    found = _TEXT_MARK.search(text)
    return _short(found[0].decode(errors="replace").strip()) if found else ""


def action_in_text(text: Content) -> str:
    """The first line that is nothing but an action of a template; empty if there is none."""
    found = _ACTION.search(text)
    return _short(found[1].decode(errors="replace")) if found else ""


def mark_in_document(body: dict[str, Any] | msgspec.Raw) -> str:
    """As `mark_in_object`; JSON text is decoded only if it may have a mark."""
    if isinstance(body, dict):
        return mark_in_object(body)
    text = bytes(body)
    if _STORED in text or not _has_sign(text) or not _MAYBE.search(text):
        return ""
    return mark_in_object(msgspec.json.decode(body))


def _has_sign(text: bytes) -> bool:
    first, second, third, fourth = _SIGNS
    return first in text or second in text or third in text or fourth in text


def mark_in_object(body: Any) -> str:
    """The first mark in a field that scheduling may depend on; empty if there is none."""
    return next((_short(found[0]) for text in _strings(body) if (found := _MARK.search(text))), "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in _FREE_TEXT:
                yield key
                yield from _strings(each)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
