"""Which extended resources are served by devices: the names that device classes go by."""

from __future__ import annotations

from mooring.cluster.listers import Listers
from mooring.objects.kinds import DeviceClass

#: Every class serves a resource of this prefix and its own name.
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


class DeviceClassNames:
    """The resource names that some device class serves, found again only when a listed object changed."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._names: frozenset[str] = frozenset()
        self._generation = -1

    def __contains__(self, resource: str) -> bool:
        if self._generation != self._listers.generation:
            self._names = frozenset(
                name for each in self._listers.all(DeviceClass) for name in resource_names(each)
            )
            self._generation = self._listers.generation
        return resource in self._names


def resource_names(device_class: DeviceClass) -> tuple[str, ...]:
    """The resources that stand for a device of this class."""
    implicit = DEVICE_CLASS_PREFIX + device_class.name
    explicit = device_class.spec.extended_resource_name
    return (implicit,) if explicit is None else (implicit, explicit)
