"""What a pod requests from a node, summed over its containers as the API defines it.

Init containers run one after another, sidecars run beside all that follows them, pod-level
resources replace the sum, overhead is added, and a pod resized in place holds the larger of what it
has and what it wants. Sums are exact and become integers once, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mooring.objects.meta import ResourceList
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.selectors import label_key_problem

if TYPE_CHECKING:
    from mooring.objects.pod import Container, ContainerStatus, Pod

#: The condition of a pod whose node has not carried out a resize.
RESIZE_PENDING = "PodResizePending"

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

#: Integers by resource name: thousandths of a core for cpu, whole units for everything else.
Amounts = dict[str, int]

#: What scoring assumes for a container without requests.
NON_ZERO_DEFAULTS: ResourceList = {CPU: Quantity(100, -3), MEMORY: Quantity(200 * 1024 * 1024)}

_NATIVE_DOMAIN = "kubernetes.io/"
_FIRST_CLASS = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_BAD_REQUEST_PREFIX = re.compile(r"requests\.")


def is_extended(name: str) -> bool:
    """Whether a vendor defines the resource: `nvidia.com/gpu`."""
    return (
        "/" in name
        and _NATIVE_DOMAIN not in name
        and not _BAD_REQUEST_PREFIX.match(name)
        and label_key_problem(f"requests.{name}") is None
    )


def is_scalar(name: str) -> bool:
    """Whether scheduling counts the resource, beside cpu, memory and ephemeral storage."""
    return (
        name.startswith(("hugepages-", "attachable-volumes-"))
        or _NATIVE_DOMAIN in name
        or is_extended(name)
    )


def amounts(resources: Mapping[str, Quantity]) -> Amounts:
    """The resources as the integers that scheduling uses, without those that it does not count."""
    return {
        name: quantity.milli_value if name == CPU else quantity.value
        for name, quantity in resources.items()
        if name in _FIRST_CLASS or is_scalar(name)
    }


def amount_of(name: str, quantity: Quantity) -> int:
    return quantity.milli_value if name == CPU else quantity.value


def container_requests(pod: Pod) -> ResourceList:
    """The requests of a pod's containers together."""
    return _containers(pod)


def spec_requests(pod: Pod) -> ResourceList:
    """The requests of a pod that does not run yet."""
    return _with_overhead(pod, _pod_level(pod, _containers(pod)))


def scoring_requests(pod: Pod) -> ResourceList:
    """The requests that scoring by free resources assumes for an incoming pod.

    As in the reference, pod-level resources and the status do not count here.
    """
    return _with_overhead(pod, _containers(pod, defaults=NON_ZERO_DEFAULTS))


def held_requests(pod: Pod) -> ResourceList:
    """What a pod holds on its node, including resizes in progress."""
    return _with_overhead(pod, _pod_level(pod, _containers(pod, running=True), running=True))


def held_non_zero(pod: Pod, held: Mapping[str, Quantity]) -> ResourceList:
    """As `held_requests`, with the defaults of scoring for containers without requests."""
    defaults = dict(NON_ZERO_DEFAULTS)
    if _has_pod_level(pod):
        defaults = {name: q for name, q in defaults.items() if name not in held}
    if not defaults:
        return dict(held)
    containers = _containers(pod, running=True, defaults=defaults)
    return _with_overhead(pod, _pod_level(pod, containers, running=True))


def needs_no_defaults(pod: Pod) -> bool:
    """Whether scoring counts what is requested: every container says how much cpu and memory it wants."""
    spec = pod.spec
    return spec.resources is None and all(
        CPU in container.resources.requests and MEMORY in container.resources.requests
        for container in (*spec.containers, *spec.init_containers)
    )


def _containers(
    pod: Pod, *, running: bool = False, defaults: Mapping[str, Quantity] | None = None
) -> ResourceList:
    statuses = _statuses(pod) if running else {}
    spec = pod.spec
    if len(spec.containers) == 1 and not (spec.init_containers or statuses or defaults):
        # As most pods are: nothing has to be added up.
        return dict(spec.containers[0].resources.requests)
    total: ResourceList = {}
    for container in spec.containers:
        _add(total, _effective(pod, container, statuses, defaults))
    sidecars: ResourceList = {}
    largest_init: ResourceList = {}
    for container in spec.init_containers:
        if container.restartable:
            asked = _effective(pod, container, statuses, defaults)
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(largest_init, sidecars)
        else:
            use = dict(_effective(pod, container, {}, defaults))
            _add(use, sidecars)
            _raise_to(largest_init, use)
    _raise_to(total, largest_init)
    return total


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}


def _effective(
    pod: Pod,
    container: Container,
    statuses: Mapping[str, ContainerStatus],
    defaults: Mapping[str, Quantity] | None,
) -> Mapping[str, Quantity]:
    asked: Mapping[str, Quantity] = container.resources.requests
    status = statuses.get(container.name)
    if status is not None and status.resources is not None:
        asked = _resized(pod, asked, status.resources.requests, status.allocated_resources)
    return {**defaults, **asked} if defaults else asked


def _resized(
    pod: Pod,
    spec: Mapping[str, Quantity],
    actuated: Mapping[str, Quantity],
    allocated: Mapping[str, Quantity],
) -> ResourceList:
    """The larger of old and new requests, unless the node has refused the resize for good."""
    largest: ResourceList = {}
    for part in (actuated, allocated) if _resize_infeasible(pod) else (spec, actuated, allocated):
        _raise_to(largest, part)
    return largest


def _resize_infeasible(pod: Pod) -> bool:
    pending = pod.condition(RESIZE_PENDING)
    return pending is not None and pending.reason == "Infeasible"


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(_settable_for_pod, resources.requests))


def _settable_for_pod(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _pod_level(pod: Pod, containers: ResourceList, *, running: bool = False) -> ResourceList:
    """Replace the sum over containers by pod-level resources, where they are set."""
    resources = pod.spec.resources
    if resources is None or not _has_pod_level(pod):
        return containers
    asked: Mapping[str, Quantity] = resources.requests
    if running and pod.status.resources is not None:
        status = pod.status
        effective = _resized(pod, asked, pod.status.resources.requests, status.allocated_resources)
        asked = {name: effective.get(name, ZERO) for name in asked}
    for name, quantity in asked.items():
        if _settable_for_pod(name):
            containers[name] = quantity
    return containers


def _with_overhead(pod: Pod, total: ResourceList) -> ResourceList:
    _add(total, pod.spec.overhead)
    return total


def _add(total: ResourceList, more: Mapping[str, Quantity]) -> None:
    for name, quantity in more.items():
        held = total.get(name)
        total[name] = quantity if held is None else held.plus(quantity)


def _raise_to(total: ResourceList, other: Mapping[str, Quantity]) -> None:
    for name, quantity in other.items():
        held = total.get(name)
        if held is None or quantity.exceeds(held):
            total[name] = quantity
