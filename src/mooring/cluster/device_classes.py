"""Which extended resources device classes serve."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.cluster.listers import Listers
from mooring.errors import check_kept
from mooring.objects.devices import DeviceClass
from mooring.objects.requests import is_scalar

#: Every class serves a resource with this prefix and the name of the class.
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


class DeviceClassNames:
    """The resource names that device classes serve, rebuilt when a listed object changed."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._names: frozenset[str] = frozenset()
        self._generation = -1

    def __contains__(self, resource: str) -> bool:
        if self._generation != self._listers.generation:
            self._names = self._gathered()
            self._generation = self._listers.generation
        return resource in self._names

    def validate(self) -> None:
        """Raise InvariantError unless the names are those of the current device classes."""
        if self._generation == self._listers.generation:
            check_kept("the resources of device classes", self._names, self._gathered())

    def _gathered(self) -> frozenset[str]:
        names = (name for each in self._listers.all(DeviceClass) for name in names_of(each))
        return frozenset(filter(is_scalar, names))

    def serve_any_of(self, requests: Mapping[str, int]) -> bool:
        return any(amount > 0 and name in self for name, amount in requests.items())


def names_of(device_class: DeviceClass) -> tuple[str, ...]:
    """The resource names of this class."""
    implicit = DEVICE_CLASS_PREFIX + device_class.name
    explicit = device_class.spec.extended_resource_name
    return (implicit,) if explicit is None else (implicit, explicit)
