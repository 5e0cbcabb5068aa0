"""Makers of device objects: driver `d`, class `gpu`, pool `p` on node n1, claim `ns/c`, request `r`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.allocator import Allocator
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.devices.refusals import Refusal
from mooring.devices.slice_index import SliceIndex
from mooring.objects.devices import (
    Allocation,
    CapacityRange,
    CapacityRequestPolicy,
    CapacityRequirements,
    CelSelector,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClaimConfig,
    DeviceClass,
    DeviceClassConfig,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DevicesAllocation,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueConfig,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node
from mooring.objects.quantity import parse_quantity
from mooring.objects.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement

DRIVER_IS_D = 'device.driver == "d"'

Value = int | bool | str | None


def make_attribute(value: Value) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(boolean=value)
    if isinstance(value, int):
        return DeviceAttribute(integer=value)
    return DeviceAttribute(string=value)


def make_device(
    name: str,
    *,
    attributes: Mapping[str, Value] | None = None,
    capacity: Mapping[str, str | DeviceCapacity] | None = None,
    counters: Mapping[str, str] | None = None,
    multiple: bool | None = None,
    taints: Iterable[DeviceTaint] = (),
    conditions: Iterable[str] = (),
    failure_conditions: Iterable[str] = (),
    node: str | None = None,
    binds_to_node: bool | None = None,
) -> Device:
    """`counters` are those of the set `cs`."""
    return Device(
        name=name,
        attributes={key: make_attribute(value) for key, value in (attributes or {}).items()},
        capacity={
            key: DeviceCapacity(value=parse_quantity(value)) if isinstance(value, str) else value
            for key, value in (capacity or {}).items()
        },
        consumes_counters=[CounterConsumption(counter_set="cs", counters=make_counters(counters))]
        if counters
        else [],
        allow_multiple_allocations=multiple,
        taints=list(taints),
        binding_conditions=list(conditions),
        binding_failure_conditions=list(failure_conditions),
        node_name=node,
        binds_to_node=binds_to_node,
    )


def make_counters(counters: Mapping[str, str]) -> dict[str, Counter]:
    return {name: Counter(value=parse_quantity(value)) for name, value in counters.items()}


def make_capacity(
    value: str,
    *,
    default: str | None = None,
    least: str | None = None,
    most: str | None = None,
    step: str | None = None,
    values: Sequence[str] = (),
) -> DeviceCapacity:
    def read(text: str | None):
        return None if text is None else parse_quantity(text)

    valid = CapacityRange(min=read(least), max=read(most), step=read(step))
    return DeviceCapacity(
        value=parse_quantity(value),
        request_policy=CapacityRequestPolicy(
            default=read(default),
            valid_values=[parse_quantity(each) for each in values],
            valid_range=valid if least or most or step else None,
        ),
    )


def make_slice(
    *devices: Device | str,
    name: str = "s",
    driver: str = "d",
    pool: str = "p",
    generation: int = 1,
    slices: int = 1,
    node: str | None = "n1",
    all_nodes: bool | None = None,
    selector: NodeSelector | None = None,
    per_device: bool | None = None,
    counters: Mapping[str, str] | None = None,
) -> ResourceSlice:
    """`counters` make a set `cs`."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=slices),
            node_name=None if all_nodes or selector or per_device else node,
            all_nodes=all_nodes,
            node_selector=selector,
            per_device_node_selection=per_device,
            devices=[make_device(each) if isinstance(each, str) else each for each in devices],
            shared_counters=[CounterSet(name="cs", counters=make_counters(counters))]
            if counters
            else [],
        ),
    )


def make_node_selector(key: str, *values: str, terms: int = 1) -> NodeSelector:
    line = SelectorRequirement(key=key, operator="In", values=list(values))
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[line])] * terms)


def make_selectors(*expressions: str) -> list[DeviceSelector]:
    return [DeviceSelector(cel=CelSelector(expression=each)) for each in expressions]


def make_class(name: str = "gpu", *expressions: str, configs: Sequence[str] = ()) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(
            selectors=make_selectors(*(expressions or (DRIVER_IS_D,))),
            config=[DeviceClassConfig(opaque=OpaqueConfig(driver=each)) for each in configs],
        ),
    )


def make_request(
    name: str = "r",
    *selectors: str,
    device_class: str = "gpu",
    count: int = 1,
    mode: str = "ExactCount",
    admin: bool | None = None,
    tolerations: Sequence[DeviceToleration] = (),
    capacity: Mapping[str, str] | None = None,
) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=device_class,
            selectors=make_selectors(*selectors),
            allocation_mode=mode,
            count=count,
            admin_access=admin,
            tolerations=list(tolerations),
            capacity=_requirements(capacity),
        ),
    )


def make_subrequest(
    name: str,
    *selectors: str,
    device_class: str = "gpu",
    count: int = 1,
    mode: str = "ExactCount",
    capacity: Mapping[str, str] | None = None,
) -> DeviceSubRequest:
    return DeviceSubRequest(
        name=name,
        device_class_name=device_class,
        selectors=make_selectors(*selectors),
        allocation_mode=mode,
        count=count,
        capacity=_requirements(capacity),
    )


def _requirements(capacity: Mapping[str, str] | None) -> CapacityRequirements | None:
    if capacity is None:
        return None
    return CapacityRequirements(
        requests={name: parse_quantity(value) for name, value in capacity.items()}
    )


def make_claim(
    *requests: DeviceRequest,
    name: str = "c",
    constraints: Sequence[DeviceConstraint] = (),
    config: Sequence[DeviceClaimConfig] = (),
    holds: Iterable[DeviceAllocationResult] | None = None,
) -> ResourceClaim:
    """`holds` are the results of an allocated claim."""
    allocation = None
    if holds is not None:
        allocation = Allocation(devices=DevicesAllocation(results=list(holds)))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="ns"),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=list(requests), constraints=list(constraints), config=list(config)
            )
        ),
        status=ResourceClaimStatus(allocation=allocation),
    )


def make_held(
    device: str,
    *,
    driver: str = "d",
    pool: str = "p",
    admin: bool | None = None,
    share: str | None = None,
    consumed: Mapping[str, str] | None = None,
) -> DeviceAllocationResult:
    return DeviceAllocationResult(
        request="r",
        driver=driver,
        pool=pool,
        device=device,
        admin_access=admin,
        share_id=share,
        consumed_capacity={name: parse_quantity(value) for name, value in (consumed or {}).items()},
    )


def make_allocator(
    slices: Sequence[ResourceSlice],
    allocated: Iterable[ResourceClaim] = (),
    classes: Iterable[DeviceClass] | None = None,
    features: DeviceFeatures = ALL_FEATURES,
) -> Allocator:
    """Shares are numbered `share-1`, `share-2`, …"""
    numbers = count(1)
    return Allocator(
        AllocatedDevices(allocated, shares=features.consumable_capacity),
        {each.name: each for each in (classes if classes is not None else [make_class()])},
        SliceIndex(slices, features),
        new_share_id=lambda: f"share-{next(numbers)}",
    )


def results(allocations: list[Allocation] | None) -> list[str] | None:
    """`request=pool/device` of all claims, in order; None if there is no solution."""
    if allocations is None:
        return None
    return [
        f"{each.request}={each.pool}/{each.device}"
        for allocation in allocations
        for each in allocation.devices.results
    ]


def find(
    slices: Sequence[ResourceSlice],
    *claims: ResourceClaim,
    node: Node,
    allocated: Iterable[ResourceClaim] = (),
    classes: Iterable[DeviceClass] | None = None,
    refusals: list[Refusal] | None = None,
    features: DeviceFeatures = ALL_FEATURES,
) -> list[str] | None:
    allocator = make_allocator(slices, allocated, classes, features)
    return results(allocator.allocate(node, claims, refusals=refusals))
