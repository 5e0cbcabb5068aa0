"""Changes that could give the claims of a pod their devices, as values.

A change of a claim is one of the claim itself and of the template that it was made from: users change
the template. `docs/explain.md` lists the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from msgspec.structs import replace

from mooring.framework.changes import Change
from mooring.objects.devices import (
    CapacityRequirements,
    CelSelector,
    Device,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import parse_quantity

#: A request, of either kind.
Asked = ExactDeviceRequest | DeviceSubRequest


@dataclass(frozen=True, slots=True)
class RequestOfClaim:
    """Where a request stands, as users find it."""

    #: The claim, as `namespace/name`.
    claim: str
    #: The template that it was made from, as `namespace/name`; "" if none.
    template: str
    #: `request` or `request/subrequest`; "" for the claim as a whole.
    request: str = ""

    @property
    def text(self) -> str:
        claim = (
            f"ResourceClaimTemplate {self.template}"
            if self.template
            else f"ResourceClaim {self.claim}"
        )
        return f"request {self.request} of {claim}" if self.request else claim


@dataclass(frozen=True, slots=True)
class ClaimChange(Change):
    """A change of what a claim asks for."""

    where: RequestOfClaim

    @property
    def resource_claims(self) -> tuple[str, ...]:
        return (self.where.claim,)

    def on_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        if claim.key != self.where.claim:
            return claim
        return replace(claim, spec=self.on_claim_spec(claim.spec))

    def on_claim_template(self, template: ResourceClaimTemplate) -> ResourceClaimTemplate:
        if template.key != self.where.template:
            return template
        spec = replace(template.spec, spec=self.on_claim_spec(template.spec.spec))
        return replace(template, spec=spec)

    def to_data(self) -> dict[str, Any]:
        data = super(ClaimChange, self).to_data()
        return {**data, "where": asdict(self.where)}

    def on_claim_spec(self, spec: ResourceClaimSpec) -> ResourceClaimSpec:
        requests = [
            _edited(each, self.where.request, self.on_request) for each in spec.devices.requests
        ]
        return replace(spec, devices=replace(spec.devices, requests=requests))

    def on_request(self, request: Asked) -> Asked:
        """For the request that it names."""
        return request


@dataclass(frozen=True, slots=True)
class LowerCount(ClaimChange):
    """Ask for fewer devices."""

    kind: ClassVar[str] = "lower-device-count"
    old: int
    new: int

    @property
    def size(self) -> float:
        return (self.old - self.new) / self.old

    @property
    def text(self) -> str:
        return f"lower the count from {self.old} to {self.new} in {self.where.text}"

    def on_request(self, request: Asked) -> Asked:
        return replace(request, count=self.new)


@dataclass(frozen=True, slots=True)
class LowerCapacity(ClaimChange):
    """Ask for less of a capacity of a shared device."""

    kind: ClassVar[str] = "lower-device-capacity"
    capacity: str
    #: Quantities, as they are written.
    old: str
    new: str

    @property
    def size(self) -> float:
        return _share_lost(self.old, self.new)

    @property
    def text(self) -> str:
        return f"lower {self.capacity} from {self.old} to {self.new} in {self.where.text}"

    def on_request(self, request: Asked) -> Asked:
        asked = request.capacity.requests if request.capacity is not None else {}
        less = {**asked, self.capacity: parse_quantity(self.new)}
        return replace(request, capacity=CapacityRequirements(requests=less))


@dataclass(frozen=True, slots=True)
class LowerQuantity(ClaimChange):
    """Compare with a smaller quantity in a selector."""

    kind: ClassVar[str] = "lower-device-selector"
    #: The index of the selector.
    selector: int
    capacity: str
    #: Quantities, as they are written in the expression.
    old: str
    new: str

    @property
    def size(self) -> float:
        return _share_lost(self.old, self.new)

    @property
    def text(self) -> str:
        return f"accept a device with {self.capacity} {self.new} instead of {self.old} in {self.where.text}"

    def on_request(self, request: Asked) -> Asked:
        selectors = list(request.selectors)
        cel = selectors[self.selector].cel or CelSelector()
        less = cel.expression.replace(f'quantity("{self.old}")', f'quantity("{self.new}")')
        selectors[self.selector] = DeviceSelector(cel=CelSelector(expression=less))
        return replace(request, selectors=selectors)


@dataclass(frozen=True, slots=True)
class DropSelector(ClaimChange):
    """Drop a selector of a request."""

    kind: ClassVar[str] = "drop-device-selector"
    selector: int
    expression: str

    @property
    def text(self) -> str:
        return f"drop the selector “{self.expression}” from {self.where.text}"

    def on_request(self, request: Asked) -> Asked:
        left = [each for i, each in enumerate(request.selectors) if i != self.selector]
        return replace(request, selectors=left)


@dataclass(frozen=True, slots=True)
class DropConstraint(ClaimChange):
    """Drop a constraint of a claim."""

    kind: ClassVar[str] = "drop-device-constraint"
    constraint: int
    #: As `matchAttribute NAME`.
    told: str

    @property
    def text(self) -> str:
        return f"drop the constraint {self.told} from {self.where.text}"

    def on_claim_spec(self, spec: ResourceClaimSpec) -> ResourceClaimSpec:
        left = [each for i, each in enumerate(spec.devices.constraints) if i != self.constraint]
        return replace(spec, devices=replace(spec.devices, constraints=left))


@dataclass(frozen=True, slots=True)
class TolerateDevices(ClaimChange):
    """Tolerate taints of devices."""

    kind: ClassVar[str] = "tolerate-device"
    #: As `key=value:Effect`.
    taints: tuple[str, ...]

    @property
    def size(self) -> float:
        return 0.5 * len(self.taints)

    @property
    def text(self) -> str:
        word = "the device taint" if len(self.taints) == 1 else "the device taints"
        return f"tolerate {word} {' and '.join(self.taints)} in {self.where.text}"

    def on_request(self, request: Asked) -> Asked:
        more = [_toleration(taint) for taint in self.taints]
        return replace(request, tolerations=[*request.tolerations, *more])


@dataclass(frozen=True, slots=True)
class ReleaseClaims(Change):
    """End the pods that claims are reserved for, so that their devices are free."""

    kind: ClassVar[str] = "release-devices"
    #: The claims that hold the devices, as `namespace/name`.
    claims: tuple[str, ...]
    #: The pods that they are reserved for, as `namespace/name`.
    pods: tuple[str, ...]
    #: All claims that are free when these pods are gone.
    freed: tuple[str, ...]

    @property
    def size(self) -> float:
        return float(len(self.pods)) if self.pods else 0.5 * len(self.claims)

    @property
    def text(self) -> str:
        hold = "holds" if len(self.claims) == 1 else "hold"
        word = "claim" if len(self.claims) == 1 else "claims"
        held = f"{word} {', '.join(self.claims)} {hold} the devices"
        if not self.pods:
            return f"deallocate or delete {', '.join(self.claims)}: the {held}, for no pod"
        return f"delete {', '.join(self.pods)}, or let it finish: the {held}"

    @property
    def removed_pods(self) -> tuple[str, ...]:
        return self.pods

    @property
    def resource_claims(self) -> tuple[str, ...]:
        return self.freed

    def on_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        if claim.key not in self.freed:
            return claim
        return replace(claim, status=ResourceClaimStatus())


@dataclass(frozen=True, slots=True)
class AddDevices(Change):
    """Add devices like an existing one to a node."""

    kind: ClassVar[str] = "add-devices"
    node: str
    #: The device that they are like, as `driver/pool/device`.
    like: str
    count: int
    #: What the devices have to have more than that one: (capacity, quantity).
    raised: tuple[tuple[str, str], ...]
    #: The device, as the driver would publish it.
    device: Device = field(compare=False, repr=False)
    driver: str

    @property
    def size(self) -> float:
        return 1.5 * self.count

    @property
    def text(self) -> str:
        number = "one more device" if self.count == 1 else f"{self.count} more devices"
        having = "".join(f" with {name} ≥ {amount}" for name, amount in self.raised)
        otherwise = "otherwise " if self.raised else ""
        return f"add {number}{having} to node {self.node}, {otherwise}like {self.like}"

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        devices = [replace(self.device, name=f"added-{i + 1}") for i in range(self.count)]
        name = f"{self.node}-added-devices"
        spec = ResourceSliceSpec(
            driver=self.driver,
            node_name=self.node,
            pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
            devices=devices,
        )
        return [
            ResourceSlice(
                api_version="resource.k8s.io/v1",
                kind="ResourceSlice",
                metadata=ObjectMeta(name=name, uid=name),
                spec=spec,
            )
        ]

    def to_data(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "text": self.text,
            "size": round(self.size, 4),
            "node": self.node,
            "like": self.like,
            "count": self.count,
            "raised": [list(each) for each in self.raised],
        }


def _edited(request: DeviceRequest, name: str, edit: Callable[[Asked], Asked]) -> DeviceRequest:
    """The request, changed where `name` (`request` or `request/subrequest`) names a part of it."""
    base, _, sub = name.partition("/")
    if request.name != base:
        return request
    if request.exactly is not None:
        return replace(request, exactly=edit(request.exactly))
    alternatives = [edit(each) if each.name == sub else each for each in request.first_available]
    return replace(request, first_available=alternatives)


def _toleration(taint: str) -> DeviceToleration:
    left, _, effect = taint.rpartition(":")
    key, _, value = left.partition("=")
    return DeviceToleration(key=key, operator="Equal", value=value, effect=effect)


def _share_lost(old: str, new: str) -> float:
    before, after = parse_quantity(old).nanos, parse_quantity(new).nanos
    return (before - after) / before if before else 0.0
