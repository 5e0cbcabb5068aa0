"""YAML documents that repeat what earlier ones said, as JSON: pods of one file often differ in a name.

A document in block style is a row of blocks, one for each key. What a block says does not depend on the
other blocks, so its JSON is kept under its text. A later document whose blocks are all known, or plain
words, is put together from their JSON and not parsed. The items of a list are documents, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

from mooring.objects.yaml_text import WORDS, YamlError, parse_yaml

#: How many blocks are remembered at each indentation. Beyond that all are forgotten.
MOST_BLOCKS = 4096
#: Longer documents are not remembered.
LONGEST = 65_536
#: After so many documents that repeat no other, as in a dump of a cluster, no more are remembered.
MOST_WITHOUT_USE = 256

_KEY = rb"[A-Za-z][A-Za-z0-9_.-]*+"
_PARENT = re.compile(rb" *+%b: *+\n(?= )" % _KEY)
#: What an alias says stands in another place. Both signs are also parts of plain text.
_REFERENCE = re.compile(rb"[&*]")
#: YAML reads them as a bool or as null, and not as text.
_WORDS = frozenset(word.encode() for word in WORDS)
_START = b"---\n"
_ITEMS_KEY = b"items:\n"
_ITEMS = re.compile(rb"^items:\n( *+)- ", re.MULTILINE)


class YamlBlocks:
    def __init__(self) -> None:
        #: Indentation → the text of a block → its key, and its member of a JSON object: `"replicas":3`.
        self._known: dict[int, dict[bytes, tuple[bytes, bytes]]] = defaultdict(dict)
        #: How many documents were remembered since one was put together.
        self._without_use = 0

    def as_json(self, document: bytes, progress: Callable[[int], None]) -> bytes | None:
        """The same in JSON; None if a part of the document is not known.

        The items of a list need not be known. `progress` is called with the position in the list.
        """
        if not document.endswith(b"\n"):
            return None
        if _ITEMS_KEY in document and (found := _ITEMS.search(document)):
            return self._list(document, found.start(1), len(found[1]), progress)
        return self._put_together(document.removeprefix(_START))

    def _list(
        self, document: bytes, start: int, indent: int, progress: Callable[[int], None]
    ) -> bytes | None:
        """A list is its head, with no items, and the items, each as a document."""
        end = _lines(0).between_blocks.search(document, start)
        stop = end.start() + 1 if end else len(document)
        head = self._item(document[:start] + document[stop:])
        if head is None or head == b"{}" or b'"items"' in head:
            return None
        items = []
        for position, item in _items(document[start:stop], indent):
            member = self._item(item)
            if member is None:
                return None
            items.append(member)
            progress(start + position)
        return b'{"items":[%b],%b' % (b",".join(items), head[1:])

    def _item(self, document: bytes) -> bytes | None:
        """A mapping as JSON. Parses what is not known."""
        known = self._put_together(document)
        if known is not None:
            return known
        try:
            values = list(parse_yaml(document))
        except YamlError:
            return None
        if len(values) != 1 or not isinstance(values[0], dict):
            return None
        self.learn(document, values[0])
        return _json(values[0])

    def _put_together(self, document: bytes) -> bytes | None:
        text = self._as_json(document[:-1], _indent(document))
        if text is not None:
            self._without_use = 0
        return text

    def _as_json(self, text: bytes, indent: int) -> bytes | None:
        known, lines = self._known[indent], _lines(indent)
        members: dict[bytes, bytes] = {}
        for block in lines.between_blocks.split(text):
            found = known.get(block) or lines.plain_member(block) or self._parent(block, indent)
            if found is None or found[0] in members:
                return None
            members[found[0]] = found[1]
        return b"{%b}" % b",".join(members.values())

    def _parent(self, block: bytes, indent: int) -> tuple[bytes, bytes] | None:
        key = _lines(indent).key(block)
        inside = _inside(block)
        if not inside or not key or key in _WORDS:
            return None
        value = self._as_json(inside, _indent(inside))
        return None if value is None else (key, b'"%b":%b' % (key, value))

    def learn(self, document: bytes, value: Any) -> None:
        """Remember the blocks of a document, and what they mean."""
        is_short = len(document) <= LONGEST and document.endswith(b"\n")
        if is_short and self._without_use < MOST_WITHOUT_USE:
            self._without_use += 1
            self._learn(document.removeprefix(_START)[:-1], value)

    def _learn(self, text: bytes, value: Any) -> None:
        indent = _indent(text)
        blocks = _lines(indent).between_blocks.split(text)
        keys = [_lines(indent).key(block).decode() for block in blocks]
        # If the keys are not those of the value, a line that looks like one is a part of some text.
        if not isinstance(value, dict) or sorted(keys) != sorted(value):
            return
        known = self._known[indent]
        for key, block in zip(keys, blocks, strict=True):
            if len(known) >= MOST_BLOCKS:
                known.clear()
            member = _member(key.encode(), value[key])
            if member is not None and not _REFERENCE.search(block):
                known[block] = key.encode(), member
            if inside := _inside(block):
                self._learn(inside, value[key])


class _Lines:
    """How lines look at one indentation."""

    def __init__(self, indent: int) -> None:
        #: The end of a line before one that does not belong to the block above.
        self.between_blocks = re.compile(rb"\n(?! {%d}| {%d}[-#]|\n|\Z)" % (indent + 1, indent))
        self._first = re.compile(rb" {%d}(%b):(?= |\n|\Z)" % (indent, _KEY))
        #: The beginning of an item.
        self.dash = re.compile(rb"^ {%d}- " % indent, re.MULTILINE)
        self._word = re.compile(rb" {%d}(%b): ([A-Za-z][A-Za-z0-9_./-]*+)" % (indent, _KEY))

    def key(self, block: bytes) -> bytes:
        """Empty if the block does not begin with a key at this indentation."""
        first = self._first.match(block)
        return first[1] if first else b""

    def plain_member(self, block: bytes) -> tuple[bytes, bytes] | None:
        """Of a line that says no more than `name: web-0`."""
        line = self._word.fullmatch(block)
        if line is None or line[1] in _WORDS or line[2] in _WORDS:
            return None
        return line[1], b'"%b":"%b"' % line.groups()


_lines = cache(_Lines)


def _items(text: bytes, indent: int) -> Iterator[tuple[int, bytes]]:
    """The position of each item, and its text with spaces in place of the dash."""
    starts = [match.start() for match in _lines(indent).dash.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        dash = start + indent
        yield start, text[start:dash] + b" " + text[dash + 1 : end]


def _indent(text: bytes) -> int:
    return len(text) - len(text.lstrip(b" "))


def _inside(block: bytes) -> bytes:
    """What is below the first line, if that is only a key."""
    parent = _PARENT.match(block)
    return block[parent.end() :] if parent else b""


def _member(key: bytes, value: Any) -> bytes | None:
    text = _json(value)
    return None if text is None else b'"%b":%b' % (key, text)


def _json(value: Any) -> bytes | None:
    """None if JSON does not have the value: infinite numbers become null."""
    try:
        text = msgspec.json.encode(value)
        return text if msgspec.json.decode(text) == value else None
    except (OverflowError, RecursionError, msgspec.DecodeError):
        return None
