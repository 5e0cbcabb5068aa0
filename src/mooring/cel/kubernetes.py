"""The environment that Kubernetes gives to all expressions."""

from __future__ import annotations

from functools import lru_cache

from mooring.cel.environment import Environment, Function
from mooring.cel.library import (
    lists,
    named_formats,
    networks,
    optionals,
    quantities,
    regex,
    semvers,
    standard,
    strings,
    structs,
    urls,
)
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)

_NAMED_TYPES: dict[str, Type] = {
    each.name: each for each in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT)
} | {
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "type": Type("type", "type"),
    "optional_type": optional_of(DYN),
    networks.IP.name: networks.IP,
    networks.CIDR.name: networks.CIDR,
    **structs.TYPES,
}


@lru_cache(maxsize=1)
def _functions() -> tuple[Function, ...]:
    return (
        *standard.FUNCTIONS,
        *urls.FUNCTIONS,
        *regex.FUNCTIONS,
        *strings.FUNCTIONS,
        *lists.FUNCTIONS,
        *optionals.FUNCTIONS,
        *quantities.FUNCTIONS,
        *networks.FUNCTIONS,
        *named_formats.FUNCTIONS,
        *semvers.FUNCTIONS,
    )


def base_environment() -> Environment:
    """The environment for stored expressions of 1.36, without variables. Callers may add to it."""
    env = Environment(types=dict(_NAMED_TYPES), fields=dict(structs.FIELDS))
    for function in _functions():
        env.add(
            Function(
                function.name,
                list(function.overloads),
                function.singleton,
                function.operand,
                function.unguarded,
                function.variadic,
            )
        )
    return env
