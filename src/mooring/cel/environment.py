"""What an expression may use: functions with their overloads, variables, and types with fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.types import Type
from mooring.cel.values import is_list, is_map, type_name

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function."""

    id: str
    #: With the target of a method first.
    args: tuple[Type, ...]
    result: Type
    #: None if the function has one implementation for all overloads.
    implementation: Implementation | None = None
    member: bool = False
    #: The arguments are evaluated one by one, and the first error ends that (the reference binds it
    #: as a function of any number of arguments). This shows in the cost only.
    variadic: bool = False


@dataclass(slots=True)
class Function:
    name: str
    overloads: list[Overload] = field(default_factory=list)
    #: One implementation for all overloads.
    singleton: Implementation | None = None
    #: Whether the first argument has what the implementation needs.
    operand: Callable[[Any], bool] | None = None
    #: Call the implementation whatever the types of the arguments are.
    unguarded: bool = False
    variadic: bool = False

    def resolve(self, ids: list[str]) -> tuple[Implementation | None, bool]:
        """What to call for these overloads, and whether it is variadic."""
        if self.singleton is not None:
            return self._of_singleton(), self.variadic
        bound = [each for each in self.overloads if each.implementation is not None]
        if not bound:
            return None, False
        if len(ids) == 1:
            for each in bound:
                if each.id == ids[0]:
                    return self._guarded(each), each.variadic
        if len(bound) == 1:
            return self._guarded(bound[0]), bound[0].variadic
        return self._dispatch(bound), True

    def _of_singleton(self) -> Implementation:
        implementation, operand, name = self.singleton, self.operand, self.name
        assert implementation is not None
        if operand is None:
            return implementation

        def checked(*args: Any) -> Any:
            if operand(args[0]):
                return implementation(*args)
            raise CelError(f"no such overload: {name}")

        return checked

    def _guarded(self, overload: Overload) -> Implementation:
        implementation, types, name = overload.implementation, overload.args, self.name
        assert implementation is not None
        if self.unguarded or all(each.kind in ("dyn", "any", "param") for each in types):
            return implementation

        def guarded(*args: Any) -> Any:
            for each, arg in zip(types, args, strict=True):
                if not accepts(each, arg):
                    raise no_such_overload(name, args)
            return implementation(*args)

        if any(each.kind in ("dyn", "any", "param", "list", "map") for each in types):
            return guarded
        # The rest is the same, only faster, for types that their names tell.
        names = [each.name for each in types]
        if len(names) == 1:
            only = names[0]

            def unary(arg: Any) -> Any:
                if type_name(arg) != only:
                    raise no_such_overload(name, (arg,))
                return implementation(arg)

            return unary
        if len(names) != 2:
            return guarded
        first, second = names

        def binary(left: Any, right: Any) -> Any:
            if type_name(left) != first or type_name(right) != second:
                raise no_such_overload(name, (left, right))
            return implementation(left, right)

        return binary

    def _dispatch(self, overloads: list[Overload]) -> Implementation:
        name, unguarded = self.name, self.unguarded

        def dispatch(*args: Any) -> Any:
            for each in overloads:
                if len(each.args) == len(args) and (
                    unguarded or all(map(accepts, each.args, args))
                ):
                    assert each.implementation is not None
                    return each.implementation(*args)
            raise no_such_overload(name, args)

        return dispatch


def accepts(wanted: Type, value: Any) -> bool:
    """Whether a value may be of the type, as far as its first item tells."""
    kind = wanted.kind
    if kind in ("dyn", "any", "param"):
        return True
    if type_name(value) != wanted.name:
        return False
    if kind == "list" and is_list(value) and value:
        return accepts(wanted.params[0], value[0])
    if kind == "map" and is_map(value) and len(value):
        key, item = next(value.items())
        return accepts(wanted.params[0], key) and accepts(wanted.params[1], item)
    return True


def no_such_overload(name: str, args: tuple[Any, ...]) -> CelError:
    return CelError(f"no such overload: {name}({', '.join(map(type_name, args))})")


@dataclass(slots=True)
class Environment:
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Type] = field(default_factory=dict)
    #: Types that an expression can name.
    types: dict[str, Type] = field(default_factory=dict)
    #: The fields of types that have some.
    fields: dict[str, dict[str, Type]] = field(default_factory=dict)

    def add(self, *functions: Function) -> None:
        """Declare functions. Overloads of the same function add up."""
        for function in functions:
            known = self.functions.get(function.name)
            if known is None:
                self.functions[function.name] = function
            else:
                known.overloads += function.overloads

    def extended(
        self, variables: dict[str, Type], fields: dict[str, dict[str, Type]]
    ) -> Environment:
        """This environment with more variables and more types with fields."""
        return Environment(
            self.functions, self.variables | variables, self.types, self.fields | fields
        )
