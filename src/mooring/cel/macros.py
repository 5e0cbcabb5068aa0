"""Macros: calls that the parser replaces, most of them by comprehensions."""

from __future__ import annotations

from collections.abc import Callable

from mooring.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)

#: The accumulator. No expression can name it.
ACCUMULATOR = "@result"
#: The variable of a comprehension that binds a name and walks over nothing.
UNUSED = "#unused"
_SORT_INPUT = "@__sortBy_input__"


class MacroError(Exception):
    """Arguments that a macro cannot take."""

    def __init__(self, argument: Expr, message: str) -> None:
        super().__init__(message)
        self.position = argument.position


Macro = Callable[[int, Expr, list[Expr]], Expr | None]


def expand(position: int, function: str, target: Expr | None, args: list[Expr]) -> Expr | None:
    """What the call stands for; None if it is no macro. Raises MacroError."""
    if target is None:
        return _has(position, args[0]) if function == "has" and len(args) == 1 else None
    macro = _MACROS.get((function, len(args)))
    return None if macro is None else macro(position, target, args)


def _has(position: int, argument: Expr) -> Expr:
    if isinstance(argument, Select) and not argument.test_only:
        return Select(position, argument.operand, argument.name, test_only=True)
    raise MacroError(argument, "invalid argument to has() macro")


def _call(position: int, function: str, *args: Expr) -> Expr:
    return Call(position, function, None, list(args))


def _accumulated(position: int) -> Expr:
    return Ident(position, ACCUMULATOR)


def _variable(argument: Expr, message: str = "argument must be a simple name") -> str:
    if not isinstance(argument, Ident) or argument.name.startswith("."):
        raise MacroError(argument, message)
    if argument.name in (ACCUMULATOR, "__result__"):
        raise MacroError(argument, "iteration variable overwrites accumulator variable")
    return argument.name


def _variables(args: list[Expr]) -> tuple[str, str]:
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise MacroError(args[1], f"duplicate variable name: {first}")
    return first, second


def _quantifier(kind: str, variables: int) -> Macro:
    def macro(position: int, target: Expr, args: list[Expr]) -> Expr:
        names = _variables(args) if variables == 2 else (_variable(args[0]), "")
        predicate = args[-1]
        accumulated = _accumulated(position)
        initial: Expr
        if kind == "all":
            initial = Literal(position, True)
            condition = _call(position, "@not_strictly_false", accumulated)
            step = _call(position, "_&&_", _accumulated(position), predicate)
            result = _accumulated(position)
        elif kind == "exists":
            initial = Literal(position, False)
            condition = _call(position, "@not_strictly_false", _call(position, "!_", accumulated))
            step = _call(position, "_||_", _accumulated(position), predicate)
            result = _accumulated(position)
        else:
            initial, condition = Literal(position, 0), Literal(position, True)
            one = _call(position, "_+_", accumulated, Literal(position, 1))
            step = _call(position, "_?_:_", predicate, one, _accumulated(position))
            result = _call(position, "_==_", _accumulated(position), Literal(position, 1))
        return Comprehension(
            position, target, *names, ACCUMULATOR, initial, condition, step, result
        )

    return macro


def _collect(
    position: int,
    target: Expr,
    names: tuple[str, str],
    initial: Expr,
    step: Expr,
    predicate: Expr | None,
) -> Expr:
    """A comprehension that adds something for each item that satisfies the predicate."""
    if predicate is not None:
        step = _call(position, "_?_:_", predicate, step, _accumulated(position))
    return Comprehension(
        position,
        target,
        *names,
        ACCUMULATOR,
        initial,
        Literal(position, True),
        step,
        _accumulated(position),
    )


def _append(position: int, item: Expr) -> Expr:
    return _call(position, "_+_", _accumulated(position), ListExpr(position, [item], [False]))


def _map(position: int, target: Expr, args: list[Expr]) -> Expr:
    names = (_variable(args[0], "argument is not an identifier"), "")
    predicate = args[1] if len(args) == 3 else None
    empty = ListExpr(position, [], [])
    return _collect(position, target, names, empty, _append(position, args[-1]), predicate)


def _filter(position: int, target: Expr, args: list[Expr]) -> Expr:
    names = (_variable(args[0], "argument is not an identifier"), "")
    empty = ListExpr(position, [], [])
    return _collect(position, target, names, empty, _append(position, args[0]), args[1])


def _transform_list(position: int, target: Expr, args: list[Expr]) -> Expr:
    predicate = args[2] if len(args) == 4 else None
    empty = ListExpr(position, [], [])
    step = _append(position, args[-1])
    return _collect(position, target, _variables(args), empty, step, predicate)


def _transform_map(position: int, target: Expr, args: list[Expr]) -> Expr:
    names = _variables(args)
    predicate = args[2] if len(args) == 4 else None
    step = _call(
        position, "cel.@mapInsert", _accumulated(position), Ident(position, names[0]), args[-1]
    )
    return _collect(position, target, names, MapExpr(position, []), step, predicate)


def _transform_map_entry(position: int, target: Expr, args: list[Expr]) -> Expr:
    predicate = args[2] if len(args) == 4 else None
    step = _call(position, "cel.@mapInsert", _accumulated(position), args[-1])
    return _collect(position, target, _variables(args), MapExpr(position, []), step, predicate)


def _bound(position: int, name: str, value: Expr, result: Expr) -> Expr:
    """A comprehension over nothing, whose accumulator is the name."""
    return Comprehension(
        position,
        ListExpr(position, [], []),
        UNUSED,
        "",
        name,
        value,
        Literal(position, False),
        Ident(position, name),
        result,
    )


def _bind(position: int, target: Expr, args: list[Expr]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0], "cel.bind() variable names must be simple identifiers")
    return _bound(position, args[0].name, args[1], args[2])


def _opt_map(flat: bool) -> Macro:
    def macro(position: int, target: Expr, args: list[Expr]) -> Expr:
        name = "optFlatMap" if flat else "optMap"
        if not isinstance(args[0], Ident):
            raise MacroError(args[0], f"{name}() variable name must be a simple identifier")
        value = Call(position, "value", copied(target), [])
        mapped = _bound(position, args[0].name, value, args[1])
        if not flat:
            mapped = Call(position, "optional.of", None, [mapped])
        has_value = Call(position, "hasValue", target, [])
        return _call(
            position, "_?_:_", has_value, mapped, Call(position, "optional.none", None, [])
        )

    return macro


def _sort_by(position: int, target: Expr, args: list[Expr]) -> Expr:
    if isinstance(target, Literal | MapExpr):
        raise MacroError(
            target,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _map(position, Ident(position, _SORT_INPUT), args)
    result = Call(position, "@sortByAssociatedKeys", Ident(position, _SORT_INPUT), [keys])
    return _bound(position, _SORT_INPUT, target, result)


def copied(expr: Expr) -> Expr:
    """The same tree again, so that the checker can give each its own types."""
    match expr:
        case Literal():
            return Literal(expr.position, expr.value)
        case Ident():
            return Ident(expr.position, expr.name)
        case Select():
            return Select(expr.position, copied(expr.operand), expr.name, expr.test_only)
        case Call():
            target = None if expr.target is None else copied(expr.target)
            return Call(expr.position, expr.function, target, [copied(arg) for arg in expr.args])
        case ListExpr():
            return ListExpr(expr.position, [copied(item) for item in expr.items], expr.optional)
        case MapExpr():
            entries = [(copied(key), copied(value), opt) for key, value, opt in expr.entries]
            return MapExpr(expr.position, entries)
        case Comprehension():
            return Comprehension(
                expr.position,
                copied(expr.range),
                expr.variable,
                expr.variable2,
                expr.accumulator,
                copied(expr.initial),
                copied(expr.condition),
                copied(expr.step),
                copied(expr.result),
            )
    return _copied_struct(expr)


def _copied_struct(expr: Expr) -> Expr:
    assert isinstance(expr, StructExpr)
    fields = [(name, copied(value), opt) for name, value, opt in expr.fields]
    return StructExpr(expr.position, expr.name, fields)


_MACROS: dict[tuple[str, int], Macro] = {
    ("all", 2): _quantifier("all", 1),
    ("exists", 2): _quantifier("exists", 1),
    ("exists_one", 2): _quantifier("exists_one", 1),
    ("all", 3): _quantifier("all", 2),
    ("exists", 3): _quantifier("exists", 2),
    ("exists_one", 3): _quantifier("exists_one", 2),
    ("existsOne", 3): _quantifier("exists_one", 2),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
    ("sortBy", 2): _sort_by,
}
