"""Devices (Dynamic Resource Allocation): claims, templates, slices and classes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from mooring.objects.meta import KubeObject, ObjectMeta, Part, ResourceList
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.selectors import NodeSelector

#: A claim with this finalizer is not removed while it is allocated.
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"


class CelSelector(Part, frozen=True):
    expression: str = ""


class DeviceSelector(Part, frozen=True):
    cel: CelSelector | None = None


class OpaqueConfig(Part, frozen=True):
    driver: str = ""
    #: Whatever the driver understands. It is passed on as it is.
    parameters: Any = None


class DeviceClassConfig(Part, frozen=True):
    opaque: OpaqueConfig | None = None


class DeviceClassSpec(Part, frozen=True):
    selectors: list[DeviceSelector] = []
    config: list[DeviceClassConfig] = []
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaint(Part, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class DeviceToleration(Part, frozen=True):
    key: str = ""
    #: `Exists` or `Equal`; empty means `Equal`.
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Part, frozen=True):
    requests: ResourceList = {}


class DeviceSubRequest(Part, frozen=True):
    """One of the alternatives in `firstAvailable`."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    #: `ExactCount` or `All`.
    allocation_mode: str = ""
    count: int = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Part, frozen=True):
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceRequest(Part, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(Part, frozen=True):
    #: Names of requests, `request` or `request/subrequest`; empty means all.
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfig(Part, frozen=True):
    requests: list[str] = []
    opaque: OpaqueConfig | None = None


class DeviceClaim(Part, frozen=True):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[DeviceClaimConfig] = []


class ResourceClaimSpec(Part, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceAllocationResult(Part, frozen=True):
    """One device that a request was given."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: ResourceList = {}


class DeviceAllocationConfig(Part, frozen=True):
    #: `FromClass` or `FromClaim`.
    source: str = ""
    requests: list[str] = []
    opaque: OpaqueConfig | None = None


class DevicesAllocation(Part, frozen=True):
    results: list[DeviceAllocationResult] = []
    config: list[DeviceAllocationConfig] = []


class Allocation(Part, frozen=True):
    devices: DevicesAllocation = DevicesAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ConsumerReference(Part, frozen=True):
    """Who uses a claim: a pod, or a pod group."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class AllocatedDeviceStatus(Part, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: list[DeviceCondition] = []
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(Part, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[ConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class ResourceClaim(KubeObject, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceAttribute(Part, frozen=True):
    """A value; exactly one field is set. The plural fields are lists, which 1.36 refuses."""

    integer: int | None = msgspec.field(name="int", default=None)
    boolean: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: list[int] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class CapacityRange(Part, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Part, frozen=True):
    default: Quantity | None = None
    valid_values: list[Quantity] = []
    valid_range: CapacityRange | None = None


class DeviceCapacity(Part, frozen=True):
    value: Quantity = ZERO
    request_policy: CapacityRequestPolicy | None = None


class Counter(Part, frozen=True):
    value: Quantity = ZERO


class CounterConsumption(Part, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class CounterSet(Part, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class Device(Part, frozen=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[CounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None


class ResourcePool(Part, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Part, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(KubeObject, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Part, frozen=True):
    """All fields that are set must match."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Part, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
