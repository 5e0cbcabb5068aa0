"""The claims of a pod, and what one attempt finds out about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.objects.devices import Allocation, ConsumerReference, ResourceClaim
from mooring.objects.pod import ContainerExtendedResourceRequest, Pod, PodResourceClaim
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource_claims import (
    ClaimProblem,
    check_usable,
    claim_name,
    is_claim_of_group,
    not_found,
    reference_to,
    reference_to_group,
)
from mooring.objects.selectors import NodeTerm
from mooring.plugin.devices import Allocator, ClaimCache

if TYPE_CHECKING:
    from mooring.plugins.dynamic_resources.kept_allocations import KeptRows


def claims_of(pod: Pod, cache: ClaimCache) -> list[ResourceClaim]:
    """The claims that the pod names, in its order. Raises ClaimProblem if one cannot be used."""
    return [claim for claim, _ in _claims_of(pod, cache)]


def claims_and_users(
    pod: Pod, cache: ClaimCache, group: PodGroup | None
) -> tuple[list[ResourceClaim], list[ConsumerReference]]:
    """The claims of a pod, and the consumer of each: the pod, or its group. Raises ClaimProblem."""
    claims, users = [], []
    for claim, entry in _claims_of(pod, cache):
        claims.append(claim)
        shared = group is not None and is_claim_of_group(entry, group)
        users.append(reference_to_group(group) if group and shared else reference_to(pod))
    return claims, users


def _claims_of(pod: Pod, cache: ClaimCache) -> Iterator[tuple[ResourceClaim, PodResourceClaim]]:
    for entry in pod.spec.resource_claims:
        name, must_own = claim_name(pod, entry)
        if name is None:
            continue
        key = f"{pod.namespace}/{name}"
        claim = cache.get(key)
        if claim is None:
            raise ClaimProblem(not_found(key))
        check_usable(pod, claim, must_own=must_own, groups_own=cache.groups_own_claims)
        yield claim, entry


@dataclass(slots=True)
class NodeAllocation:
    """What the pod gets on one node."""

    #: For each claim that is not allocated yet, in their order.
    allocations: list[Allocation]
    #: The claim for extended resources with the requests for this node; None if there is none.
    extended: ResourceClaim | None = None
    mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)


@dataclass(slots=True)
class PodClaims:
    """The state of one attempt. It is not cloned: what dry runs find on a node holds in general."""

    #: The claims that the pod names, then the one for extended resources. PreBind replaces them by what
    #: it has written.
    claims: list[ResourceClaim] = field(default_factory=list)
    #: For each claim, who it is reserved for: the pod, or the group that shares it.
    users: list[ConsumerReference] = field(default_factory=list)
    #: The position of the claim for extended resources; None if the pod needs none.
    extended_at: int | None = None
    #: The resources that devices may serve.
    resources: tuple[str, ...] = ()
    #: For each allocated claim, the nodes where it can be used; None means everywhere.
    available_on: list[tuple[NodeTerm, ...] | None] = field(default_factory=list)
    #: The positions of the claims that are to be allocated.
    to_allocate: list[int] = field(default_factory=list)
    #: Position → the allocation in flight that another pod of the group chose, and that this one shares.
    reused: dict[int, Allocation] = field(default_factory=dict)
    #: Finds devices for these; None if all claims are allocated.
    allocator: Allocator | None = None
    #: The positions of allocated claims that some node cannot use.
    unavailable: set[int] = field(default_factory=set)
    by_node: dict[str, NodeAllocation] = field(default_factory=dict)
    #: What is kept for pods with equal claims, if rows were judged by that; see `kept_allocations`.
    kept: KeptRows | None = None
    #: Whether all rows were judged at once, so that `unavailable` is not known yet.
    by_rows: bool = False
    #: For each claim, the allocation to write; known after Reserve.
    chosen: list[Allocation | None] = field(default_factory=list)
    #: Resources that devices serve on some node → the claim for them, and who uses which of its requests.
    extended_for: dict[
        tuple[str, ...], tuple[ResourceClaim, list[ContainerExtendedResourceRequest]]
    ] = field(default_factory=dict)
    #: The UID under which the claim for extended resources is in flight.
    extended_uid: str = ""

    @property
    def extended(self) -> ResourceClaim | None:
        return None if self.extended_at is None else self.claims[self.extended_at]

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (0 if self.extended_at is None else 1)

    def found_on(self, node_name: str) -> NodeAllocation | None:
        """What the pod gets on a node."""
        found = self.by_node.get(node_name)
        if found is None and self.kept is not None:
            found = self.kept.found.get(node_name)
        return found

    def user_claims(self) -> list[ResourceClaim]:
        return self.claims if self.extended_at is None else self.claims[: self.extended_at]


#: The state of a pod without claims.
NO_CLAIMS = PodClaims()
