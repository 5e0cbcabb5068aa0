"""The syntax of regular expressions of RE2, with Go's error texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.cel.library.re2_classes import (
    LAST,
    PERL,
    POSIX,
    Ranges,
    folded,
    negated,
    unicode_class,
)

_MAX_REPEAT = 1000
_MAX_DEPTH = 250


class PatternError(Exception):
    """A pattern that RE2 refuses. The text has Go's words after `error parsing regexp: `."""


@dataclass(slots=True)
class Node:
    #: `chars`, `sequence`, `choice`, `repeat`, or the name of an assertion: `begin`, `end`,
    #: `begin_line`, `end_line`, `word`, `not_word`.
    kind: str
    ranges: tuple[tuple[int, int], ...] = ()
    children: list[Node] = field(default_factory=list)
    low: int = 0
    #: None for no limit.
    high: int | None = None
    greedy: bool = True


def parse(pattern: str) -> Node:
    """The tree of a pattern. Raises PatternError."""
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0
        self.groups: set[str] = set()
        #: Flags: i, m, s, U.
        self.flags: frozenset[str] = frozenset()

    def parse(self) -> Node:
        node = self.choice()
        if self.at < len(self.pattern):
            raise PatternError(f"unexpected ): `{self.pattern}`")
        return node

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def choice(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PatternError(f"expression nests too deeply: `{self.pattern}`")
        branches = [self.sequence()]
        while self.peek("|"):
            self.at += 1
            branches.append(self.sequence())
        self.depth -= 1
        return branches[0] if len(branches) == 1 else Node("choice", children=branches)

    def sequence(self) -> Node:
        items: list[Node] = []
        repeated_at: int | None = None
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            start = self.at
            bounds = self.repetition()
            if bounds is None:
                found = self.item()
                repeated_at = None
                if found is not None:
                    items.append(found)
                continue
            low, high = bounds
            greedy = "U" not in self.flags
            if self.peek("?"):
                self.at += 1
                greedy = not greedy
            if repeated_at is not None:
                raise PatternError(
                    f"invalid nested repetition operator: `{self.pattern[repeated_at : self.at]}`"
                )
            if not items:
                raise PatternError(
                    f"missing argument to repetition operator: `{self.pattern[start : self.at]}`"
                )
            repeated_at = start
            inner = items.pop()
            node = Node("repeat", children=[inner], low=low, high=high, greedy=greedy)
            if max(low, high or 0) > 1 and _copies(node) > _MAX_REPEAT:
                raise PatternError(f"invalid repeat count: `{self.pattern[start : self.at]}`")
            items.append(node)
        return items[0] if len(items) == 1 else Node("sequence", children=items)

    def repetition(self) -> tuple[int, int | None] | None:
        """The bounds of a repetition here; None if there is none."""
        character = self.pattern[self.at]
        if character in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        if character != "{":
            return None
        end = self.pattern.find("}", self.at)
        low_text, comma, high_text = self.pattern[self.at + 1 : end].partition(",")
        texts = [low_text] + ([high_text] if high_text else [])
        if end < 0 or not all(
            each.isascii() and each.isdigit() and (len(each) == 1 or each[0] != "0")
            for each in texts
        ):
            return None
        low = int(low_text[:6])
        high = (int(high_text[:6]) if high_text else None) if comma else low
        shown = self.pattern[self.at : end + 1]
        if low > _MAX_REPEAT or (high is not None and (high > _MAX_REPEAT or low > high)):
            raise PatternError(f"invalid repeat count: `{shown}`")
        self.at = end + 1
        return low, high

    def item(self) -> Node | None:
        character = self.pattern[self.at]
        match character:
            case "(":
                return self.group()
            case "[":
                return self.bracket()
            case ".":
                self.at += 1
                return self.chars([(0, LAST)] if "s" in self.flags else [(0, 9), (11, LAST)])
            case "^":
                self.at += 1
                return Node("begin_line" if "m" in self.flags else "begin")
            case "$":
                self.at += 1
                return Node("end_line" if "m" in self.flags else "end")
            case "\\":
                return self.escaped()
        self.at += 1
        return self.letter(ord(character))

    def letter(self, code: int) -> Node:
        return self.chars([(code, code)], fold="i" in self.flags)

    def chars(self, ranges: Ranges, *, fold: bool = False) -> Node:
        return Node("chars", tuple(folded(ranges) if fold else ranges))

    def group(self) -> Node | None:
        before = self.flags
        if not self.peek("(?"):
            self.at += 1
        elif self.peek("(?P<") or self.peek("(?<"):
            self.named_group()
        else:
            return self.flag_group()
        node = self.choice()
        self.close()
        self.flags = before
        return Node("sequence", children=[node])

    def close(self) -> None:
        if not self.peek(")"):
            raise PatternError(f"missing closing ): `{self.pattern}`")
        self.at += 1

    def named_group(self) -> None:
        opening = self.pattern.find("<", self.at)
        end = self.pattern.find(">", opening)
        if end < 0:
            raise PatternError(f"invalid named capture: `{self.pattern[self.at :]}`")
        name = self.pattern[opening + 1 : end]
        shown = self.pattern[self.at : end + 1]
        if not name or not all(each.isascii() and (each.isalnum() or each == "_") for each in name):
            # Lookbehind looks like a name that is none.
            if self.peek("(?<=") or self.peek("(?<!"):
                raise PatternError(
                    f"invalid or unsupported Perl syntax: `{self.pattern[self.at : self.at + 4]}`"
                )
            raise PatternError(f"invalid named capture: `{shown}`")
        if name in self.groups:
            raise PatternError(f"duplicate capture group name: `{name}`")
        self.groups.add(name)
        self.at = end + 1

    def flag_group(self) -> Node | None:
        """`(?i)`, `(?i:...)`, `(?:...)`."""
        start = self.at
        self.at += 2
        before = flags = self.flags
        negative = seen = False
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            self.at += 1
            if character in "imsU":
                seen = True
                flags = flags - {character} if negative else flags | {character}
            elif character == "-" and not negative:
                negative, seen = True, False
            elif character in ":)" and not (negative and not seen):
                self.flags = flags
                if character == ")":
                    return None
                node = self.choice()
                self.close()
                self.flags = before
                return Node("sequence", children=[node])
            else:
                break
        if self.at >= len(self.pattern) and self.pattern[self.at - 1] in "imsU-?":
            raise PatternError(f"missing closing ): `{self.pattern}`")
        raise PatternError(f"invalid or unsupported Perl syntax: `{self.pattern[start : self.at]}`")

    def escaped(self) -> Node:
        following = self.pattern[self.at + 1 : self.at + 2]
        assertions = {"A": "begin", "z": "end", "b": "word", "B": "not_word"}
        if following in assertions and following:
            self.at += 2
            return Node(assertions[following])
        if following == "Q":
            return self.literal_text()
        if following == "C":
            self.at += 2
            raise PatternError("invalid escape sequence: `\\C`")
        ranges = self.class_escape()
        if ranges is not None:
            return self.chars(ranges, fold="i" in self.flags)
        return self.letter(self.code_escape())

    def literal_text(self) -> Node:
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at + 2 : end if end >= 0 else len(self.pattern)]
        self.at = end + 2 if end >= 0 else len(self.pattern)
        return Node("sequence", children=[self.letter(ord(each)) for each in text])

    def class_escape(self) -> Ranges | None:
        """`\\d`, `\\W`, `\\pL`, `\\P{Lu}`; None if it is something else."""
        following = self.pattern[self.at + 1 : self.at + 2]
        if following and following.lower() in PERL:
            self.at += 2
            ranges = list(PERL[following.lower()])
            return ranges if following.islower() else negated(ranges)
        if following not in ("p", "P"):
            return None
        start = self.at
        self.at += 2
        if self.peek("{"):
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise PatternError(f"invalid character class range: `{self.pattern[start:]}`")
            name, self.at = self.pattern[self.at + 1 : end], end + 1
        else:
            name = self.pattern[self.at : self.at + 1]
            self.at += 1
        negative = (following == "P") != name.startswith("^")
        try:
            ranges = list(unicode_class(name.removeprefix("^")))
        except KeyError:
            raise PatternError(
                f"invalid character class range: `{self.pattern[start : self.at]}`"
            ) from None
        return negated(ranges) if negative else ranges

    def code_escape(self) -> int:
        """A single character after a backslash."""
        start = self.at
        self.at += 2
        character = self.pattern[start + 1 : start + 2]
        if not character:
            raise PatternError("trailing backslash at end of expression: ``")
        if character in "1234567" and self.pattern[self.at : self.at + 1] not in tuple("01234567"):
            raise self.bad_escape(start)
        if character in "01234567":
            digits = character
            while len(digits) < 3 and self.pattern[self.at : self.at + 1] in tuple("01234567"):
                digits += self.pattern[self.at]
                self.at += 1
            return int(digits, 8)
        if character == "x":
            return self.hexadecimal(start)
        controls = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
        if character in controls:
            return controls[character]
        if character.isascii() and not character.isalnum():
            return ord(character)
        raise self.bad_escape(start)

    def hexadecimal(self, start: int) -> int:
        if self.peek("{"):
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at + 1 : end] if end >= 0 else ""
            self.at = end + 1 if end >= 0 else len(self.pattern)
        else:
            digits = self.pattern[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        if not digits or any(each not in "0123456789abcdefABCDEF" for each in digits):
            raise self.bad_escape(start)
        code = int(digits[:10], 16)
        if code > LAST:
            raise self.bad_escape(start)
        return code

    def bad_escape(self, start: int) -> PatternError:
        return PatternError(f"invalid escape sequence: `{self.pattern[start : self.at]}`")

    def bracket(self) -> Node:
        start = self.at
        self.at += 1
        negative = self.peek("^")
        self.at += negative
        ranges: Ranges = []
        first = True
        while not self.peek("]") or first:
            if self.at >= len(self.pattern):
                raise PatternError(f"missing closing ]: `{self.pattern[start:]}`")
            if self.peek("[:"):
                end = self.pattern.find(":]", self.at + 2)
                if end >= 0:
                    ranges += self.posix(end)
                    first = False
                    continue
            if self.peek("\\"):
                found = self.class_escape()
                if found is not None:
                    ranges += found
                    first = False
                    continue
            low_at = self.at
            low = high = self.class_character(start)
            if self.peek("-") and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self.class_character(start)
                if high < low:
                    raise PatternError(
                        f"invalid character class range: `{self.pattern[low_at : self.at]}`"
                    )
            ranges.append((low, high))
            first = False
        self.at += 1
        if "i" in self.flags:
            ranges = folded(ranges)
        return self.chars(negated(ranges) if negative else ranges)

    def posix(self, end: int) -> Ranges:
        name = self.pattern[self.at + 2 : end]
        shown = self.pattern[self.at : end + 2]
        negative = name.startswith("^")
        if name.removeprefix("^") not in POSIX:
            raise PatternError(f"invalid character class range: `{shown}`")
        self.at = end + 2
        ranges = list(POSIX[name.removeprefix("^")])
        return negated(ranges) if negative else ranges

    def class_character(self, start: int) -> int:
        if self.at >= len(self.pattern):
            raise PatternError(f"missing closing ]: `{self.pattern[start:]}`")
        if self.peek("\\"):
            return self.code_escape()
        self.at += 1
        return ord(self.pattern[self.at - 1])


def _copies(node: Node) -> int:
    """How many copies of the innermost node nested repetitions with counts make."""
    own = 1
    if node.kind == "repeat":
        own = max(node.low, node.high or 0, 1)
    return own * max((_copies(child) for child in node.children), default=1)
