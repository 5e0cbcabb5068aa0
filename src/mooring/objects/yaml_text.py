"""YAML as Kubernetes reads it: from text to plain values.

Text is read as `kubectl` reads it, with the rules of Go: `1e3` is a number, `0o14` and `014`
are twelve, `yes` is true, a date is a string, `<<` merges. Keys become strings, `null` means absent.

Values are built from libyaml's stream of events and not from PyYAML's tree of nodes: this takes two
thirds of the time and a fraction of the memory, does not recurse, and refuses wrong input (a
duplicate key, an alias that expands without end) at its position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import yaml
from yaml import events

#: Far deeper than any Kubernetes object.
DEEPEST = 500
#: How many values the aliases of one document may expand to.
MOST_ALIASED = 1_000_000

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EVENTS_PER_REPORT = 4096
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"

#: Words that are no text, and what they mean.
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{
        word: value
        for value, words in (
            (True, ("y", "yes", "true", "on")),
            (False, ("n", "no", "false", "off")),
        )
        for spelled in words
        for word in (spelled, spelled.capitalize(), spelled.upper())
    },
    **{
        sign + word: float(sign + "inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_FIRST_OF_NUMBER = frozenset("0123456789+-.")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPE = re.compile(r"\\.", re.DOTALL)
#: How many strings of one document are read again for `\\'`.
_MOST_REWRITES = 1000
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)", re.ASCII)


class YamlError(ValueError):
    """Text that is not YAML, or not an object; `line` and `column` count from 1."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)


def parse_yaml(
    text: bytes,
    *,
    first_line: int = 1,
    progress: Callable[[int], None] | None = None,
    on_duplicate: Callable[[YamlError], None] | None = None,
) -> Iterator[Any]:
    """The value of each document that is not empty; raises YamlError.

    `first_line` is the number of the first line, for error messages. `progress` is called from time
    to time with the position in the text. A key that is given twice in a mapping is an error, unless
    `on_duplicate` takes it: then the last one counts, as in kubectl.
    """
    seen = 0
    for _ in range(_MOST_REWRITES):
        try:
            for index, value in enumerate(_values(text, first_line, progress, on_duplicate)):
                if index == seen:
                    seen += 1
                    yield value
            return
        except _UnknownEscape as error:
            rewritten = _without_quote_escapes(text, error.start)
            if rewritten is None:
                raise error.problem from error
            text = rewritten
    raise YamlError("too many strings with \\'; write ' without the backslash")


class _UnknownEscape(Exception):
    """A string in double quotes has an escape that libyaml does not know."""

    def __init__(self, start: int, problem: YamlError) -> None:
        super().__init__()
        #: The position of the opening quote, in characters.
        self.start = start
        self.problem = problem


def _without_quote_escapes(text: bytes, start: int) -> bytes | None:
    """The text with `'` for each `\\'` in one string, as Go reads it; None if it has none."""
    decoded = text.decode(errors="replace")
    string = _DOUBLE_QUOTED.match(decoded, start)
    if string is None:
        return None
    fixed = _ESCAPE.sub(lambda m: "'" if m[0] == "\\'" else m[0], string[0])
    if fixed == string[0]:
        return None
    return (decoded[:start] + fixed + decoded[string.end() :]).encode()


def _values(
    text: bytes,
    first_line: int,
    progress: Callable[[int], None] | None,
    on_duplicate: Callable[[YamlError], None] | None,
) -> Iterator[Any]:
    loader = None
    try:
        loader = _LOADER(text)
        builder = _Builder(loader, first_line, progress, on_duplicate)
        while not isinstance(event := loader.get_event(), events.StreamEndEvent):
            if isinstance(event, events.DocumentStartEvent):
                value = builder.document()
                if value is not None:
                    yield value
    except yaml.reader.ReaderError as error:
        raise YamlError(f"not text that YAML allows ({error.reason})") from error
    except yaml.MarkedYAMLError as error:
        problem = _syntax_error(error, first_line)
        if "unknown escape" in (error.problem or "") and error.context_mark is not None:
            raise _UnknownEscape(error.context_mark.index, problem) from error
        raise problem from error
    finally:
        if loader is not None:
            loader.dispose()


def _syntax_error(error: yaml.MarkedYAMLError, first_line: int) -> YamlError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "not valid YAML"
    if "cannot start any token" in problem:
        advice = "indent with spaces, not tabs, and quote text that begins with @ or `"
    else:
        advice = "check the indentation and the quotes there"
    context = f" {error.context}" if error.context else ""
    if context and error.context_mark is not None:
        context += f" that begins on line {first_line + error.context_mark.line}"
    if mark is None:
        return YamlError(f"{problem}{context}; {advice}")
    return YamlError(f"{problem}{context}; {advice}", first_line + mark.line, mark.column + 1)


class _Mapping:
    """A mapping being built: its entries, and what `<<` brings in."""

    __slots__ = ("entries", "has_key", "has_null", "key", "merged")

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.key = ""
        self.has_key = False
        self.has_null = False
        self.merged: list[dict[str, Any]] = []

    def finish(self) -> dict[str, Any]:
        entries = self.entries
        if self.merged:
            entries = {k: v for each in reversed(self.merged) for k, v in each.items()} | entries
        if self.has_null:
            entries = {key: value for key, value in entries.items() if value is not None}
        return entries


class _Builder:
    def __init__(
        self,
        loader: Any,
        first_line: int,
        progress: Callable[[int], None] | None,
        on_duplicate: Callable[[YamlError], None] | None,
    ) -> None:
        self._on_duplicate = on_duplicate
        self._next = loader.get_event
        self._first_line = first_line
        self._progress = progress
        self._until_report = _EVENTS_PER_REPORT

    def document(self) -> Any:
        """Read to the end of the document and return its value.

        A stack replaces recursion. `sizes` counts the values in each open collection, with aliases
        expanded, so that the cost of an alias is known at once.
        """
        stack: list[_Mapping | list[Any]] = []
        sizes: list[int] = []
        names: list[str | None] = []
        anchors: dict[str, tuple[Any, int] | None] = {}
        aliased = 0
        while True:
            event = self._next()
            kind = type(event)
            size = 1
            self._report(event)
            if kind is events.ScalarEvent:
                value = _scalar(event)
                if event.anchor is not None:
                    anchors[event.anchor] = (value, 1)
            elif kind is events.MappingStartEvent or kind is events.SequenceStartEvent:
                self._check_collection(event, stack)
                stack.append(_Mapping() if kind is events.MappingStartEvent else [])
                sizes.append(1)
                names.append(event.anchor)
                if event.anchor is not None:
                    anchors[event.anchor] = None
                continue
            elif kind is events.MappingEndEvent or kind is events.SequenceEndEvent:
                done = stack.pop()
                value = done.finish() if isinstance(done, _Mapping) else done
                size = sizes.pop()
                name = names.pop()
                if name is not None:
                    anchors[name] = (value, size)
            elif kind is events.AliasEvent:
                value, size = self._aliased(event, anchors)
                aliased += size
                if aliased > MOST_ALIASED:
                    raise self._error(
                        event, "aliases stand for too many values; write them out, or use fewer"
                    )
            else:
                raise self._error(event, "unexpected end of the document")
            if not stack:
                if value is not None and not isinstance(value, dict):
                    raise self._error(event, "plain text, not an object")
                self._next()
                return value
            sizes[-1] += size
            parent = stack[-1]
            if isinstance(parent, _Mapping):
                self._put(parent, value, event)
            else:
                parent.append(value)

    def _report(self, event: Any) -> None:
        self._until_report -= 1
        if self._until_report == 0:
            self._until_report = _EVENTS_PER_REPORT
            if self._progress is not None:
                self._progress(event.start_mark.index)

    def _check_collection(self, event: Any, stack: list[_Mapping | list[Any]]) -> None:
        if not stack and isinstance(event, events.SequenceStartEvent):
            raise self._error(
                event, "a list, not an object; write one object per document, or a List with items"
            )
        if len(stack) >= DEEPEST:
            raise self._error(event, f"nested more than {DEEPEST} levels deep")
        parent = stack[-1] if stack else None
        if isinstance(parent, _Mapping) and not parent.has_key:
            raise self._error(event, "a key must be a plain word, not a list or a mapping")

    def _aliased(self, event: Any, anchors: dict[str, tuple[Any, int] | None]) -> tuple[Any, int]:
        if event.anchor not in anchors:
            raise self._error(event, f"nothing above is marked '&{event.anchor}'")
        target = anchors[event.anchor]
        if target is None:
            raise self._error(event, f"'*{event.anchor}' stands inside what it refers to")
        return target

    def _put(self, mapping: _Mapping, value: Any, event: Any) -> None:
        if not mapping.has_key:
            mapping.key = self._key(mapping, value, event)
            mapping.has_key = True
            return
        mapping.has_key = False
        key = mapping.key
        if key == _MERGE:
            self._merge(mapping, value, event)
            return
        mapping.entries[key] = value
        if value is None:
            mapping.has_null = True

    def _key(self, mapping: _Mapping, value: Any, event: Any) -> str:
        if isinstance(value, str):
            key = value
        elif isinstance(value, bool):
            key = str(value).lower()
        elif isinstance(value, int | float):
            key = str(value)
        else:
            raise self._error(event, "a key is missing before ':'")
        if key in mapping.entries:
            error = self._error(event, f"{key!r} is given twice in one mapping; keep one of them")
            if self._on_duplicate is None:
                raise error
            self._on_duplicate(error)
        return key

    def _merge(self, mapping: _Mapping, value: Any, event: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._error(event, "'<<' merges mappings; give it an alias of a mapping")
        mapping.merged.extend(sources)

    def _error(self, event: Any, problem: str) -> YamlError:
        mark = event.start_mark
        return YamlError(problem, self._first_line + mark.line, mark.column + 1)


def _scalar(event: Any) -> object:
    if event.implicit[0]:
        return plain(event.value)
    tag = event.tag
    if tag is None or not tag.startswith(_TAG) or tag == f"{_TAG}str":
        return event.value
    return plain(event.value)


@lru_cache(maxsize=65_536)
def plain(text: str) -> object:
    """The value of an unquoted word."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER:
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return text if math.isinf(number) else _whole_if_possible(number)
    return text


def _integer(digits: str) -> object:
    bare = digits.lstrip("+-")
    if len(bare) > 1 and bare[0] == "0" and bare[1].isdigit():
        base = 8
    else:
        base = 0
    number = int(digits, base) if len(bare) <= 66 else float(digits)
    # Beyond 64 bits, Go reads a float.
    if -(2**63) <= number < 2**64:
        return number
    return _whole_if_possible(float(number))


def _whole_if_possible(number: float) -> object:
    """A float without a fraction becomes an integer, because the API receives it as JSON."""
    return int(number) if number.is_integer() and abs(number) < 1e21 else number
