"""What is refused although its types are right: literals that have no value, and mixed lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.cel.ast import (
    Call,
    Comprehension,
    Expr,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)
from mooring.cel.errors import CelCompileError, CelError
from mooring.cel.lexer import syntax_error
from mooring.cel.library.formatting import CLAUSE_TYPES, complaint, interpolate
from mooring.cel.library.regex import compile_pattern
from mooring.cel.library.times import parse_duration, parse_timestamp, timestamp_of_seconds
from mooring.cel.types import Type


def validate(expr: Expr, text: str) -> None:
    """Raise CelCompileError if a literal in the checked expression is refused."""
    for each, in_format in _walk(expr, False):
        if isinstance(each, Call):
            _check_call(each, text)
        elif not in_format:
            _check_mixed(each, text)


def _walk(expr: Expr, in_format: bool) -> Iterator[tuple[Expr, bool]]:
    """All nodes, and whether they are within arguments of `format`, where lists may be mixed."""
    yield expr, in_format
    match expr:
        case Select():
            yield from _walk(expr.operand, in_format)
        case Call():
            inner = in_format or expr.function == "format"
            for each in ([] if expr.target is None else [expr.target]) + expr.args:
                yield from _walk(each, inner)
        case ListExpr():
            for each in expr.items:
                yield from _walk(each, in_format)
        case MapExpr():
            for key, value, _ in expr.entries:
                yield from _walk(key, in_format)
                yield from _walk(value, in_format)
        case StructExpr():
            for _, value, _ in expr.fields:
                yield from _walk(value, in_format)
        case Comprehension():
            parts = (expr.range, expr.initial, expr.condition, expr.step, expr.result)
            for each in parts:
                yield from _walk(each, in_format)


def _check_call(call: Call, text: str) -> None:
    if call.function in ("duration", "timestamp", "matches") and call.args:
        literal = call.args[0]
        if isinstance(literal, Literal) and not _has_value(call.function, literal.value):
            raise syntax_error(text, literal.position, f"invalid {call.function} argument")
    if call.function == "format" and isinstance(call.target, Literal):
        _check_format(call, call.target.value, text)


def _has_value(function: str, value: Any) -> bool:
    try:
        if function == "matches":
            compile_pattern(value)
            return True
        if function == "duration":
            return isinstance(value, str) and parse_duration(value) is not None
        if isinstance(value, int):
            timestamp_of_seconds(value)
            return True
        return isinstance(value, str) and parse_timestamp(value) is not None
    except CelError:
        return False


def _check_format(call: Call, template: Any, text: str) -> None:
    args = call.args[0] if call.args else None
    if not isinstance(template, str) or not isinstance(args, ListExpr):
        return
    items = args.items
    used = 0

    def show(position: int, letter: str, precision: int | None) -> str:
        nonlocal used
        used += 1
        _check_clause(items[position], letter.lower())
        return ""

    try:
        interpolate(template, len(items), show)
    except CelError as error:
        raise syntax_error(text, call.position, str(error)) from None
    if len(items) > used:
        raise syntax_error(
            text,
            call.position,
            f"too many arguments supplied to string.format (expected {used}, got {len(items)})",
        )


def _check_clause(item: Expr, letter: str) -> None:
    if item.type.kind != "dyn" and item.type.kind not in CLAUSE_TYPES[letter]:
        raise complaint(letter, item.type.name)
    if letter != "s":
        return
    if isinstance(item, ListExpr):
        for each in item.items:
            _check_clause(each, letter)
    elif isinstance(item, MapExpr):
        for key, value, _ in item.entries:
            _check_clause(key, letter)
            _check_clause(value, letter)


def _check_mixed(expr: Expr, text: str) -> None:
    if isinstance(expr, ListExpr):
        _check_same(zip(expr.items, expr.optional, strict=True), text)
    elif isinstance(expr, MapExpr):
        _check_same(((key, False) for key, _, _ in expr.entries), text)
        _check_same(((value, optional) for _, value, optional in expr.entries), text)


def _check_same(items: Any, text: str) -> None:
    first: Type | None = None
    for item, optional in items:
        found = item.type
        if optional:
            if not found.params:
                raise CelCompileError("compilation failed: ERROR: optional item of unknown type")
            found = found.params[0]
        if first is None:
            first = found
        elif found != first:
            raise syntax_error(text, item.position, f"expected type '{first}' but found '{found}'")
