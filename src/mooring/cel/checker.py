"""Which types an expression has, and which overloads its calls may mean."""

from __future__ import annotations

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
from mooring.cel.environment import Environment, Function
from mooring.cel.errors import CelCompileError
from mooring.cel.lexer import syntax_error
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Substitutions,
    Type,
    is_dyn,
    list_of,
    map_of,
    most_general,
    optional_of,
    param,
    type_of,
    unwrap_optional,
)
from mooring.cel.values import TypeValue, UInt

_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


def check(expr: Expr, env: Environment, text: str) -> Type:
    """Give every node its type. Returns that of the whole, or raises CelCompileError."""
    checker = _Checker(env, text)
    checker.check(expr)
    return checker.finish(expr)


class _Checker:
    def __init__(self, env: Environment, text: str) -> None:
        self.env = env
        self.text = text
        self.scopes: list[dict[str, Type]] = []
        self.substitutions = Substitutions()
        self.fresh = 0
        self.seen: list[Expr] = []

    def finish(self, expr: Expr) -> Type:
        for each in self.seen:
            each.type = self.substitutions.apply(each.type, free_to_dyn=True)
        return expr.type

    def error(self, expr: Expr, message: str) -> CelCompileError:
        return syntax_error(self.text, expr.position, message)

    def new_param(self) -> Type:
        self.fresh += 1
        return param(f"_var{self.fresh}")

    def check(self, expr: Expr) -> Type:
        expr.type = self.type_of(expr)
        self.seen.append(expr)
        return expr.type

    def type_of(self, expr: Expr) -> Type:
        match expr:
            case Literal():
                return _LITERALS[type(expr.value)]
            case Ident():
                return self.identifier(expr)
            case Select():
                return self.select(expr)
            case Call():
                return self.call(expr)
            case ListExpr():
                return self.list(expr)
            case MapExpr():
                return self.map(expr)
            case StructExpr():
                return self.struct(expr)
            case Comprehension():
                return self.comprehension(expr)
        raise AssertionError(expr)

    def undeclared(self, expr: Expr, name: str) -> CelCompileError:
        return self.error(expr, f"undeclared reference to '{name}' (in container '')")

    def lookup(self, name: str) -> tuple[Type, TypeValue | None] | None:
        """The type of a variable, or of a type by its name together with the value."""
        local = not name.startswith(".")
        name = name.removeprefix(".")
        if local:
            for scope in reversed(self.scopes):
                if name in scope:
                    return scope[name], None
        if name in self.env.variables:
            return self.env.variables[name], None
        if name in self.env.types:
            named = self.env.types[name]
            return type_of(named), TypeValue(named.name)
        if name in self.env.fields:
            # The type of a variable: it has a name, and no values of it can be made.
            return type_of(Type("struct", name)), TypeValue(name)
        return None

    def identifier(self, expr: Ident) -> Type:
        found = self.lookup(expr.name)
        if found is None:
            raise self.undeclared(expr, expr.name)
        expr.name = expr.name.removeprefix(".")
        expr.constant = found[1]
        return found[0]

    def select(self, expr: Select) -> Type:
        name = None if expr.test_only else qualified(expr)
        found = None if name is None else self.lookup(name)
        if found is not None and found[1] is not None:
            expr.constant = found[1]
            return found[0]
        selected = self.field(expr, expr.operand, expr.name, optional=False)
        return BOOL if expr.test_only else self.substitutions.apply(selected)

    def field(self, expr: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        operand_type = self.substitutions.apply(self.check(operand))
        target, was_optional = unwrap_optional(operand_type)
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            known = self.env.fields.get(target.name)
            if known is None:
                raise self.error(expr, f"unexpected type resolution failure: '{target.name}'")
            if name not in known:
                raise self.error(expr, f"undefined field '{name}'")
            result = known[name]
        elif target.kind == "param":
            self.substitutions.assignable([DYN], [target])
            result = DYN
        elif is_dyn(target) or target.kind == "error":
            result = DYN
        else:
            raise self.error(expr, f"type '{target}' does not support field selection")
        return optional_of(result) if was_optional or optional else result

    def call(self, expr: Call) -> Type:
        if expr.function == "_?._":
            name = expr.args[1]
            assert isinstance(name, Literal)
            self.check(name)
            expr.overloads = ["select_optional_field"]
            selected = self.field(expr, expr.args[0], name.value, optional=True)
            return self.substitutions.apply(selected)
        for arg in expr.args:
            self.check(arg)
        if expr.target is None:
            function = self.env.functions.get(expr.function.removeprefix("."))
            if function is None:
                raise self.undeclared(expr, expr.function)
            expr.function = function.name
            return self.resolve(expr, function)
        prefix = qualified(expr.target)
        if prefix is not None:
            function = self.env.functions.get(f"{prefix}.{expr.function}".removeprefix("."))
            if function is not None:
                expr.function, expr.target = function.name, None
                return self.resolve(expr, function)
        self.check(expr.target)
        function = self.env.functions.get(expr.function)
        if function is None:
            raise self.undeclared(expr, expr.function)
        return self.resolve(expr, function)

    def resolve(self, expr: Call, function: Function) -> Type:
        args = [arg.type for arg in expr.args]
        if expr.target is not None:
            args.insert(0, expr.target.type)
        if function.name in ("_&&_", "_||_"):
            for arg in expr.args:
                if not self.substitutions.assignable([arg.type], [BOOL]):
                    raise self.mismatch(arg, BOOL, arg.type)
            return BOOL
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != (expr.target is not None) or len(overload.args) != len(args):
                continue
            renamed: dict[str, Type] = {}
            wanted = [self.instance(each, renamed) for each in overload.args]
            returned = self.instance(overload.result, renamed)
            if not self.substitutions.assignable(args, wanted):
                continue
            expr.overloads.append(overload.id)
            returned = self.substitutions.apply(returned)
            if result is None:
                result = returned
            elif not is_dyn(result) and returned != result:
                result = DYN
        if result is None:
            shown = [str(self.substitutions.apply(each, free_to_dyn=True)) for each in args]
            applied = (
                f"{shown[0]}.({', '.join(shown[1:])})"
                if expr.target is not None
                else f"({', '.join(shown)})"
            )
            raise self.error(
                expr, f"found no matching overload for '{function.name}' applied to '{applied}'"
            )
        return result

    def instance(self, declared: Type, renamed: dict[str, Type]) -> Type:
        """A declared type with parameters of its own for this call."""
        if declared.kind == "param":
            if declared.name not in renamed:
                renamed[declared.name] = self.new_param()
            return renamed[declared.name]
        if not declared.params:
            return declared
        params = tuple(self.instance(each, renamed) for each in declared.params)
        return Type(declared.kind, declared.name, params)

    def mismatch(self, expr: Expr, wanted: Type, found: Type) -> CelCompileError:
        apply = self.substitutions.apply
        return self.error(expr, f"expected type '{apply(wanted)}' but found '{apply(found)}'")

    def joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.substitutions.assignable([previous], [current]):
            return most_general(previous, current)
        # Literals of mixed types are refused later, unless they are arguments of `format`.
        return DYN

    def unwrapped(self, expr: Expr, optional: bool) -> Type:
        found = self.check(expr)
        if not optional:
            return found
        inner, was_optional = unwrap_optional(found)
        if not was_optional and not is_dyn(found):
            raise self.mismatch(expr, optional_of(found), found)
        return inner

    def list(self, expr: ListExpr) -> Type:
        item_type: Type | None = None
        for item, optional in zip(expr.items, expr.optional, strict=True):
            item_type = self.joined(item_type, self.unwrapped(item, optional))
        return list_of(item_type or self.new_param())

    def map(self, expr: MapExpr) -> Type:
        key_type: Type | None = None
        value_type: Type | None = None
        for key, value, optional in expr.entries:
            key_type = self.joined(key_type, self.check(key))
            value_type = self.joined(value_type, self.unwrapped(value, optional))
        if key_type is None or value_type is None:
            return map_of(self.new_param(), self.new_param())
        return map_of(key_type, value_type)

    def struct(self, expr: StructExpr) -> Type:
        found = self.lookup(expr.name)
        if found is None:
            raise self.undeclared(expr, expr.name)
        expr.name = expr.name.removeprefix(".")
        if found[0].kind != "type":
            raise self.error(expr, f"'{found[0].name}' is not a type")
        made = found[0].params[0]
        known = self.env.fields.get(expr.name)
        if known is None:
            raise self.error(expr, f"'{made.name}' is not a message type")
        for name, value, optional in expr.fields:
            value_type = self.unwrapped(value, optional)
            if name not in known:
                raise self.error(expr, f"undefined field '{name}'")
            if not self.substitutions.assignable([known[name]], [value_type]):
                raise self.error(
                    value,
                    f"expected type of field '{name}' is '{known[name]}' but provided type is "
                    f"'{value_type}'",
                )
        return made

    def comprehension(self, expr: Comprehension) -> Type:
        self.check(expr.range)
        accumulated = self.check(expr.initial)
        walked = self.substitutions.apply(expr.range.type)
        first, second = self.items_of(expr.range, walked, two=bool(expr.variable2))
        variables = {expr.variable: first}
        if expr.variable2:
            variables[expr.variable2] = second
        self.scopes += [{expr.accumulator: accumulated}, variables]
        self.check(expr.condition)
        self.must_be(expr.condition, BOOL)
        self.check(expr.step)
        self.must_be(expr.step, accumulated)
        self.scopes.pop()
        self.check(expr.result)
        self.scopes.pop()
        return self.substitutions.apply(expr.result.type)

    def items_of(self, expr: Expr, walked: Type, *, two: bool) -> tuple[Type, Type]:
        if walked.kind == "list":
            return (INT, walked.params[0]) if two else (walked.params[0], DYN)
        if walked.kind == "map":
            return walked.params[0], walked.params[1]
        # Kind `any` is not among these: the reference does not walk over it.
        if walked.kind in ("dyn", "error", "param"):
            self.substitutions.assignable([DYN], [walked])
            return DYN, DYN
        raise self.error(
            expr,
            f"expression of type '{walked}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )

    def must_be(self, expr: Expr, wanted: Type) -> None:
        if not self.substitutions.assignable([wanted], [expr.type]):
            raise self.mismatch(expr, wanted, expr.type)


def qualified(expr: Expr) -> str | None:
    """`a.b.c` as a name; None for anything else."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.test_only:
        prefix = qualified(expr.operand)
        return None if prefix is None else f"{prefix}.{expr.name}"
    return None
