"""What the claims of a pod ask for, put into one form for the search.

It does not depend on the node, so it is made once for a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from mooring.devices.selection import Selection, Selections
from mooring.objects.devices import (
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

#: A claim has at most this many results.
MOST_RESULTS = 32
NO_CAPACITY = "has capacity requests, but the DRAConsumableCapacity feature is disabled"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request without alternatives, or one of the alternatives."""

    #: Its place among all requests and alternatives of the pod.
    number: int
    #: The claim's place among the claims, and its `namespace/name`.
    claim_index: int
    claim: str
    #: The name of the request; for an alternative, that of the request it belongs to.
    base: str
    #: The name of the alternative itself, or of the request.
    name: str
    #: `request` or `request/subrequest`.
    full_name: str
    device_class: DeviceClass | None
    selection: Selection | None
    all_devices: bool
    count: int
    admin_access: bool
    tolerations: list[DeviceToleration]
    #: Why it cannot be allocated at all.
    error: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """A request of a claim."""

    options: tuple[Request, ...]
    #: Whether the options are those of `firstAvailable`, one of which is enough.
    subrequests: bool
    #: Why it cannot be allocated at all, whichever option is taken.
    error: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequests:
    claim: ResourceClaim
    requests: tuple[Alternatives, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodRequests:
    claims: tuple[ClaimRequests, ...]
    #: How many requests and alternatives there are.
    size: int


def prepare(
    claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass], selections: Selections
) -> PodRequests:
    numbers = count()
    prepared = tuple(
        ClaimRequests(
            claim,
            tuple(
                _alternatives(claim, index, request, classes, selections, numbers.__next__)
                for request in claim.spec.devices.requests
            ),
        )
        for index, claim in enumerate(claims)
    )
    return PodRequests(prepared, size=next(numbers))


def _alternatives(
    claim: ResourceClaim,
    claim_index: int,
    request: DeviceRequest,
    classes: Mapping[str, DeviceClass],
    selections: Selections,
    next_number: Callable[[], int],
) -> Alternatives:
    wanted: list[DeviceSubRequest] | list[ExactDeviceRequest]
    # The scheduler refuses a request of neither kind before it comes here.
    wanted = request.first_available or [request.exactly or ExactDeviceRequest()]
    options = []
    for each in wanted:
        name = each.name if isinstance(each, DeviceSubRequest) else request.name
        device_class = classes.get(each.device_class_name)
        error = _error(claim, name, each, device_class)
        options.append(
            Request(
                number=next_number(),
                claim_index=claim_index,
                claim=claim.key,
                base=request.name,
                name=name,
                full_name=f"{request.name}/{name}" if request.first_available else name,
                device_class=device_class,
                selection=_selection(each, device_class, selections) if error is None else None,
                all_devices=each.allocation_mode == "All",
                count=each.count,
                admin_access=isinstance(each, ExactDeviceRequest) and bool(each.admin_access),
                tolerations=each.tolerations,
                error=error,
            )
        )
    error, features = None, selections.features
    if not features.consumable_capacity and not features.stable_allocator:
        error = _capacity_error(claim, request)
    return Alternatives(tuple(options), bool(request.first_available), error)


def _capacity_error(claim: ResourceClaim, request: DeviceRequest) -> str | None:
    exactly = request.exactly
    if exactly is not None and exactly.capacity is not None:
        return f"claim {claim.key}, request {request.name}: {NO_CAPACITY}"
    for each in request.first_available:
        if each.capacity is not None:
            return f"claim {claim.key}, subrequest {each.name}: {NO_CAPACITY}"
    return None


def _error(
    claim: ResourceClaim,
    name: str,
    request: DeviceSubRequest | ExactDeviceRequest,
    device_class: DeviceClass | None,
) -> str | None:
    where = f"claim {claim.key}, request {name}"
    for number, selector in enumerate(request.selectors):
        if selector.cel is None:
            return f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
    class_name = request.device_class_name
    if not class_name:
        return f"{where}: missing device class name (unsupported request type?)"
    if device_class is None:
        problem = f'deviceclass.resource.k8s.io "{class_name}" not found'
        return f"{where}: could not retrieve device class {class_name}: {problem}"
    if request.allocation_mode not in ("ExactCount", "All"):
        return f"{where}: unsupported count mode {request.allocation_mode}"
    return None


def _selection(
    request: DeviceSubRequest | ExactDeviceRequest,
    device_class: DeviceClass | None,
    selections: Selections,
) -> Selection:
    class_selectors = device_class.spec.selectors if device_class is not None else []
    return selections.of(
        tuple(each.cel.expression if each.cel is not None else "" for each in class_selectors),
        tuple(each.cel.expression if each.cel is not None else "" for each in request.selectors),
        request.capacity.requests if request.capacity is not None else {},
    )
