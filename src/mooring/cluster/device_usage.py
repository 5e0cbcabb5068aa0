"""Which devices there are, of which classes, on which nodes, and who holds them: for reports and pages.

A device is in one of four states:

    free       a claim can have it
    shared     claims have shares of it, and some of every capacity is left
    in use     a claim has it for itself, or shares leave nothing of a capacity
    blocked    no claim has it, but devices in use took the counters that it needs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from mooring.cluster.cache import Cluster
from mooring.devices.allocated import DeviceID, PoolUse
from mooring.devices.pools import Pool, PoolDevice
from mooring.devices.selection import Selection, SelectorError
from mooring.errors import MooringError
from mooring.objects.devices import DeviceAllocationResult, ResourceClaim
from mooring.objects.resource_claims import is_pod_group

State = Literal["free", "shared", "in use", "blocked"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that has a device, or a share of it."""

    #: `namespace/name`.
    claim: str
    #: `request` or `request/subrequest` of the claim.
    request: str
    #: The pods that the claim is reserved for, as `namespace/name`.
    pods: tuple[str, ...]
    #: Capacity → amount, if it is a share.
    consumed: dict[str, str]
    is_share: bool


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device."""

    id: DeviceID
    #: "" if the device is not of one node alone.
    node: str
    #: The classes that select it, sorted.
    classes: tuple[str, ...]
    state: State
    #: Whether several claims can have a share.
    can_be_shared: bool
    holders: tuple[Holder, ...]
    #: Capacity → (consumed, all of it), in units of 10**-9, for a device that can be shared.
    capacity: dict[str, tuple[int, int]]


@dataclass(slots=True)
class ClassUse:
    """The devices of one class, on one node or on all."""

    name: str
    states: dict[State, int] = field(default_factory=dict)
    #: Capacity → [consumed, all of it], in units of 10**-9, over the devices that can be shared.
    capacity: dict[str, list[int]] = field(default_factory=dict)
    #: Devices that a claim can have only for itself, and how many are in use.
    whole: int = 0
    whole_in_use: int = 0

    @property
    def total(self) -> int:
        return sum(self.states.values())

    def count(self, state: State) -> int:
        return self.states.get(state, 0)

    def add(self, device: DeviceUse) -> None:
        self.states[device.state] = self.count(device.state) + 1
        if not device.can_be_shared:
            self.whole += 1
            self.whole_in_use += device.state == "in use"
        for name, (consumed, whole) in device.capacity.items():
            sums = self.capacity.setdefault(name, [0, 0])
            sums[0] += consumed
            sums[1] += whole


class DeviceUsage:
    """All devices of usable pools at one moment."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups = cluster.pod_groups
        self._classes: dict[int, tuple[str, ...]] = {}
        self._selections = {
            name: cluster.device_pools.slices.selections.of(
                tuple(each.cel.expression for each in found.spec.selectors if each.cel), (), {}
            )
            for name, found in sorted(cluster.device_pools.classes.items())
        }
        self._holders = self._find_holders()
        self.devices: tuple[DeviceUse, ...] = tuple(self._look())

    def by_class(self) -> dict[str, ClassUse]:
        """The classes that have devices."""
        return _by_class(self.devices)

    def by_node_and_class(self) -> dict[str, dict[str, ClassUse]]:
        """Node → class → its devices there; devices of several nodes are under ""."""
        nodes: dict[str, list[DeviceUse]] = {}
        for device in self.devices:
            nodes.setdefault(device.node, []).append(device)
        return {node: _by_class(devices) for node, devices in nodes.items()}

    def held_by_pods(self, released: Iterable[ResourceClaim] = ()) -> dict[str, dict[str, int]]:
        """Pod → class → how many whole devices its claims have; a shared claim counts for its first pod.

        `released` are claims as they were before they gave their devices back: their pods had them.
        """
        held: dict[str, dict[str, int]] = {}
        for device in self.devices:
            for holder in device.holders[:1]:
                _count(device, holder, held)
        by_id = {device.id: device for device in self.devices}
        now = {(each.claim, each.pods) for device in self.devices for each in device.holders}
        for claim in released:
            for result, id_ in _held(claim):
                holder, device_then = self._holder(claim, result), by_id.get(id_)
                if device_then is not None and (holder.claim, holder.pods) not in now:
                    _count(device_then, holder, held)
        return held

    def _find_holders(self) -> dict[DeviceID, list[Holder]]:
        found: dict[DeviceID, list[Holder]] = {}
        for claim in self._cluster.claims.all():
            for result, device in _held(claim):
                found.setdefault(device, []).append(self._holder(claim, result))
        return found

    def _look(self) -> Iterator[DeviceUse]:
        if not len(self._cluster.device_pools.slices):
            return
        seen: set[DeviceID] = set()
        for info in self._cluster.snapshot():
            if info.node is None:
                continue
            try:
                pools = self._cluster.device_pools.slices.pools_on(info.node).usable
            except MooringError:
                # A slice with a malformed node selector: no device can be had here.
                continue
            for pool in pools:
                use = self._cluster.claims.devices.in_pool(pool.id)
                for device in pool.devices:
                    if device.id not in seen and _is_for(device, info.name):
                        seen.add(device.id)
                        yield self._use(pool, use, device)

    def _use(self, pool: Pool, use: PoolUse, device: PoolDevice) -> DeviceUse:
        consumed = use.consumed.get(device.name, {})
        capacity = {
            name: (consumed.get(name, 0), offered.value.nanos)
            for name, offered in device.device.capacity.items()
            if device.multiple
        }
        return DeviceUse(
            id=device.id,
            node=_node_of(device),
            classes=self._classes_of(device),
            state=self._state(pool, use, device, capacity),
            can_be_shared=device.multiple,
            holders=tuple(self._holders.get(device.id, ())),
            capacity=capacity,
        )

    def _state(
        self,
        pool: Pool,
        use: PoolUse,
        device: PoolDevice,
        capacity: dict[str, tuple[int, int]],
    ) -> State:
        if device.name in use.dedicated:
            return "in use"
        if device.name in use.shares:
            full = any(consumed >= whole > 0 for consumed, whole in capacity.values())
            return "in use" if full else "shared"
        left = pool.available(self._cluster.claims.devices) if device.counters else {}
        lacks = any(amount > left.get(key, 0) for key, amount in device.counters)
        return "blocked" if lacks else "free"

    def _classes_of(self, device: PoolDevice) -> tuple[str, ...]:
        known = self._classes.get(device.content)
        if known is None:
            known = self._classes[device.content] = tuple(
                name
                for name, selection in self._selections.items()
                if _selects(selection, name, device)
            )
        return known

    def _holder(self, claim: ResourceClaim, result: DeviceAllocationResult) -> Holder:
        return Holder(
            claim=claim.key,
            request=result.request,
            pods=tuple(self._pods_of(claim)),
            consumed={name: amount.canonical for name, amount in result.consumed_capacity.items()},
            is_share=result.share_id is not None,
        )

    def _pods_of(self, claim: ResourceClaim) -> Iterator[str]:
        """The pods that a claim is reserved for; of a group, those that have a node."""
        for user in claim.status.reserved_for:
            key = f"{claim.namespace}/{user.name}"
            if user.resource == "pods":
                yield key
            elif is_pod_group(user) and self._groups is not None and key in self._groups:
                for pod in self._groups.get(key).scheduled():
                    yield pod.key


def _held(claim: ResourceClaim) -> Iterator[tuple[DeviceAllocationResult, DeviceID]]:
    """The devices of the claim. With admin access it has none for itself."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield result, DeviceID(result.driver, result.pool, result.device)


def _count(device: DeviceUse, holder: Holder, held: dict[str, dict[str, int]]) -> None:
    if holder.pods and not device.can_be_shared:
        counts = held.setdefault(holder.pods[0], {})
        for name in device.classes:
            counts[name] = counts.get(name, 0) + 1


def _by_class(devices: tuple[DeviceUse, ...] | list[DeviceUse]) -> dict[str, ClassUse]:
    found: dict[str, ClassUse] = {}
    for device in devices:
        for name in device.classes:
            found.setdefault(name, ClassUse(name)).add(device)
    return dict(sorted(found.items()))


def _is_for(device: PoolDevice, node: str) -> bool:
    """Whether the device can be used from the node, if it names one."""
    named = _node_of(device)
    return not named or named == node


def _node_of(device: PoolDevice) -> str:
    spec = device.slice.spec
    told = device.device.node_name if spec.per_device_node_selection else spec.node_name
    return told or ""


def _selects(selection: Selection, name: str, device: PoolDevice) -> bool:
    try:
        return not selection.judge(device, name, "").by_selector
    except SelectorError:
        return False
