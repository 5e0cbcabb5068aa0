"""Why the devices of nodes do not satisfy the claims of a pod."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.cluster.cache import Cluster
from mooring.devices.refusals import DeviceRefusal, Refusal
from mooring.errors import MooringError
from mooring.objects.pod import Pod
from mooring.plugins.dynamic_resources.pod_claims import claims_of

#: On how many nodes devices are looked at.
MOST_NODES = 200


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
    try:
        claims = [c for c in claims_of(pod, cluster.claims) if c.status.allocation is None]
    except MooringError:
        return []
    if not claims:
        return []
    found: dict[tuple[str, str, str, str], DeviceReason] = {}
    for node in list(cluster.snapshot())[:MOST_NODES]:
        refusals: list[Refusal] = []
        try:
            if node.node is None or cluster.device_pools.allocator().allocate(
                node.node, claims, refusals=refusals
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


def _as_reason(refusal: Refusal) -> tuple[DeviceReason, str]:
    if isinstance(refusal, DeviceRefusal):
        reason = DeviceReason(refusal.claim, refusal.request, refusal.reason, refusal.detail)
        return reason, "/".join(refusal.device)
    return DeviceReason("", "", refusal.reason, ""), "/".join(refusal.pool)
