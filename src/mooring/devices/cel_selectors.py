"""CEL selectors: which devices a claim or a class asks for.

An expression has one variable, `device`, with `driver`, `attributes`, `capacity` and
`allowMultipleAllocations`. Attributes and capacities are in maps by domain, then by name; names without
a domain have that of the driver. A domain that no attribute has is an empty map.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mooring.cel import environment, types
from mooring.cel.errors import CelAbort, CelCompileError, CelError
from mooring.cel.kubernetes import base_environment
from mooring.cel.library import quantities, semvers
from mooring.cel.program import Program
from mooring.cel.values import StringMap, equal, is_list, type_name
from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError
from mooring.objects.devices import Device, DeviceAttribute

#: What one evaluation may cost.
COST_LIMIT = 1_000_000
#: How many devices are kept as values.
_KEPT_DEVICES = 16_384
#: The longest list that `includes` looks into.
_LONGEST_LIST = 48


class Selector:
    """A compiled expression."""

    __slots__ = ("_list_attributes", "_program", "expression")

    def __init__(self, expression: str, *, list_attributes: bool) -> None:
        self.expression = expression
        self._list_attributes = list_attributes
        try:
            self._program = Program(
                expression, _environment(list_attributes), ["device"], COST_LIMIT
            )
        except CelCompileError as error:
            raise SelectorCompileError(str(error)) from None
        found = self._program.result_type
        unknown = ("any", "dyn") if list_attributes else ("any",)
        if found != types.BOOL and found.kind not in unknown:
            raise SelectorCompileError(f"must evaluate to bool or the unknown type, not {found}")

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the device is selected. Raises SelectorRuntimeError."""
        return self.matches_with_cost(driver, device)[0]

    def matches_with_cost(self, driver: str, device: Device) -> tuple[bool, int]:
        """Whether the device is selected, and what it cost to find out. Raises SelectorRuntimeError."""
        value = _value(driver, device, self._list_attributes)
        try:
            selected, cost = self._program.evaluate(value)
        except (CelError, CelAbort) as error:
            raise SelectorRuntimeError(str(error)) from None
        if type(selected) is not bool:
            raise SelectorRuntimeError(_not_a_bool(selected))
        return selected, cost


#: Devices as values, by identity of the device: selectors run on the same devices again and again.
_values: dict[tuple[int, str, bool], tuple[Device, StringMap | None, str]] = {}


def _value(driver: str, device: Device, list_attributes: bool) -> StringMap:
    """The device as a value. Raises SelectorRuntimeError if an attribute of it has none."""
    known = _values.get((id(device), driver, list_attributes))
    if known is None:
        known = _kept_value(driver, device, list_attributes)
    if known[1] is not None:
        return known[1]
    if known[2]:
        raise SelectorRuntimeError(known[2])
    # An evaluation can change wide amounts, and must not change them for the next one.
    return _made_value(driver, device, list_attributes)


def _kept_value(
    driver: str, device: Device, list_attributes: bool
) -> tuple[Device, StringMap | None, str]:
    """Keep the device, so that no other can get its identity, with its value or what is wrong."""
    value, problem = None, ""
    try:
        value = _made_value(driver, device, list_attributes)
    except SelectorRuntimeError as error:
        problem = str(error)
    if any(amount.value.wide for amount in device.capacity.values()):
        value = None
    if len(_values) >= _KEPT_DEVICES:
        _values.clear()
    _values[id(device), driver, list_attributes] = (device, value, problem)
    return device, value, problem


def _made_value(driver: str, device: Device, list_attributes: bool) -> StringMap:
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, identifier = _split(name, driver)
        try:
            attributes.setdefault(domain, {})[identifier] = _attribute_value(
                attribute, list_attributes
            )
        except CelError as error:
            raise SelectorRuntimeError(f"attribute {name}: {error}") from None
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in device.capacity.items():
        domain, identifier = _split(name, driver)
        capacity.setdefault(domain, {})[identifier] = quantities.QuantityValue(amount.value)
    return StringMap(
        {
            "driver": driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": _by_domain(attributes),
            "capacity": _by_domain(capacity),
        }
    )


_NOTHING = StringMap({})


def _by_domain(found: dict[str, dict[str, Any]]) -> StringMap:
    return StringMap(
        {domain: StringMap(inner) for domain, inner in found.items()}, default=_NOTHING
    )


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute_value(attribute: DeviceAttribute, list_attributes: bool) -> Any:
    if list_attributes:
        for values in (attribute.ints, attribute.bools, attribute.strings):
            if values is not None:
                return list(values)
        if attribute.versions is not None:
            return [_version(each) for each in attribute.versions]
    if attribute.integer is not None:
        return attribute.integer
    if attribute.boolean is not None:
        return attribute.boolean
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(attribute.version)
    raise CelError("unsupported attribute value")


def _version(text: str) -> Any:
    try:
        return semvers.parse(text)
    except CelError as error:
        raise CelError(f"parse semantic version: {error}") from None


@lru_cache(maxsize=2)
def _environment(list_attributes: bool) -> environment.Environment:
    domain = types.STRING
    attribute = types.DYN if list_attributes else types.ANY
    device = types.struct("kubernetes.DRADevice")
    fields = {
        "driver": types.STRING,
        "allowMultipleAllocations": types.BOOL,
        "attributes": types.map_of(domain, types.map_of(types.STRING, attribute)),
        "capacity": types.map_of(domain, types.map_of(types.STRING, quantities.TYPE)),
    }
    made = base_environment().extended({"device": device}, {device.name: fields})
    made.add(
        environment.Function(
            "includes",
            [
                environment.Overload(
                    "dra_includes_dyn_dyn",
                    (types.DYN, types.DYN),
                    types.BOOL,
                    _includes,
                    member=True,
                )
            ],
        )
    )
    return made


def _includes(target: Any, item: Any) -> bool:
    """Whether an attribute, which may be a list, has the value."""
    if not is_list(target):
        return equal(target, item) is True
    for position, each in enumerate(target):
        if position >= _LONGEST_LIST:
            raise CelError(
                f"'includes' function cannot be applied to lists longer than {_LONGEST_LIST} values"
            )
        if equal(each, item) is True:
            return True
    return False


def _not_a_bool(value: Any) -> str:
    name = type_name(value)
    reasons = {
        "int": "unsupported type conversion from 'int' to bool",
        "string": "unsupported native conversion from string to 'bool'",
        "double": "type conversion error from Double to 'bool'",
        semvers.TYPE.name: "type conversion error from 'Semver' to 'bool'",
        quantities.TYPE.name: "type conversion error from 'Quantity' to 'bool'",
    }
    reason = reasons.get(name, f"type conversion error from '{name}' to 'bool'")
    return f"CEL result of type {name} could not be converted to bool: {reason}"
