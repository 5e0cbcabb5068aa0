"""Constraints of a claim on the attributes of all its devices together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mooring.devices.pools import PoolDevice
from mooring.objects.devices import DeviceAttribute, DeviceConstraint

#: A value with its type; None is a value of no known type, which equals nothing.
Value = tuple[str, object] | None


class AttributeConstraint:
    """What both kinds of constraints have in common: the requests and the attribute."""

    def __init__(self, requests: Sequence[str], attribute: str) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)
        #: How many devices were added.
        self._devices = 0

    def applies(self, request: str, full_name: str) -> bool:
        """Whether it covers a request, or a subrequest by its full name or that of its request."""
        return not self._requests or request in self._requests or full_name in self._requests

    def add(self, request: str, full_name: str, candidate: PoolDevice) -> bool:
        """Count the device in, unless it violates the constraint."""
        if not self.applies(request, full_name):
            return True
        attribute = look_up(candidate, self.attribute)
        if attribute is None:
            return False
        value = _value(attribute)
        if self._devices and not self._accepts(value):
            return False
        self._remember(request, value)
        self._devices += 1
        return True

    def remove(self, request: str, full_name: str) -> None:
        """Take back the last successful `add` with these names."""
        if self.applies(request, full_name):
            self._forget(request)
            self._devices -= 1

    @property
    def state(self) -> Hashable:
        """All that further answers depend on."""
        raise NotImplementedError

    def _accepts(self, value: Value) -> bool:
        raise NotImplementedError

    def _remember(self, request: str, value: Value) -> None:
        raise NotImplementedError

    def _forget(self, request: str) -> None:
        raise NotImplementedError


class MatchAttribute(AttributeConstraint):
    """All devices have the same value."""

    def __init__(self, requests: Sequence[str], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._value: Value = None

    def __str__(self) -> str:
        return f"matchAttribute {self.attribute}"

    @property
    def state(self) -> Hashable:
        return self._devices, self._value

    def _accepts(self, value: Value) -> bool:
        return value is not None and value == self._value

    def _remember(self, request: str, value: Value) -> None:
        # Later values are equal to the first.
        if not self._devices:
            self._value = value

    def _forget(self, request: str) -> None:
        if self._devices == 1:
            self._value = None


class DistinctAttribute(AttributeConstraint):
    """No two devices have the same value.

    The reference remembers one value for each request, so with a count above 1 only the latest device
    of the request is compared; and it forgets the request's value when it takes a device back, instead
    of restoring the one before. Both are kept, since they decide which devices a claim gets.
    """

    def __init__(self, requests: Sequence[str], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: dict[str, Value] = {}

    def __str__(self) -> str:
        return f"distinctAttribute {self.attribute}"

    @property
    def state(self) -> Hashable:
        return self._devices, frozenset(self._values.items())

    def _accepts(self, value: Value) -> bool:
        if value is None:
            return not self._values
        return all(value != each for each in self._values.values())

    def _remember(self, request: str, value: Value) -> None:
        self._values[request] = value

    def _forget(self, request: str) -> None:
        self._values.pop(request, None)


def make_constraint(spec: DeviceConstraint, *, distinct: bool = True) -> AttributeConstraint | None:
    """None if it is of a kind that is not known. `distinct` says whether `distinctAttribute` is."""
    if spec.match_attribute is not None:
        return MatchAttribute(spec.requests, spec.match_attribute)
    if distinct and spec.distinct_attribute is not None:
        return DistinctAttribute(spec.requests, spec.distinct_attribute)
    return None


def look_up(candidate: PoolDevice, name: str) -> DeviceAttribute | None:
    """By the full name, or without the domain if that is the driver."""
    attributes = candidate.device.attributes
    attribute = attributes.get(name)
    if attribute is None:
        domain, slash, bare = name.partition("/")
        if slash and domain == candidate.id.driver:
            attribute = attributes.get(bare)
    return attribute


def value_of(candidate: PoolDevice, name: str) -> Value:
    """The value of an attribute; None also if the device does not have it."""
    attribute = look_up(candidate, name)
    return None if attribute is None else _value(attribute)


def _value(attribute: DeviceAttribute) -> Value:
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.integer is not None:
        return "int", attribute.integer
    if attribute.boolean is not None:
        return "bool", attribute.boolean
    if attribute.version is not None:
        return "version", attribute.version
    return None
