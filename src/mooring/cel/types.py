"""The types that the checker knows."""

from __future__ import annotations

from typing import Final


class Type:
    """A type: a kind, a name, and parameters (of a list, a map, an optional, a type)."""

    __slots__ = ("kind", "name", "nullable", "params")

    def __init__(
        self, kind: str, name: str = "", params: tuple[Type, ...] = (), nullable: bool = False
    ) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        #: A wrapper type of Protocol Buffers: null, or a value of the type that it wraps.
        self.nullable = nullable

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Type)
            and self.kind == other.kind
            and self.name == other.name
            and self.params == other.params
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.name, self.params))

    def __str__(self) -> str:
        if self.nullable:
            return f"wrapper({self.name})"
        if self.params and self.kind != "type":
            return f"{self.name}({', '.join(map(str, self.params))})"
        if self.kind == "type" and self.params:
            return f"type({self.params[0]})"
        return "null" if self.kind == "null" else self.name

    __repr__ = __str__


DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("error", "!error!")
NULL: Final = Type("null", "null_type")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")


def list_of(item: Type) -> Type:
    return Type("list", "list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def struct(name: str) -> Type:
    """A type known by its name: that of a library or of an input."""
    return Type("struct", name)


def param(name: str) -> Type:
    return Type("param", name)


def is_dyn(checked: Type) -> bool:
    return checked.kind in ("dyn", "any")


def is_optional(checked: Type) -> bool:
    return checked.kind == "opaque" and checked.name == "optional_type"


def unwrap_optional(checked: Type) -> tuple[Type, bool]:
    return (checked.params[0], True) if is_optional(checked) else (checked, False)


class Substitutions:
    """What type parameters stand for. Changes since a mark can be undone."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._log: list[tuple[str, Type | None]] = []

    def _bind(self, parameter: Type, to: Type) -> None:
        self._log.append((parameter.name, self._bound.get(parameter.name)))
        self._bound[parameter.name] = to

    def assignable(self, left: list[Type], right: list[Type]) -> bool:
        """Whether each of `left` can be used where the one of `right` is asked for."""
        mark = len(self._log)
        if len(left) == len(right) and all(
            self._assignable(one, other) for one, other in zip(left, right, strict=True)
        ):
            return True
        while len(self._log) > mark:
            name, old = self._log.pop()
            if old is None:
                del self._bound[name]
            else:
                self._bound[name] = old
        return False

    def _assignable(self, left: Type, right: Type) -> bool:
        if right.kind == "param":
            valid, bound = self._substitutes(left, right)
            if valid:
                return True
            if bound:
                return False
        if left.kind == "param":
            return self._substitutes(right, left)[0]
        if is_dyn(left) or is_dyn(right) or left.kind == "error" or right.kind == "error":
            return True
        if left.kind == "null":
            return _takes_null(right)
        if right.kind == "null":
            return _takes_null(left)
        if left.kind == "type":
            return right.kind == "type"
        if left.kind in ("opaque", "list", "map"):
            return (
                left.kind == right.kind
                and left.name == right.name
                and len(left.params) == len(right.params)
                and all(map(self._assignable, left.params, right.params))
            )
        return left.kind == right.kind and left.name == right.name

    def _substitutes(self, wanted: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether the parameter can stand for `wanted`, and whether it stood for something."""
        if wanted == parameter:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is not None:
            if wanted == bound:
                return True, True
            if self._assignable(wanted, bound):
                general = most_general(wanted, bound)
                if self._not_within(parameter, general):
                    self._bind(parameter, general)
                return True, True
            return False, True
        if self._not_within(parameter, wanted):
            self._bind(parameter, wanted)
            return True, False
        return False, False

    def _not_within(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return False
        if within.kind == "param":
            bound = self._bound.get(within.name)
            return bound is None or self._not_within(parameter, bound)
        if within.kind in ("opaque", "list", "map", "type"):
            return all(self._not_within(parameter, inner) for inner in within.params)
        return True

    def apply(self, checked: Type, *, free_to_dyn: bool = False) -> Type:
        """The type with parameters replaced by what they stand for."""
        if checked.kind == "param":
            bound = self._bound.get(checked.name)
            if bound is not None:
                return self.apply(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else checked
        if checked.params:
            params = tuple(self.apply(inner, free_to_dyn=free_to_dyn) for inner in checked.params)
            return Type(checked.kind, checked.name, params)
        return checked


def _takes_null(checked: Type) -> bool:
    return checked.nullable or checked.kind in (
        "opaque",
        "struct",
        "any",
        "duration",
        "timestamp",
        "null",
    )


def most_general(left: Type, right: Type) -> Type:
    return left if _equal_or_less_specific(left, right) else right


def _equal_or_less_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind == "param":
        return True
    if is_dyn(right) or right.kind == "param":
        return False
    if left.kind != right.kind:
        return False
    if left.kind in ("opaque", "list", "map"):
        return (
            left.name == right.name
            and len(left.params) == len(right.params)
            and all(map(_equal_or_less_specific, left.params, right.params))
        )
    return left.kind == "type" or left == right
