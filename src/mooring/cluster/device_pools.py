"""The devices of a cluster, and the classes that requests refer to, kept ready for the allocator."""

from __future__ import annotations

from mooring.cluster.device_taint_rules import may_select, taints_of, with_rules
from mooring.cluster.listers import Listers
from mooring.devices.allocated import AllocatedDevices
from mooring.devices.allocator import Allocator
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.devices.slice_index import SliceIndex
from mooring.errors import check_kept
from mooring.objects.devices import DeviceClass, DeviceTaintRule, ResourceSlice

#: A slice before and after a change.
SliceChange = tuple[ResourceSlice, ResourceSlice]


class DevicePools:
    """Follows slices, the rules that taint their devices, and classes."""

    def __init__(
        self,
        listers: Listers,
        allocated: AllocatedDevices,
        *,
        features: DeviceFeatures = ALL_FEATURES,
        has_rules: bool = False,
    ) -> None:
        self._listers = listers
        self._allocated = allocated
        self.classes: dict[str, DeviceClass] = {}
        self.slices = SliceIndex(features=features)
        #: How often slices and classes have changed.
        self.revision = 0
        #: Empty unless DRADeviceTaintRules is on.
        self._rules: dict[str, DeviceTaintRule] = {}
        #: Slices before and after rules changed their taints, until someone takes them.
        self._tainted: list[SliceChange] = []
        for device_class in listers.all(DeviceClass):
            self._class_changed(device_class.key)
        for piece in listers.all(ResourceSlice):
            self._slice_changed(piece.key)
        listers.follow(DeviceClass, self._class_changed)
        listers.follow(ResourceSlice, self._slice_changed)
        if has_rules:
            listers.follow(DeviceTaintRule, self._rule_changed)

    def allocator(self) -> Allocator:
        """An allocator for one pod."""
        return Allocator(self._allocated, self.classes, self.slices)

    def take_tainted(self) -> list[SliceChange]:
        """The slices before and after rules changed their taints, since the last call."""
        tainted, self._tainted = self._tainted, []
        return tainted

    def validate(self) -> None:
        """Raise InvariantError unless these are the listed slices, with their taints, and classes."""
        classes = {each.name: each for each in self._listers.all(DeviceClass)}
        check_kept("device classes", self.classes, classes)
        rules = list(self._rules.values())
        slices = {each.name: with_rules(each, rules) for each in self._listers.all(ResourceSlice)}
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
            self.slices.put(with_rules(piece, list(self._rules.values())))

    def _rule_changed(self, key: str) -> None:
        before, after = self._rules.pop(key, None), self._listers.get(DeviceTaintRule, key)
        if after is not None:
            self._rules[key] = after
        rules = [rule for rule in (before, after) if rule is not None]
        for seen in list(self.slices.slices):
            driver, pool = seen.spec.driver, seen.spec.pool.name
            if any(may_select(rule, driver, pool) for rule in rules):
                self._taint(seen)

    def _taint(self, seen: ResourceSlice) -> None:
        published = self._listers.get(ResourceSlice, seen.key)
        if published is None:
            return
        tainted = with_rules(published, list(self._rules.values()))
        if taints_of(tainted) != taints_of(seen):
            self.revision += 1
            self.slices.put(tainted)
            self._tainted.append((seen, tainted))
