"""The tree of an expression. Macros are expanded: `all` and the like are comprehensions here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mooring.cel.types import DYN, Type


@dataclass(slots=True, eq=False)
class Expr:
    #: Where it is in the text, counted from 0.
    position: int
    #: Given by the checker.
    type: Type = field(default=DYN, init=False)
    #: How deep the tree is below it, counting what the parser's limit counts.
    height: int = field(default=0, init=False)


@dataclass(slots=True, eq=False)
class Literal(Expr):
    value: Any


@dataclass(slots=True, eq=False)
class Ident(Expr):
    name: str
    #: The value, if the name is that of a type.
    constant: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Select(Expr):
    operand: Expr
    name: str
    #: Made by `has()`: asks whether the field is there.
    test_only: bool = False
    #: The dotted name is that of a type: this is its value.
    constant: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Call(Expr):
    function: str
    #: None for a function that is not a method.
    target: Expr | None
    args: list[Expr]
    #: Given by the checker: the overloads that may be meant.
    overloads: list[str] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    items: list[Expr]
    #: For each item, whether it is written `?item`.
    optional: list[bool]


@dataclass(slots=True, eq=False)
class MapExpr(Expr):
    #: Key, value, and whether it is written `?key: value`.
    entries: list[tuple[Expr, Expr, bool]]


@dataclass(slots=True, eq=False)
class StructExpr(Expr):
    name: str
    #: Field, value, and whether it is written `?field: value`.
    fields: list[tuple[str, Expr, bool]]


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    """For each item of `range`, while `condition`: the accumulator becomes `step`. Then `result`."""

    range: Expr
    variable: str
    #: "" if there is one variable only.
    variable2: str
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr
