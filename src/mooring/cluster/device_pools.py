"""The devices of a cluster, and the classes that requests refer to, kept ready for the allocator."""

from __future__ import annotations

from mooring.cluster.listers import Listers
from mooring.devices.allocated import AllocatedDevices
from mooring.devices.allocator import Allocator
from mooring.devices.slice_index import SliceIndex
from mooring.errors import check_kept
from mooring.objects.devices import DeviceClass, ResourceSlice


class DevicePools:
    """Follows slices and classes."""

    def __init__(self, listers: Listers, allocated: AllocatedDevices) -> None:
        self._listers = listers
        self._allocated = allocated
        self.classes: dict[str, DeviceClass] = {}
        self.slices = SliceIndex()
        #: How often slices and classes have changed.
        self.revision = 0
        for device_class in listers.all(DeviceClass):
            self._class_changed(device_class.key)
        for piece in listers.all(ResourceSlice):
            self._slice_changed(piece.key)
        listers.follow(DeviceClass, self._class_changed)
        listers.follow(ResourceSlice, self._slice_changed)

    def allocator(self) -> Allocator:
        """An allocator for one pod."""
        return Allocator(self._allocated, self.classes, self.slices)

    def validate(self) -> None:
        """Raise InvariantError unless these are the listed slices and classes."""
        classes = {each.name: each for each in self._listers.all(DeviceClass)}
        check_kept("device classes", self.classes, classes)
        slices = {each.name: each for each in self._listers.all(ResourceSlice)}
        check_kept("resource slices", {each.name: each for each in self.slices.slices}, slices)
        self.slices.validate()

    def _class_changed(self, key: str) -> None:
        self.revision += 1
        device_class = self._listers.get(DeviceClass, key)
        if device_class is None:
            self.classes.pop(key, None)
        else:
            self.classes[key] = device_class

    def _slice_changed(self, key: str) -> None:
        self.revision += 1
        piece = self._listers.get(ResourceSlice, key)
        if piece is None:
            self.slices.remove(key)
        else:
            self.slices.put(piece)
