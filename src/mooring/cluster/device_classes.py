"""Which device class serves which extended resource."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from mooring.cluster.listers import Listers
from mooring.errors import InvariantError, check_kept
from mooring.objects.devices import DeviceClass
from mooring.objects.pod import Pod
from mooring.objects.requests import is_extended, is_scalar

#: Every class serves a resource with this prefix and the name of the class.
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

_NEVER = datetime.min.replace(tzinfo=UTC)


class DeviceClassNames:
    """The resource names that device classes serve.

    If two classes have the same `extendedResourceName`, the newer one serves it; among equally new
    ones, the first by name. Three traps of the reference are kept. A class that loses its name when
    it is added serves nothing, not even the resource named after it. Deleting the winner does not
    give the name to the loser. An update that keeps the explicit name leaves the earlier version of
    the class in place.
    """

    def __init__(self, listers: Listers, *, enabled: bool = True) -> None:
        """Without `enabled`, the gate DRAExtendedResource, classes serve nothing."""
        self._listers = listers
        self.enabled = enabled
        #: Resource name → the class that serves it.
        self._class_of: dict[str, DeviceClass] = {}
        #: Every class as it was last seen.
        self._seen: dict[str, DeviceClass] = {}
        if enabled:
            for each in listers.all(DeviceClass):
                self._changed(each.key)
            listers.follow(DeviceClass, self._changed)

    @property
    def any(self) -> bool:
        """Whether a class serves a resource."""
        return bool(self._class_of)

    def __contains__(self, resource: str) -> bool:
        return resource in self._class_of

    def get(self, resource: str) -> DeviceClass | None:
        """The class that serves a resource."""
        return self._class_of.get(resource)

    def serve_any_of(self, requests: Mapping[str, int]) -> bool:
        known = self._class_of
        if not known:
            return False
        return any(amount > 0 and name in known for name, amount in requests.items())

    def serve(self, pod: Pod) -> bool:
        """Whether devices may serve a resource that the pod requests."""
        known = self._class_of
        if not known:
            return False
        return any(
            amount != 0 and name in known and is_counted(name)
            for name, amount in pod.requests.items()
        )

    def validate(self) -> None:
        """Raise InvariantError unless names and classes fit.

        A rebuild may give others: who serves a name that two classes want depends on their past.
        """
        classes = {each.key: each for each in self._listers.all(DeviceClass) if self.enabled}
        check_kept("the device classes that were seen", self._seen, classes)
        for each in classes.values():
            if each.spec.extended_resource_name is None:
                for name in names_of(each):
                    check_kept("the resources of device classes", name in self._class_of, True)
        for name, served_by in self._class_of.items():
            if served_by.name not in classes or name not in names_of(served_by):
                raise InvariantError(f"{name} is kept for a device class that does not serve it")

    def _changed(self, key: str) -> None:
        before = self._seen.pop(key, None)
        after = self._listers.get(DeviceClass, key)
        if after is None:
            if before is not None:
                self._drop(before)
            return
        self._seen[key] = after
        explicit = after.spec.extended_resource_name
        if explicit is not None:
            holder = self._class_of.get(explicit)
            if holder is not None and not _goes_before(after, holder):
                return
        if before is not None:
            self._drop(before)
        for name in filter(is_scalar, names_of(after)):
            self._class_of[name] = after

    def _drop(self, device_class: DeviceClass) -> None:
        for name in names_of(device_class):
            self._class_of.pop(name, None)


def names_of(device_class: DeviceClass) -> tuple[str, ...]:
    """The resource names of this class."""
    implicit = DEVICE_CLASS_PREFIX + device_class.name
    explicit = device_class.spec.extended_resource_name
    return (implicit,) if explicit is None else (implicit, explicit)


def is_counted(resource: str) -> bool:
    """Whether devices can serve the resource: it is extended, or named after a device class."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_PREFIX)


def _goes_before(one: DeviceClass, other: DeviceClass) -> bool:
    ours, theirs = (each.metadata.creation_timestamp or _NEVER for each in (one, other))
    return ours > theirs or (ours == theirs and one.name < other.name)
