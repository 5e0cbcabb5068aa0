"""The structured allocator: which devices claims get on a node.

It finds what the reference's allocator (the one that default gates lead to) finds, including its order and
its texts. An allocator serves one pod on many nodes: what is known of slices and devices comes from the
index, which all pods share, and nothing that it is given changes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.claim_requests import MOST_RESULTS, ClaimRequests, PodRequests, prepare
from mooring.devices.constraints import AttributeConstraint, make_constraint
from mooring.devices.eligibility import AllocationTimeout, Eligibility
from mooring.devices.features import DeviceFeatures
from mooring.devices.holdings import ConstraintViolated, Holdings
from mooring.devices.node_matching import NodeSelectorError
from mooring.devices.refusals import PoolRefusal, Refusal
from mooring.devices.results import TooManyTermsError, make_allocation
from mooring.devices.search import REMEMBER_AFTER, Search, TooManyResults
from mooring.devices.selection import SelectorError
from mooring.devices.slice_index import NodePools, SliceIndex
from mooring.errors import MooringError
from mooring.objects.devices import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.node import Node

__all__ = ["AllocationError", "AllocationTimeout", "Allocator", "NodeOnlyError"]

INVALID_POOLS = "invalid resource pools were encountered"


class AllocationError(MooringError):
    """The claims cannot be allocated; the attempt ends for all nodes, with this text."""


class NodeOnlyError(MooringError):
    """The claims cannot be allocated on this node; others may do."""


class Allocator:
    """Finds devices for the claims of a pod."""

    def __init__(
        self,
        allocated: AllocatedDevices,
        classes: Mapping[str, DeviceClass],
        slices: SliceIndex | Sequence[ResourceSlice],
        *,
        new_share_id: Callable[[], str] | None = None,
        remember_after: int = REMEMBER_AFTER,
    ) -> None:
        self._allocated = allocated
        self._classes = classes
        self._index = slices if isinstance(slices, SliceIndex) else SliceIndex(slices)
        self._new_share_id = new_share_id or _random_id
        #: After how many steps a search remembers its dead ends.
        self._remember_after = remember_after
        self._claims: tuple[ResourceClaim, ...] = ()
        self._requests = PodRequests((), 0)

    def allocate(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        expired: Callable[[], bool] | None = None,
        *,
        refusals: list[Refusal] | None = None,
    ) -> list[Allocation] | None:
        """The first solution, one allocation for each claim; None if there is none on this node.

        Raises AllocationError, NodeOnlyError, or AllocationTimeout once `expired` says so. With
        `refusals`, why devices and pools were passed over is appended to that list.
        """
        pools = self._pools_on(node)
        if refusals is not None:
            refusals.extend(_refused_pools(pools))
        requests = self._prepared(claims)
        constraints: list[list[AttributeConstraint]] = [[] for _ in claims]
        holdings = Holdings(self._allocated, constraints, refusals)
        eligibility = Eligibility(node, pools, requests, self._allocated, holdings, expired)
        search = Search(
            requests, eligibility, holdings, expired, remember_after=self._remember_after
        )
        try:
            for each, kept in zip(requests.claims, constraints, strict=True):
                kept += _checked(each, eligibility, self._index.features)
            if not search.run():
                if pools.any_invalid:
                    raise NodeOnlyError(INVALID_POOLS)
                return None
        except (SelectorError, NodeSelectorError, ConstraintViolated, TooManyResults) as error:
            raise AllocationError(str(error)) from error
        chosen = search.chosen()
        allocations = []
        for each, taken in zip(requests.claims, holdings.results, strict=True):
            try:
                allocations.append(
                    make_allocation(
                        each,
                        taken,
                        chosen,
                        node.name,
                        self._new_share_id,
                        binds_to_node=not self._index.features.stable_allocator,
                    )
                )
            except TooManyTermsError as error:
                name = each.claim.name
                raise AllocationError(f"create NodeSelector for claim {name}: {error}") from error
        return allocations

    def _pools_on(self, node: Node) -> NodePools:
        try:
            return self._index.pools_on(node)
        except NodeSelectorError as error:
            raise AllocationError(f"gather pool information: {error}") from error

    def _prepared(self, claims: Sequence[ResourceClaim]) -> PodRequests:
        """The requests of the claims. They are usually those of the node before."""
        if len(claims) != len(self._claims) or any(
            one is not other for one, other in zip(claims, self._claims, strict=True)
        ):
            self._requests = prepare(claims, self._classes, self._index.selections)
            self._claims = tuple(claims)
        return self._requests


def _checked(
    claim: ClaimRequests, eligibility: Eligibility, features: DeviceFeatures
) -> list[AttributeConstraint]:
    """Check a claim before the search, as the reference does, and return its constraints."""
    fewest = 0
    for alternatives in claim.requests:
        if alternatives.error is not None:
            raise AllocationError(alternatives.error)
        numbers = []
        for option in alternatives.options:
            if option.error is not None:
                raise AllocationError(option.error)
            if option.all_devices and (problem := eligibility.list_all(option)):
                raise AllocationError(f"claim {option.claim}, request {option.name}: {problem}")
            numbers.append(eligibility.needed(option))
        fewest += min(numbers)
    key = claim.claim.key
    if fewest > MOST_RESULTS:
        raise AllocationError(
            f"claim {key}: number of requested devices {fewest} "
            f"exceeds the claim limit of {MOST_RESULTS}"
        )
    constraints = []
    for number, spec in enumerate(claim.claim.spec.devices.constraints):
        constraint = make_constraint(spec, distinct=not features.stable_allocator)
        if constraint is None:
            raise AllocationError(
                f"claim {key}, constraint #{number}: "
                "empty constraint (unsupported constraint type?)"
            )
        constraints.append(constraint)
    return constraints


def _refused_pools(pools: NodePools) -> list[PoolRefusal]:
    return [
        PoolRefusal(pool.id, "incomplete" if pool.incomplete else pool.invalid)
        for pool in pools.pools
        if not pool.usable
    ]


def _random_id() -> str:
    return str(uuid.uuid4())
