"""Matching of regular expressions in time linear in the text, as RE2 does it.

Python's own matcher follows one path after the other, and some patterns make it try exponentially many.
This one follows all paths at once. Python's matcher is used for patterns that cannot lead it astray.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mooring.cel.library.re2_syntax import Node, parse

#: Instructions of the machine: (kind, operand, operand).
_Instruction = tuple[str, Any, Any]
_MOST_INSTRUCTIONS = 20_000
#: Python's matcher is safe with few unbounded repetitions, none inside another, on short texts.
_SAFE_REPEATS = 2
_SAFE_TEXT = 2_000

_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class TooLarge(Exception):
    """A pattern whose machine would need too many instructions."""


class Pattern:
    """A compiled pattern. Raises PatternError or TooLarge."""

    def __init__(self, pattern: str) -> None:
        tree = parse(pattern)
        self._python = _python_pattern(tree)
        self._program: list[_Instruction] = []
        self._tree = tree
        # Compiled in any case, so that patterns that are too large are refused at once.
        self._emit(tree)
        self._program.append(("match", None, None))

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The first match at or after `start`: where it begins and ends."""
        if self._python is not None and len(text) <= _SAFE_TEXT:
            match = self._python.search(text, start)
            return None if match is None else match.span()
        return self._run(text, start)

    def find_all(self, text: str, limit: int) -> Iterator[str]:
        """Matches that do not overlap; no empty match just after another match."""
        position, previous = 0, -1
        while limit and position <= len(text):
            found = self.search(text, position)
            if found is None:
                return
            begin, end = found
            if end == begin and begin == previous:
                position += 1
                # Only a match at the next position, or a longer one, is wanted.
                continue
            previous = end
            position = end if end > begin else end + 1
            limit -= 1
            yield text[begin:end]

    def _emit(self, node: Node) -> None:
        program = self._program
        if len(program) > _MOST_INSTRUCTIONS:
            raise TooLarge
        match node.kind:
            case "chars":
                program.append(("chars", _member_of(node.ranges), None))
            case "sequence":
                for child in node.children:
                    self._emit(child)
            case "choice":
                self._emit_choice(node.children)
            case "repeat":
                self._emit_repeat(node)
            case _:
                program.append(("assert", node.kind, None))

    def _emit_choice(self, branches: list[Node]) -> None:
        program = self._program
        jumps = []
        for branch in branches[:-1]:
            split = len(program)
            program.append(("split", 0, 0))
            self._emit(branch)
            jumps.append(len(program))
            program.append(("jump", 0, None))
            program[split] = ("split", split + 1, len(program))
        self._emit(branches[-1])
        for jump in jumps:
            program[jump] = ("jump", len(program), None)

    def _emit_repeat(self, node: Node) -> None:
        program, child = self._program, node.children[0]
        for _ in range(node.low):
            self._emit(child)
        if node.high is None:
            split = len(program)
            program.append(("split", 0, 0))
            self._emit(child)
            program.append(("jump", split, None))
            program[split] = self._split(node, split + 1, len(program))
            return
        splits = []
        for _ in range(node.high - node.low):
            splits.append(len(program))
            program.append(("split", 0, 0))
            self._emit(child)
        for split in splits:
            program[split] = self._split(node, split + 1, len(program))

    @staticmethod
    def _split(node: Node, into: int, past: int) -> _Instruction:
        return ("split", into, past) if node.greedy else ("split", past, into)

    def _run(self, text: str, start: int) -> tuple[int, int] | None:
        """Follow all paths, those that are preferred first. A path is (instruction, begin)."""
        program = self._program
        paths: list[tuple[int, int]] = []
        found: tuple[int, int] | None = None
        for position in range(start, len(text) + 1):
            if found is None:
                self._follow(0, position, text, position, paths, {at for at, _ in paths})
            elif not paths:
                break
            following: list[tuple[int, int]] = []
            seen: set[int] = set()
            for at, begin in paths:
                kind, operand, _ = program[at]
                if kind == "match":
                    found = (begin, position)
                    break
                if position < len(text) and operand(text[position]):
                    self._follow(at + 1, begin, text, position + 1, following, seen)
            paths = following
        return found

    def _follow(
        self,
        at: int,
        begin: int,
        text: str,
        position: int,
        paths: list[tuple[int, int]],
        seen: set[int],
    ) -> None:
        """Add the paths that need no character from here, in order of preference."""
        program = self._program
        stack = [at]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, first, second = program[at]
            if kind == "jump":
                stack.append(first)
            elif kind == "split":
                stack += (second, first)
            elif kind == "assert":
                if _holds(first, text, position):
                    stack.append(at + 1)
            else:
                paths.append((at, begin))


def _holds(assertion: str, text: str, position: int) -> bool:
    match assertion:
        case "begin":
            return position == 0
        case "end":
            return position == len(text)
        case "begin_line":
            return position == 0 or text[position - 1] == "\n"
        case "end_line":
            return position == len(text) or text[position] == "\n"
    before = position > 0 and text[position - 1] in _WORD
    after = position < len(text) and text[position] in _WORD
    return (before != after) == (assertion == "word")


def _member_of(ranges: tuple[tuple[int, int], ...]) -> Callable[[str], bool]:
    if sum(high - low + 1 for low, high in ranges) <= 256:
        letters = frozenset(chr(code) for low, high in ranges for code in range(low, high + 1))
        return letters.__contains__
    return lambda character: any(low <= ord(character) <= high for low, high in ranges)


def _python_pattern(tree: Node) -> re.Pattern[str] | None:
    """The same pattern for Python's matcher; None if that may take long."""
    if _unbounded(tree, inside=False) > _SAFE_REPEATS:
        return None
    try:
        return re.compile(_python_text(tree), re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None


def _unbounded(node: Node, *, inside: bool) -> int:
    """How many repetitions there are that may match differently; many if one is inside another."""
    variable = node.kind == "repeat" and node.low != node.high
    if variable and (inside or (node.high is not None and node.high > 20)):
        return _SAFE_REPEATS + 1
    if node.kind == "choice" and inside:
        return _SAFE_REPEATS + 1
    own = 1 if variable and node.high is None else 0
    within = inside or node.kind == "repeat"
    return own + sum(_unbounded(child, inside=within) for child in node.children)


_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\Z",
    "begin_line": r"(?m:^)",
    "end_line": r"(?=\n|\Z)",
    "word": r"\b",
    "not_word": r"\B",
}


def _python_text(node: Node) -> str:
    match node.kind:
        case "chars":
            if len(node.ranges) > 100:
                raise re.error("too many ranges")
            inner = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in node.ranges)
            return f"[{inner}]" if inner else "(?!)"
        case "sequence":
            return "".join(map(_python_text, node.children))
        case "choice":
            return "(?:" + "|".join(map(_python_text, node.children)) + ")"
        case "repeat":
            high = "" if node.high is None else str(node.high)
            lazy = "" if node.greedy else "?"
            return f"(?:{_python_text(node.children[0])}){{{node.low},{high}}}{lazy}"
    return _ASSERTIONS[node.kind]
