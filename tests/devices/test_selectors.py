"""Selectors on devices: what the variable `device` holds, and what users are told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mooring.devices.cel_selectors import COST_LIMIT, Selector
from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError, compile_selector
from mooring.objects.devices import Device, DeviceAttribute, DeviceCapacity
from mooring.objects.quantity import parse_quantity

DRIVER = "gpu.example.com"


def device(**changes: object) -> Device:
    return Device(
        **{
            "name": "gpu-0",
            "attributes": {
                "model": DeviceAttribute(string="a100"),
                "index": DeviceAttribute(integer=0),
                "ecc": DeviceAttribute(boolean=True),
                "driverVersion": DeviceAttribute(version="1.2.3"),
                "example.org/rack": DeviceAttribute(string="r1"),
            },
            "capacity": {
                "memory": DeviceCapacity(parse_quantity("40Gi")),
                "odd": DeviceCapacity(parse_quantity("1.5Gi")),
            },
            **changes,
        }  # type: ignore[arg-type]
    )


def matches(expression: str, of: Device | None = None) -> bool:
    return compile_selector(expression).matches(DRIVER, of or device())


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["gpu.example.com"].ecc',
        'device.attributes["example.org"].rack == "r1"',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.0.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) == 0',
        'has(device.attributes["gpu.example.com"].index)',
        '!has(device.attributes["nope"].x) && !("nope" in device.attributes)',
        'device.attributes["nope"] == {} && device.capacity["nope"].size() == 0',
        "device.allowMultipleAllocations == false",
        'device.attributes["gpu.example.com"].model.includes("a100")',
    ],
)
def test_selects(expression):
    assert matches(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('device.attributes["gpu.example.com"].healthy', "no such key: healthy"),
        ('device.attributes["other"].x == 1', "no such key: x"),
        (
            'device.attributes["gpu.example.com"].index',
            "CEL result of type int could not be converted to bool: "
            "unsupported type conversion from 'int' to bool",
        ),
        (
            "lists.range(250000).all(x, x >= 0)",
            "operation cancelled: actual cost limit exceeded",
        ),
    ],
)
def test_runtime_errors(expression, text):
    with pytest.raises(SelectorRuntimeError) as caught:
        matches(expression)
    assert str(caught.value) == text


def test_an_identifier_that_is_not_there_can_be_asked_for():
    assert not matches('"x" in device.attributes["other"]')


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        (
            'device.attributes["d"].x.y',
            "must evaluate to bool or the unknown type, not dyn",
        ),
        (
            "device.nope",
            "compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n | device.nope\n | ......^",
        ),
        (
            'int("x") == 1',
            "program instantiation failed: type conversion error from 'string' to 'int'",
        ),
    ],
)
def test_compile_errors(expression, text):
    with pytest.raises(SelectorCompileError) as caught:
        compile_selector(expression)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (DeviceAttribute(strings=["a"]), "attribute odd: unsupported attribute value"),
        (DeviceAttribute(), "attribute odd: unsupported attribute value"),
        (
            DeviceAttribute(version="1.2"),
            "attribute odd: parse semantic version: No Major.Minor.Patch elements found",
        ),
    ],
)
def test_an_attribute_without_a_value_fails_every_selector(attribute, text):
    odd = device(attributes={"odd": attribute})
    for _ in range(2):
        with pytest.raises(SelectorRuntimeError) as caught:
            matches("true", odd)
        assert str(caught.value) == text


def test_an_evaluation_does_not_change_the_device():
    """The reference changes wide amounts in place; the next evaluation must see the old amount."""
    same = device()
    grown = compile_selector(
        'device.capacity["gpu.example.com"].odd.add(1).compareTo(quantity("1.5Gi")) > 0'
    )
    untouched = compile_selector('device.capacity["gpu.example.com"].odd == quantity("1.5Gi")')
    for _ in range(3):
        assert grown.matches(DRIVER, same)
        assert untouched.matches(DRIVER, same)


def test_the_driver_is_the_domain_of_short_names():
    same = device()
    selector = compile_selector('has(device.attributes["a"].model)')
    assert selector.matches("a", same)
    assert not selector.matches("b", same)


def test_cost_is_told_and_limited():
    selected, cost = compile_selector("device.driver == 'x'").matches_with_cost(DRIVER, device())
    assert (selected, cost) == (False, 3)
    assert COST_LIMIT == 1_000_000


def test_compiled_selectors_are_kept_and_errors_are_not_mixed_up():
    assert compile_selector("true") is compile_selector("true")
    assert isinstance(compile_selector("true"), Selector)
    for _ in range(2):
        with pytest.raises(SelectorCompileError):
            compile_selector("nope")


def test_cel_is_not_loaded_by_who_has_no_selector():
    program = (
        "import sys; from mooring import Cluster; from tests.makers import make_node, make_pod;"
        " assert Cluster.of([make_node('n'), make_pod('p')]).simulate().all_placed;"
        " sys.exit(any(name.startswith('mooring.cel') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
