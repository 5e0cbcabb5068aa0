"""What might give the claims of a pending pod their devices: proposals for `counterfactuals` to try.

A proposal is a ladder: changes of one kind, the smallest first. If one of them helps, so does every larger
one. What is proposed follows from the refusals of the allocator, so it is worth trying.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.devices.allocated import AllocatedDevices, DeviceID, PoolID
from mooring.devices.allocator import Allocator
from mooring.devices.claim_requests import Request, prepare
from mooring.devices.pools import PoolDevice
from mooring.devices.refusals import DeviceRefusal, Refusal
from mooring.devices.step_limit import after_steps_of
from mooring.errors import MooringError
from mooring.explain.device_changes import (
    AddDevices,
    DropConstraint,
    DropSelector,
    LowerCapacity,
    LowerCount,
    LowerQuantity,
    ReleaseClaims,
    RequestOfClaim,
    TolerateDevices,
)
from mooring.explain.devices import LONGEST_SEARCH_S, claims_to_allocate, needs_devices
from mooring.framework.changes import Change
from mooring.objects.devices import (
    Device,
    DeviceConstraint,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from mooring.objects.pod import Pod
from mooring.objects.quantity import BinaryQuantity, Quantity, parse_quantity
from mooring.objects.resource_claims import ClaimProblem, claim_name
from mooring.plugins.dynamic_resources.pod_claims import claims_of

#: On how many nodes devices are looked at, and how many proposals of one kind are made.
_MOST_NODES = 100
_MOST_OF_A_KIND = 3
#: Reasons that go away when other claims give their devices back.
_BY_USERS = ("in use", "capacity", "counters")

#: `….memory.compareTo(quantity("80Gi")) >= 0` and the like: the capacity and the quantity.
_AT_LEAST = re.compile(
    r"""([A-Za-z_][\w-]*)(?:["']\])?\s*\.\s*"""
    r"""(?:compareTo\(\s*quantity\("([^"]+)"\)\s*\)\s*>=?\s*0|isGreaterThan\(\s*quantity\("([^"]+)"\))"""
)

Ladder = Sequence[Change]


def device_proposals(cluster: Cluster, pod: Pod) -> Iterator[Ladder]:
    """Nothing if the pod needs no devices, or one of its claims cannot be used at all."""
    if not needs_devices(cluster, pod):
        return
    try:
        claims = claims_of(pod, cluster.claims)
    except ClaimProblem:
        return
    proposals = _Proposals(cluster, pod, claims)
    yield from proposals.of_requests()
    yield from proposals.of_constraints()
    yield from proposals.of_users()
    yield from proposals.of_new_devices()


@dataclass(slots=True)
class _Asked:
    """One request of a claim that has no devices yet, and what became of it."""

    where: RequestOfClaim
    request: ExactDeviceRequest | DeviceSubRequest
    refused: list[_Refused]

    def refused_by(self, *reasons: str) -> list[_Refused]:
        return [each for each in self.refused if each.reason in reasons]


class _Refused(NamedTuple):
    """A device that a request did not get."""

    node: str
    device: PoolDevice
    reason: str
    detail: str


class _Model(NamedTuple):
    """A device to copy on a node, with the capacities that a copy must have: (name, quantity)."""

    node: str
    device: PoolDevice
    raised: tuple[tuple[str, str], ...] = ()


class _Proposals:
    def __init__(self, cluster: Cluster, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        self._cluster = cluster
        self._pod = pod
        self._to_allocate = [each for each in claims if each.status.allocation is None]
        self._allocated = [each for each in claims if each.status.allocation is not None]
        self._nodes = {i.name: i for i in cluster.snapshot() if i.node is not None}
        #: The nodes where devices are refused because others use them.
        self._used: dict[str, NodeInfo] = {}
        pools = cluster.device_pools
        prepared = prepare(self._to_allocate, pools.classes, pools.slices.selections)
        #: (Claim, request or request/subrequest) → the request as the allocator reads it.
        self._options: dict[tuple[str, str], Request] = {
            (option.claim, option.full_name): option
            for claim in prepared.claims
            for alternatives in claim.requests
            for option in alternatives.options
        }
        self._asked = self._look()

    def _look(self) -> list[_Asked]:
        templates = _templates(self._pod)
        asked = {
            (claim.key, name): _Asked(
                RequestOfClaim(claim.key, templates.get(claim.name, ""), name), request, []
            )
            for claim in self._to_allocate
            for name, request in _requests(claim)
        }
        for info in list(self._nodes.values())[:_MOST_NODES]:
            refusals = dict.fromkeys(self._refusals(info))
            devices = self._devices_on(info) if refusals else {}
            for each in refusals:
                if not isinstance(each, DeviceRefusal) or each.device not in devices:
                    continue
                if each.reason in _BY_USERS:
                    self._used[info.name] = info
                if (each.claim, each.request) in asked:
                    refused = _Refused(info.name, devices[each.device], each.reason, each.detail)
                    asked[each.claim, each.request].refused.append(refused)
        return list(asked.values())

    def _devices_on(self, info: NodeInfo) -> dict[DeviceID, PoolDevice]:
        assert info.node is not None
        pools = self._cluster.device_pools.slices.pools_on(info.node).usable
        return {device.id: device for pool in pools for device in pool.devices}

    def _refusals(self, info: NodeInfo) -> list[Refusal]:
        refusals: list[Refusal] = []
        self._allocates(self._cluster.device_pools.allocator(), info, refusals)
        return refusals

    def _allocates(
        self, allocator: Allocator, info: NodeInfo, refusals: list[Refusal] | None = None
    ) -> bool:
        """Whether the pod gets its devices on a node."""
        assert info.node is not None
        claims = claims_to_allocate(self._cluster, self._pod, info)
        # The verdict of the node says what is wrong.
        with suppress(MooringError):
            expired = after_steps_of(LONGEST_SEARCH_S)
            return bool(claims) and bool(
                allocator.allocate(info.node, claims, expired, refusals=refusals)
            )
        return False

    # Changes of the claims

    def of_requests(self) -> Iterator[Ladder]:
        for asked in self._asked:
            yield from self._tolerations(asked)
            yield from self._selectors(asked)
            yield from self._amounts(asked)
            request = asked.request
            if request.allocation_mode == "ExactCount" and request.count > 1:
                yield [
                    LowerCount(asked.where, request.count, fewer)
                    for fewer in range(request.count - 1, 0, -1)
                ]

    def _tolerations(self, asked: _Asked) -> Iterator[Ladder]:
        taints = sorted({each.detail for each in asked.refused_by("taint")})
        for taint in taints[:_MOST_OF_A_KIND]:
            yield [TolerateDevices(asked.where, (taint,))]
        if len(taints) > 1:
            yield [TolerateDevices(asked.where, tuple(taints))]

    def _selectors(self, asked: _Asked) -> Iterator[Ladder]:
        """Ask for no more than some device has; at last, drop the selector."""
        devices = [each.device.device for each in asked.refused_by("selector")]
        for number, selector in enumerate(asked.request.selectors if devices else ()):
            expression = selector.cel.expression if selector.cel is not None else ""
            ladder: list[Change] = []
            for capacity, old in _lower_bounds(expression):
                offers = (d.capacity[capacity].value for d in devices if capacity in d.capacity)
                smaller = _smaller(offers, old)
                ladder += [
                    LowerQuantity(asked.where, number, capacity, old, each.canonical)
                    for each in smaller
                ]
            yield [*ladder, DropSelector(asked.where, number, expression)]

    def _amounts(self, asked: _Asked) -> Iterator[Ladder]:
        """Ask for no more of a capacity than a device has left."""
        amounts = asked.request.capacity.requests if asked.request.capacity is not None else {}
        refused = asked.refused_by("capacity")
        for capacity, amount in amounts.items() if refused else ():
            left = (self._left(each.device, capacity) for each in refused)
            smaller = _smaller(filter(None, left), amount.canonical)
            if smaller:
                yield [
                    LowerCapacity(asked.where, capacity, amount.canonical, each.canonical)
                    for each in smaller
                ]

    def _left(self, device: PoolDevice, capacity: str) -> Quantity | None:
        """What shares leave of a capacity of the device."""
        if capacity not in device.device.capacity:
            return None
        whole = device.device.capacity[capacity].value
        use = self._cluster.claims.devices.in_pool(PoolID(device.id.driver, device.id.pool))
        used = use.consumed.get(device.name, {}).get(capacity, 0)
        left, rest = divmod(whole.nanos - used, 10**9)
        kind = BinaryQuantity if isinstance(whole, BinaryQuantity) else Quantity
        return kind(left) if not rest and left > 0 else None

    def of_constraints(self) -> Iterator[Ladder]:
        templates = _templates(self._pod)
        for claim in self._to_allocate:
            where = RequestOfClaim(claim.key, templates.get(claim.name, ""))
            for number, constraint in enumerate(claim.spec.devices.constraints):
                yield [DropConstraint(where, number, _told(constraint))]

    # Devices that others use

    def of_users(self) -> Iterator[Ladder]:
        """The claims whose release would be enough, for the nodes where fewest pods would have to go."""
        for claim in self._allocated:
            if release := self._release([claim]):
                yield [release]
        found = {
            release.claims: release
            for info in self._used.values()
            if (release := self._release_on(info)) is not None
        }
        smallest = sorted(found.values(), key=lambda each: (each.size, each.claims))
        yield from ([each] for each in smallest[:_MOST_OF_A_KIND])

    def _release_on(self, info: NodeInfo) -> ReleaseClaims | None:
        """Release all claims of the node's pools, then give each its devices back if the pod still fits."""
        holders = self._holders(info)
        allocated = self._cluster.claims.devices.copy()
        for claim in holders:
            allocated.remove(claim.key)
        if not holders or not self._suffices(allocated, info):
            return None
        released = []
        for claim in holders:
            allocated.add(claim)
            if not self._suffices(allocated, info):
                allocated.remove(claim.key)
                released.append(claim)
        return self._release(released)

    def _holders(self, info: NodeInfo) -> list[ResourceClaim]:
        """The claims with devices that the node can use; those of important pods first."""
        assert info.node is not None
        pools = {pool.id for pool in self._cluster.device_pools.slices.pools_on(info.node).pools}
        held = [
            claim
            for claim in self._cluster.claims.all()
            if claim.status.allocation is not None
            and any(
                PoolID(result.driver, result.pool) in pools
                for result in claim.status.allocation.devices.results
            )
        ]
        return sorted(held, key=lambda claim: (-self._priority(claim), claim.key))

    def _priority(self, claim: ResourceClaim) -> int:
        users = [self._cluster.pods.get(user.uid) for user in claim.status.reserved_for]
        return max((pod.priority for pod in users if pod is not None), default=-(2**31))

    def _suffices(self, allocated: AllocatedDevices, info: NodeInfo) -> bool:
        pools = self._cluster.device_pools
        return self._allocates(Allocator(allocated, pools.classes, pools.slices), info)

    def _release(self, claims: Sequence[ResourceClaim]) -> ReleaseClaims | None:
        """None if nothing is to be released, or a user is not a pod that can go."""
        uids: set[str] = set()
        pods: list[str] = []
        for claim in claims:
            for user in claim.status.reserved_for:
                pod = self._cluster.pods.get(user.uid)
                if user.uid == self._pod.uid or (pod is None and user.resource != "pods"):
                    return None
                if pod is not None and pod.belongs_to_node:
                    return None
                uids.add(user.uid)
                pods.append(f"{claim.namespace}/{user.name}")
        if not claims:
            return None
        chosen = {claim.key for claim in claims}
        freed = [
            claim.key
            for claim in self._cluster.claims.all()
            if claim.key in chosen or _used_only_by(claim, uids)
        ]
        return ReleaseClaims(
            tuple(sorted(chosen)), tuple(dict.fromkeys(pods)), tuple(sorted(freed))
        )

    # More devices

    def of_new_devices(self) -> Iterator[Ladder]:
        """Devices like one that the request would take, were it free; or one with more of a capacity."""
        for asked in self._asked:
            most = asked.request.count if asked.request.allocation_mode == "ExactCount" else 0
            for model in self._models(asked) if most else ():
                like, device = model.device.id, _unused(model.device.device, model.raised)
                yield [
                    AddDevices(model.node, str(like), count, model.raised, device, like.driver)
                    for count in range(1, most + 1)
                ]

    def _models(self, asked: _Asked) -> list[_Model]:
        """Devices to copy. If no device would do, copies must have more of what selectors compare."""
        good = asked.refused_by("in use", "taken by this pod", "counters", "constraint", "capacity")
        models = [
            _Model(each.node, each.device) for each in good if self._is_selected(asked, each.device)
        ]
        if models:
            return _distinct(models)
        raised = tuple(
            bound
            for selector in asked.request.selectors
            if selector.cel is not None
            for bound in _lower_bounds(selector.cel.expression)
        )
        return _distinct(
            _Model(each.node, each.device, raised)
            for each in asked.refused_by("selector")
            if raised and "of the claim" in each.detail
        )

    def _is_selected(self, asked: _Asked, found: PoolDevice) -> bool:
        """Whether the request would take the device, were it free."""
        option = self._options[asked.where.claim, asked.where.request]
        if option.selection is None or option.device_class is None:
            return False
        try:
            return not option.selection.judge(found, option.device_class.name, option.claim).refused
        except MooringError:
            return False


def _distinct(models: Iterable[_Model]) -> list[_Model]:
    """One of each content; nodes come in the order of the snapshot."""
    found: dict[int, _Model] = {}
    for model in models:
        found.setdefault(model.device.content, model)
    return list(found.values())[:_MOST_OF_A_KIND]


def _templates(pod: Pod) -> dict[str, str]:
    """Name of a claim → the template that it was made from, as `namespace/name`."""
    templates = {}
    for entry in pod.spec.resource_claims:
        name, _ = claim_name(pod, entry)
        if name is not None and entry.resource_claim_template_name is not None:
            templates[name] = f"{pod.namespace}/{entry.resource_claim_template_name}"
    return templates


def _requests(
    claim: ResourceClaim,
) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.name, request.exactly
        for alternative in request.first_available:
            yield f"{request.name}/{alternative.name}", alternative


def _lower_bounds(expression: str) -> list[tuple[str, str]]:
    """The capacities of which an expression wants at least a quantity, with the quantity."""
    bounds = []
    for name, compared, greater in _AT_LEAST.findall(expression):
        text = compared or greater
        try:
            parse_quantity(text)
        except ValueError:
            continue
        bounds.append((name, text))
    return bounds


def _smaller(amounts: Iterable[Quantity], bound: str) -> list[Quantity]:
    """The distinct amounts below the bound, the largest first."""
    limit = parse_quantity(bound).nanos
    by_size = {each.nanos: each for each in amounts if 0 < each.nanos < limit}
    return [by_size[nanos] for nanos in sorted(by_size, reverse=True)]


def _told(constraint: DeviceConstraint) -> str:
    if constraint.match_attribute is not None:
        return f"matchAttribute {constraint.match_attribute}"
    return f"distinctAttribute {constraint.distinct_attribute}"


def _used_only_by(claim: ResourceClaim, uids: set[str]) -> bool:
    users = claim.status.reserved_for
    return bool(users) and all(user.uid in uids for user in users)


def _unused(device: Device, raised: Sequence[tuple[str, str]]) -> Device:
    """The device without taints, and without the counters and the node of the pool that it is in."""
    capacity = dict(device.capacity)
    for name, amount in raised:
        if name in capacity:
            capacity[name] = replace(capacity[name], value=parse_quantity(amount))
    return replace(
        device,
        capacity=capacity,
        taints=[],
        consumes_counters=[],
        node_name=None,
        node_selector=None,
        all_nodes=None,
    )
