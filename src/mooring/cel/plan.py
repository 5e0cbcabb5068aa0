"""From the checked tree to closures that evaluate it and count what that costs.

A frame is a list: the cost so far, then one slot for each variable. A closure adds the cost of its own
step; its operands add theirs. Costs of steps that fail count too, since `||` and `&&` may go on.
"""

from __future__ import annotations

from typing import Any

from mooring.cel import costs
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
from mooring.cel.attributes import Eval, Qualifier, checked_key
from mooring.cel.calls import (
    conjunction,
    disjunction,
    equality,
    equality_with_constant,
    fixed_cost_call,
    inequality,
    membership,
    optional_or,
    variadic_call,
    varying_cost_call,
)
from mooring.cel.comprehensions import (
    UNSET,
    binding,
    finished,
    optional_entry,
    pairs,
    parsed_constant,
    singles,
    walk,
)
from mooring.cel.environment import Environment
from mooring.cel.errors import CelCompileError, CelError
from mooring.cel.library.regex import compile_pattern, constant_pattern
from mooring.cel.library.structs import make_struct
from mooring.cel.nodes import (
    Attribute,
    Conditional,
    Constant,
    Node,
    Planned,
    attribute_of,
    evaluation_of,
)
from mooring.cel.values import (
    Map,
    MutableList,
    MutableMap,
    Optional,
    TypeValue,
    is_list,
    is_map,
    text_of,
)

_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)


#: Functions that make a value of a library from a string.
_PARSERS = frozenset(("quantity", "semver", "ip", "cidr"))


class Planner:
    """Plans one expression. `slots` is the length of the frame that it needs."""

    def __init__(self, env: Environment, variables: list[str], limit: int) -> None:
        self.env = env
        self.limit = limit
        self.scope = {name: slot for slot, name in enumerate(variables, 1)}
        self.slots = len(variables) + 1
        #: How to compute the accumulators that have not been read yet.
        self.initial: dict[int, Eval] = {}

    def evaluation(self, expr: Expr) -> Eval:
        return evaluation_of(self.plan(expr))

    def plan(self, expr: Expr) -> Planned:
        match expr:
            case Literal():
                return Constant(expr.value)
            case Ident():
                if expr.constant is not None:
                    return self.named_type(expr.constant)
                return Attribute(self.variable(self.scope[expr.name]))
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

    def named_type(self, named: TypeValue) -> Planned:
        if named.name in self.env.fields and named.name not in self.env.types:
            raise CelCompileError(
                f"program instantiation failed: reference to undefined type: {named.name}"
            )
        return Constant(named)

    def variable(self, slot: int) -> Eval:
        initial = self.initial.get(slot)
        if initial is None:
            return lambda frame: frame[slot]

        def accumulator(frame: list[Any]) -> Any:
            value = frame[slot]
            if value is UNSET:
                try:
                    value = initial(frame)
                except CelError as error:
                    value = error
                if is_list(value) and not value:
                    value = MutableList()
                elif is_map(value) and not len(value):
                    value = MutableMap()
                frame[slot] = value
            if isinstance(value, CelError):
                raise value
            return value

        return accumulator

    def select(self, expr: Select) -> Planned:
        if expr.constant is not None:
            return self.named_type(expr.constant)
        attribute = attribute_of(self.plan(expr.operand))
        attribute.add(Qualifier(expr.name, constant=True, optional=False))
        return Node(attribute.test()) if expr.test_only else attribute

    def index(self, expr: Call, *, optional: bool) -> Planned:
        attribute = attribute_of(self.plan(expr.args[0]))
        key = self.plan(expr.args[1])
        if isinstance(key, Constant):
            try:
                checked_key(key.value)
            except CelError as error:
                raise CelCompileError(f"program instantiation failed: {error}") from None
            qualifier = Qualifier(key.value, constant=True, optional=optional)
        elif isinstance(key, Attribute):
            qualifier = Qualifier(key.resolve(), constant=False, optional=optional)
        else:
            qualifier = Qualifier(key.evaluate, constant=False, optional=optional)
        attribute.add(qualifier)
        return attribute

    def call(self, expr: Call) -> Planned:
        match expr.function:
            case "_[_]":
                return self.index(expr, optional=False)
            case "_[?_]" | "_?._":
                return self.index(expr, optional=True)
            case "_?_:_":
                condition, yes, no = (self.plan(arg) for arg in expr.args)
                return Conditional(evaluation_of(condition), attribute_of(yes), attribute_of(no))
            case "_&&_":
                return Node(conjunction([self.evaluation(arg) for arg in expr.args]))
            case "_||_":
                return Node(disjunction([self.evaluation(arg) for arg in expr.args]))
            case "_==_":
                left, right = (self.plan(arg) for arg in expr.args)
                if isinstance(right, Constant):
                    return Node(equality_with_constant(evaluation_of(left), right.value))
                return Node(equality(evaluation_of(left), evaluation_of(right)))
            case "_!=_":
                return Node(inequality(*(self.evaluation(arg) for arg in expr.args)))
        return self.function(expr)

    def function(self, expr: Call) -> Planned:
        operands = expr.args if expr.target is None else [expr.target, *expr.args]
        planned = [self.plan(each) for each in operands]
        if expr.function in ("or", "orValue") and len(planned) == 2:
            unwrap = expr.function == "orValue"
            return Node(optional_or(*map(evaluation_of, planned), unwrap=unwrap))
        last = planned[-1] if planned else None
        if expr.function == "@in" and expr.overloads == ["in_list"] and isinstance(last, Constant):
            quick = membership(evaluation_of(planned[0]), last.value)
            if quick is not None:
                return Constant(False) if quick is False else Node(quick)
        implementation, variadic = self.env.functions[expr.function].resolve(expr.overloads)
        if implementation is None:
            raise CelCompileError(
                f"program instantiation failed: no such overload: {expr.function}"
            )
        if expr.function in _CONVERSIONS and len(planned) == 1 and isinstance(last, Constant):
            try:
                return Constant(implementation(last.value))
            except CelError as error:
                raise CelCompileError(f"program instantiation failed: {error}") from None
        if expr.function in ("matches", "find", "findAll"):
            pattern = planned[1]
            if isinstance(pattern, Constant) and isinstance(pattern.value, str):
                try:
                    compiled = compile_pattern(pattern.value)
                except CelError as error:
                    raise CelCompileError(f"program instantiation failed: {error}") from None
                implementation, variadic = constant_pattern(expr.function, compiled), True
        args = [evaluation_of(each) for each in planned]
        cost = costs.cost_of(expr.function, expr.overloads)
        if len(planned) == 1 and isinstance(last, Constant) and expr.function in _PARSERS:
            parsed = parsed_constant(implementation, last.value, cost)
            if parsed is not None:
                return Node(parsed)
        if variadic or len(args) > 2:
            return Node(variadic_call(implementation, args, cost))
        if cost is None:
            lazy = expr.function == "@not_strictly_false"
            return Node(fixed_cost_call(implementation, args, absorb=lazy))
        return Node(varying_cost_call(implementation, args, cost))

    def list(self, expr: ListExpr) -> Planned:
        planned = [self.plan(item) for item in expr.items]
        if all(isinstance(each, Constant) for each in planned) and not any(expr.optional):
            return Constant([each.value for each in planned if isinstance(each, Constant)])
        items = [evaluation_of(each) for each in planned]
        if not any(expr.optional):

            def plain(frame: list[Any]) -> Any:
                frame[0] += costs.LIST
                return [item(frame) for item in items]

            return Node(plain)
        marked = list(zip(items, expr.optional, strict=True))

        def with_optional(frame: list[Any]) -> Any:
            frame[0] += costs.LIST
            made = []
            for item, optional in marked:
                value = item(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelError(
                            "cannot initialize optional list element from non-optional value "
                            + text_of(value)
                        )
                    if not value.has_value:
                        continue
                    value = value.value
                made.append(value)
            return made

        return Node(with_optional)

    def map(self, expr: MapExpr) -> Planned:
        planned = [
            (self.plan(key), self.plan(value), optional) for key, value, optional in expr.entries
        ]
        entries = [
            (evaluation_of(key), evaluation_of(value), optional) for key, value, optional in planned
        ]

        def evaluate(frame: list[Any]) -> Any:
            frame[0] += costs.MAP
            made = Map()
            for key_of, value_of, optional in entries:
                key, value = key_of(frame), value_of(frame)
                if optional:
                    value = optional_entry(text_of(key), value)
                    if value is UNSET:
                        made.remove(key)
                        continue
                made.set(key, value)
            return made

        if all(
            isinstance(key, Constant) and isinstance(value, Constant) and not optional
            for key, value, optional in planned
        ):
            try:
                return Constant(evaluate([0]))
            except CelError as error:
                raise CelCompileError(f"program instantiation failed: {error}") from None
        return Node(evaluate)

    def struct(self, expr: StructExpr) -> Planned:
        fields = [(name, self.evaluation(value), opt) for name, value, opt in expr.fields]
        name = expr.name

        def evaluate(frame: list[Any]) -> Any:
            frame[0] += costs.STRUCT
            made: dict[str, Any] = {}
            for field, value_of, optional in fields:
                value = value_of(frame)
                if optional:
                    value = optional_entry(field, value)
                    if value is UNSET:
                        made.pop(field, None)
                        continue
                made[field] = value
            return make_struct(name, made)

        return Node(evaluate)

    def comprehension(self, expr: Comprehension) -> Planned:
        outer = self.scope
        walked = self.evaluation(expr.range)
        accumulator, first, second = self.slots, self.slots + 1, self.slots + 2
        self.slots += 3
        self.initial[accumulator] = self.evaluation(expr.initial)
        self.scope = outer | {expr.accumulator: accumulator}
        result = self.evaluation(expr.result)
        self.scope = self.scope | {expr.variable: first}
        if expr.variable2:
            self.scope[expr.variable2] = second
        condition = self.plan(expr.condition)
        step = self.evaluation(expr.step)
        self.scope = outer
        if isinstance(expr.range, ListExpr) and not expr.range.items:
            return Node(binding(accumulator, result))
        items_of = pairs if expr.variable2 else singles
        proceed = None if isinstance(condition, Constant) else evaluation_of(condition)
        loop = walk((accumulator, first, second), items_of, proceed, step, self.limit)

        def evaluate(frame: list[Any]) -> Any:
            loop(frame, walked(frame))
            return finished(result(frame))

        return Node(evaluate)
