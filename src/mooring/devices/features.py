"""Which parts of Dynamic Resource Allocation are on. Each field is a feature gate of the reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceFeatures:
    #: DRAPartitionableDevices. Without it, slices with counters or with nodes for each device are
    #: passed over, and devices that consume counters are never taken.
    partitionable_devices: bool = True
    #: DRADeviceTaints. Without it, taints do not matter.
    device_taints: bool = True
    #: DRAConsumableCapacity. Without it, nothing is shared, amounts are not compared, and a claim that
    #: requests capacity is an error.
    consumable_capacity: bool = True
    #: DRADeviceBindingConditions and DRAResourceClaimDeviceStatus. Without them, devices with binding
    #: conditions are not selected.
    binding_conditions: bool = True
    #: DRAListTypeAttributes. With it, selectors can use attributes that are lists. Constraints cannot.
    list_attributes: bool = False

    @property
    def stable_allocator(self) -> bool:
        """Whether the reference uses its stable allocator, which knows nothing of newer fields.

        It passes over requested capacity and `bindsToNode`, and `distinctAttribute` is an error. The order
        in which it looks at pools and slices is random; here it is the same as always.
        """
        return not self.consumable_capacity and not self.binding_conditions


ALL_FEATURES = DeviceFeatures()
