"""What is wrong with claims, classes and slices of devices, as far as an allocation depends on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mooring.objects.devices import (
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceSliceSpec,
)
from mooring.objects.pod_validation import Problem, node_selector_problems
from mooring.objects.selectors import label_key_problem, label_value_problem

MOST_REQUESTS = 32
MOST_ALTERNATIVES = 8
MOST_SELECTORS = 32
MOST_DEVICES = 128
LONGEST_EXPRESSION = 10 * 1024

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_MODES = ("", "ExactCount", "All")
_TAINT_EFFECTS = ("None", "NoSchedule", "NoExecute")
_LABEL_HINT = "use lower-case letters, digits and '-', with a letter or digit at both ends"


def claim_problems(claim: DeviceClaim, path: str) -> Iterator[Problem]:
    yield from _too_many(claim.requests, MOST_REQUESTS, f"{path}.requests")
    names = _names(claim.requests)
    yield from _repeated([each.name for each in claim.requests], f"{path}.requests")
    for index, request in enumerate(claim.requests):
        yield from _request(request, f"{path}.requests[{index}]")
    for index, constraint in enumerate(claim.constraints):
        yield from _constraint(constraint, names, f"{path}.constraints[{index}]")
    for index, config in enumerate(claim.config):
        yield from _known(config.requests, names, f"{path}.config[{index}].requests")


def class_problems(spec: DeviceClassSpec, path: str) -> Iterator[Problem]:
    yield from _selectors(spec.selectors, f"{path}.selectors")
    name = spec.extended_resource_name
    if name is not None and ("/" not in name or label_key_problem(name) is not None):
        yield (
            f"{path}.extendedResourceName",
            f"{name!r} is not an extended resource; write it as example.com/gpu",
        )


def slice_problems(spec: ResourceSliceSpec, path: str) -> Iterator[Problem]:
    for field, value in (("driver", spec.driver), ("pool.name", spec.pool.name)):
        if not value:
            yield f"{path}.{field}", "is missing"
    if spec.pool.resource_slice_count < 1:
        yield f"{path}.pool.resourceSliceCount", "must be 1 or more: how many slices the pool has"
    chosen = (
        spec.node_name not in (None, ""),
        spec.node_selector is not None,
        bool(spec.all_nodes),
        bool(spec.per_device_node_selection),
    )
    if sum(chosen) != 1:
        yield (
            path,
            "must have exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection",
        )
    if spec.node_selector is not None:
        yield from node_selector_problems(spec.node_selector, f"{path}.nodeSelector")
    if spec.devices and spec.shared_counters:
        yield f"{path}.sharedCounters", "must be in a slice of their own, without devices"
    yield from _too_many(spec.devices, MOST_DEVICES, f"{path}.devices")
    yield from _repeated([each.name for each in spec.devices], f"{path}.devices")
    yield from _repeated([each.name for each in spec.shared_counters], f"{path}.sharedCounters")
    for index, device in enumerate(spec.devices):
        yield from _device(device, f"{path}.devices[{index}]")


def _request(request: DeviceRequest, path: str) -> Iterator[Problem]:
    yield from _label(request.name, f"{path}.name")
    if (request.exactly is None) == (not request.first_available):
        yield path, "must have exactly one of exactly and firstAvailable"
    if request.exactly is not None:
        yield from _wanted(request.exactly, f"{path}.exactly")
    yield from _too_many(request.first_available, MOST_ALTERNATIVES, f"{path}.firstAvailable")
    alternatives = request.first_available
    yield from _repeated([each.name for each in alternatives], f"{path}.firstAvailable")
    for index, alternative in enumerate(alternatives):
        at = f"{path}.firstAvailable[{index}]"
        yield from _label(alternative.name, f"{at}.name")
        yield from _wanted(alternative, at)


def _wanted(wanted: ExactDeviceRequest | DeviceSubRequest, path: str) -> Iterator[Problem]:
    if not wanted.device_class_name:
        yield f"{path}.deviceClassName", "is missing; name a DeviceClass"
    if wanted.allocation_mode not in _MODES:
        yield f"{path}.allocationMode", "must be ExactCount or All"
    elif wanted.allocation_mode == "All" and wanted.count:
        yield f"{path}.count", "must be left out if all devices are asked for"
    if wanted.count < 0:
        yield f"{path}.count", f"{wanted.count} is negative; use 1 or more"
    yield from _selectors(wanted.selectors, f"{path}.selectors")
    for index, toleration in enumerate(wanted.tolerations):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for name, amount in (wanted.capacity.requests if wanted.capacity else {}).items():
        if amount.unscaled < 0:
            yield f"{path}.capacity.requests[{name}]", f"{amount} is negative; use 0 or more"


def _selectors(selectors: Sequence[DeviceSelector], path: str) -> Iterator[Problem]:
    yield from _too_many(selectors, MOST_SELECTORS, path)
    for index, selector in enumerate(selectors):
        at = f"{path}[{index}].cel.expression"
        expression = selector.cel.expression if selector.cel is not None else ""
        if not expression:
            yield at, "is missing; write a CEL expression on `device`"
        elif len(expression) > LONGEST_EXPRESSION:
            yield at, f"is too long; use {LONGEST_EXPRESSION:,} characters or fewer"


def _toleration(toleration: DeviceToleration, path: str) -> Iterator[Problem]:
    if toleration.operator not in ("", "Equal", "Exists"):
        yield f"{path}.operator", "must be Equal or Exists"
    elif toleration.operator == "Exists" and toleration.value:
        yield f"{path}.value", "must be left out if the operator is Exists"
    elif toleration.operator != "Exists" and not toleration.key:
        yield f"{path}.operator", "must be Exists if there is no key"
    if toleration.effect and toleration.effect not in _TAINT_EFFECTS:
        yield f"{path}.effect", f"must be one of {', '.join(_TAINT_EFFECTS)}"


def _constraint(constraint: DeviceConstraint, names: set[str], path: str) -> Iterator[Problem]:
    if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
        yield path, "must have exactly one of matchAttribute and distinctAttribute"
    for field in ("match_attribute", "distinct_attribute"):
        attribute = getattr(constraint, field)
        if attribute is not None and "/" not in attribute:
            name = "matchAttribute" if field == "match_attribute" else "distinctAttribute"
            yield f"{path}.{name}", f"{attribute!r} needs a domain; write it as driver/{attribute}"
    yield from _known(constraint.requests, names, f"{path}.requests")


def _known(requests: Sequence[str], names: set[str], path: str) -> Iterator[Problem]:
    for index, request in enumerate(requests):
        if request not in names:
            yield f"{path}[{index}]", f"there is no request {request!r} in this claim"


def _names(requests: Iterable[DeviceRequest]) -> set[str]:
    names = set()
    for request in requests:
        names.add(request.name)
        names.update(f"{request.name}/{each.name}" for each in request.first_available)
    return names


def _device(device: Device, path: str) -> Iterator[Problem]:
    yield from _label(device.name, f"{path}.name")
    for name, attribute in device.attributes.items():
        if _values(attribute) != 1:
            yield (
                f"{path}.attributes[{name}]",
                "must have exactly one of int, bool, string and version",
            )
    for name, capacity in device.capacity.items():
        if capacity.value.unscaled < 0:
            yield f"{path}.capacity[{name}]", f"{capacity.value} is negative; use 0 or more"
    for index, taint in enumerate(device.taints):
        yield from _taint(taint, f"{path}.taints[{index}]")
    if device.node_selector is not None:
        yield from node_selector_problems(device.node_selector, f"{path}.nodeSelector")


def _taint(taint: DeviceTaint, path: str) -> Iterator[Problem]:
    if problem := label_key_problem(taint.key):
        yield f"{path}.key", f"{taint.key!r} is not a taint's key: {problem}"
    if problem := label_value_problem(taint.value):
        yield f"{path}.value", f"{taint.value!r} is not a taint's value: {problem}"
    if taint.effect not in _TAINT_EFFECTS:
        yield f"{path}.effect", f"must be one of {', '.join(_TAINT_EFFECTS)}"


def _values(attribute: DeviceAttribute) -> int:
    return sum(
        getattr(attribute, field.name) is not None for field in msgspec.structs.fields(attribute)
    )


def _label(name: str, path: str) -> Iterator[Problem]:
    if not name:
        yield path, f"is missing; {_LABEL_HINT}"
    elif len(name) > 63 or not _LABEL.fullmatch(name):
        yield path, f"{name!r} is not a name; {_LABEL_HINT}"


def _repeated(names: Sequence[str], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield f"{path}[{index}].name", f"{name!r} is taken by an earlier entry; rename one"
        seen.add(name)


def _too_many(entries: Sequence[object], most: int, path: str) -> Iterator[Problem]:
    if len(entries) > most:
        yield path, f"has {len(entries)} entries; {most} are the most"
