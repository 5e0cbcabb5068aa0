"""Golden cases of CEL: whether an expression selects a device, and what it costs to find out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError, compile_selector
from mooring.objects.decoding import decode_object
from mooring.objects.devices import Device, ResourceSlice

#: The three answers. The texts of errors are for information: which of the two it is counts.
VALUE, COMPILE_ERROR, RUNTIME_ERROR = "value", "compileError", "runtimeError"


@dataclass(frozen=True, slots=True)
class CelCase:
    name: str
    expression: str
    driver: str
    device: Device
    #: `value` and perhaps `cost`, or `compileError`, or `runtimeError`.
    expect: dict[str, Any]


def cel_case(line: Mapping[str, Any]) -> CelCase:
    """Raises KeyError or TypeError if the line is no such case."""
    given = dict(line["device"])
    driver = given.pop("driver")
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": line["name"]},
        "spec": {"driver": driver, "devices": [{"name": "device", **given}]},
    }
    piece = decode_object(raw)
    assert isinstance(piece, ResourceSlice)
    expect = dict(line["expect"])
    if sum(answer in expect for answer in (VALUE, COMPILE_ERROR, RUNTIME_ERROR)) != 1:
        raise TypeError("it expects none or several of value, compileError and runtimeError")
    return CelCase(line["name"], line["expr"], driver, piece.spec.devices[0], expect)


def replay_cel(case: CelCase) -> dict[str, Any]:
    """What mooring answers, in the form of the file."""
    try:
        selector = compile_selector(case.expression)
        value, cost = selector.matches_with_cost(case.driver, case.device)
    except SelectorCompileError as error:
        return {COMPILE_ERROR: str(error)}
    except SelectorRuntimeError as error:
        return {RUNTIME_ERROR: str(error)}
    return {VALUE: value, "cost": cost}


def cel_differences(case: CelCase) -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ, with what is expected and what mooring answers."""
    expected, got = case.expect, replay_cel(case)
    for answer in (VALUE, COMPILE_ERROR, RUNTIME_ERROR):
        if (answer in expected) != (answer in got):
            yield answer, expected.get(answer), got.get(answer)
    for field in (VALUE, "cost"):
        if field in expected and field in got and expected[field] != got[field]:
            yield field, expected[field], got[field]
