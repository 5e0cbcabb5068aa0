"""Why the devices of nodes do not satisfy the claims of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.devices.refusals import DeviceRefusal, Refusal
from mooring.devices.step_limit import after_steps_of
from mooring.errors import MooringError
from mooring.objects.devices import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import ClaimProblem
from mooring.plugins.dynamic_resources import extended_resources
from mooring.plugins.dynamic_resources.pod_claims import claims_of

#: On how many nodes devices are looked at.
MOST_NODES = 200
#: How long a search on one node may take, in the seconds that its steps stand for.
LONGEST_SEARCH_S = 5.0


@dataclass(slots=True)
class DeviceReason:
    """One reason why devices were refused."""

    #: `namespace/name` of the claim, and the request in it; "" for a pool.
    claim: str
    request: str
    #: `selector`, `in use`, `taint` …, or what is wrong with a pool.
    reason: str
    #: The selector, the claims that use the devices, the taint …
    detail: str
    #: `node: driver/pool/device`.
    devices: list[str] = field(default_factory=list)


def device_reasons(cluster: Cluster, pod: Pod) -> list[DeviceReason]:
    """Empty if the pod has no claims to allocate, or gets devices on each node."""
    if not needs_devices(cluster, pod):
        return []
    found: dict[tuple[str, str, str, str], DeviceReason] = {}
    for node in list(cluster.snapshot())[:MOST_NODES]:
        refusals: list[Refusal] = []
        try:
            claims = claims_to_allocate(cluster, pod, node)
            if not claims or cluster.device_pools.allocator().allocate(
                _node(node), claims, after_steps_of(LONGEST_SEARCH_S), refusals=refusals
            ):
                continue
        except MooringError:
            # The refusal of the node says what is wrong.
            pass
        for each in dict.fromkeys(refusals):
            reason, device = _as_reason(each)
            key = (reason.claim, reason.request, reason.reason, reason.detail)
            found.setdefault(key, reason).devices.append(f"{node.name}: {device}")
    return sorted(found.values(), key=lambda reason: -len(reason.devices))


def needs_devices(cluster: Cluster, pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or cluster.device_classes.serve(pod)


def asked_classes(cluster: Cluster, pod: Pod) -> Iterator[str]:
    """The device classes that the claims, the templates and the resources of a pod name."""
    for entry in pod.spec.resource_claims:
        spec: ResourceClaimSpec | None = None
        if entry.resource_claim_template_name is not None:
            key = f"{pod.namespace}/{entry.resource_claim_template_name}"
            template = cluster.listers.get(ResourceClaimTemplate, key)
            spec = template.spec.spec if template is not None else None
        elif entry.resource_claim_name is not None:
            claim = cluster.claims.get(f"{pod.namespace}/{entry.resource_claim_name}")
            spec = claim.spec if claim is not None else None
        yield from classes_of(spec) if spec is not None else ()
    for resource in pod.requests:
        served_by = cluster.device_classes.get(resource)
        if served_by is not None:
            yield served_by.name


def classes_of(spec: ResourceClaimSpec) -> Iterator[str]:
    """The device classes that a claim names."""
    for request in spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        yield from (each.device_class_name for each in request.first_available)


def claims_to_allocate(cluster: Cluster, pod: Pod, node: NodeInfo) -> list[ResourceClaim]:
    """The claims that need devices on the node, with the one for extended resources.

    There are none if a claim cannot be used at all, or the node lacks a resource that no device serves.
    """
    try:
        claims = [c for c in claims_of(pod, cluster.claims) if c.status.allocation is None]
    except ClaimProblem:
        return []
    classes = cluster.device_classes
    if not classes.serve(pod):
        return claims
    resources = extended_resources.requested(pod)
    try:
        served = extended_resources.served_by_devices(resources, node.allocatable, classes)
    except extended_resources.CannotFit:
        return []
    requests, _ = extended_resources.requests_for(pod, served, classes)
    if requests:
        claims.append(extended_resources.claim_with(extended_resources.new_claim(pod), requests))
    return claims


def _node(info: NodeInfo) -> Node:
    assert info.node is not None
    return info.node


def _as_reason(refusal: Refusal) -> tuple[DeviceReason, str]:
    if isinstance(refusal, DeviceRefusal):
        namespace, _, name = refusal.claim.partition("/")
        if name.startswith(extended_resources.IN_MEMORY):
            # Its name is for mooring alone.
            name = "extended resources"
        reason = DeviceReason(
            f"{namespace}/{name}", refusal.request, refusal.reason, refusal.detail
        )
        return reason, "/".join(refusal.device)
    return DeviceReason("", "", refusal.reason, ""), "/".join(refusal.pool)
