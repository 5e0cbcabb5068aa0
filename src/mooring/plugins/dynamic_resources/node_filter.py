"""Whether the claims of a pod can be had on one node."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from mooring.objects.devices import Allocation, ResourceClaim
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import BindingConditionFailed, has_timed_out, is_ready
from mooring.plugin import (
    SUCCESS,
    ClusterView,
    Columns,
    Handle,
    Mask,
    NodeInfo,
    PluginError,
    Rows,
    Status,
    row_count,
    unresolvable,
)
from mooring.plugin.devices import AllocationTimeout, Allocator, NodeOnlyError, after_steps_of
from mooring.plugin.nodes import match_rows_any, matches_any
from mooring.plugins.dynamic_resources import extended_resources
from mooring.plugins.dynamic_resources.extended_resources import CannotFit
from mooring.plugins.dynamic_resources.pod_claims import NodeAllocation, PodClaims

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
CANNOT_ALLOCATE = unresolvable("cannot allocate all claims")
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")
CANNOT_FIT = unresolvable("cannot fit resource")
LEFT_OVER = unresolvable("cannot schedule extended resource claim")
TIMED_OUT = "node {}: timed out trying to allocate devices"


class NodeFilter:
    """The rule of Filter. It writes what it finds on a node into the state of the attempt."""

    def __init__(
        self, handle: Handle, *, filter_timeout_s: float, binding_timeout_s: float | None
    ) -> None:
        self._handle = handle
        self._cluster: ClusterView = handle.cluster
        self._filter_timeout_s = filter_timeout_s
        #: None if the gates of binding conditions are off.
        self._binding_timeout_s = binding_timeout_s

    def judge(self, claims: PodClaims, pod: Pod, node: NodeInfo) -> Status:
        """Raises AllocationError if the claims cannot be allocated anywhere."""
        status, found = self.look(claims, pod, node)
        if found is not None:
            claims.by_node[node.name] = found
        elif status is NOT_AVAILABLE:
            claims.unavailable.update(self.unavailable(claims, node))
        return status

    def look(
        self, claims: PodClaims, pod: Pod, node: NodeInfo
    ) -> tuple[Status, NodeAllocation | None]:
        """The verdict, and what the pod gets if it is allocated here. Raises AllocationError."""
        found = NodeAllocation([])
        if claims.extended is not None:
            status = self._extend(claims, pod, node, found)
            if status is not None:
                return status, None
        assert node.node is not None
        if claims.allocator is not None:
            wanted = [
                found.extended
                if index == claims.extended_at and found.extended is not None
                else claims.claims[index]
                for index in claims.to_allocate
            ]
            try:
                allocations = self._allocate(claims.allocator, node.node, wanted)
            except NodeOnlyError as error:
                return unresolvable(str(error)), None
            if allocations is None:
                return CANNOT_ALLOCATE, None
            found.allocations = allocations
        if self.unavailable(claims, node):
            return NOT_AVAILABLE, None
        return SUCCESS, None if claims.allocator is None else found

    def available_rows(self, claims: PodClaims, columns: Columns, rows: Rows) -> Mask:
        """The rows on which all claims, which are allocated, can be used."""
        available = np.ones(row_count(rows), np.bool_)
        for index, claim in enumerate(claims.claims):
            terms = claims.available_on[index]
            if self._has_failed(claim):
                available[:] = False
            elif terms is not None:
                available &= match_rows_any(terms, columns, rows)
        return available

    def _extend(
        self, claims: PodClaims, pod: Pod, node: NodeInfo, found: NodeAllocation
    ) -> Status | None:
        """Find out what devices must serve; a status if that is all there is to say."""
        claim = claims.extended
        assert claim is not None
        if claim.spec.devices.requests:
            return LEFT_OVER
        classes = self._cluster.device_classes
        try:
            served = extended_resources.served_by_devices(
                claims.resources, node.allocatable, classes
            )
        except CannotFit:
            return CANNOT_FIT
        if not served and not claims.has_user_claims:
            return SUCCESS
        made = claims.extended_for.get(served)
        if made is None:
            requests, mappings = extended_resources.requests_for(pod, served, classes)
            made = extended_resources.claim_with(claim, requests), mappings
            claims.extended_for[served] = made
        found.extended, found.mappings = made
        return None

    def unavailable(self, claims: PodClaims, node: NodeInfo) -> list[int]:
        """The positions of allocated claims that cannot be used on the node."""
        assert node.node is not None
        unavailable = []
        for index, claim in enumerate(claims.claims):
            terms = claims.available_on[index]
            if terms is not None and not matches_any(terms, node.node):
                unavailable.append(index)
            elif claim.status.allocation is not None and self._has_failed(claim):
                unavailable.append(index)
        return unavailable

    def _has_failed(self, claim: ResourceClaim) -> bool:
        """Whether the claim's devices did not get ready, and should be given back."""
        if self._binding_timeout_s is None:
            return False
        try:
            if is_ready(claim):
                return False
        except BindingConditionFailed:
            return True
        now = datetime.fromtimestamp(self._handle.clock.now(), UTC)
        return has_timed_out(claim, now, self._binding_timeout_s)

    def _allocate(
        self, allocator: Allocator, node: Node, claims: list[ResourceClaim]
    ) -> list[Allocation] | None:
        try:
            return allocator.allocate(node, claims, self._deadline())
        except AllocationTimeout as error:
            raise PluginError(TIMED_OUT.format(node.name)) from error

    def _deadline(self) -> Callable[[], bool] | None:
        """Whether the time for one node is over, by the clock that the scheduler was given or by steps."""
        if not self._filter_timeout_s:
            return None
        clock = self._handle.clock
        end = clock.now() + self._filter_timeout_s
        out_of_steps = after_steps_of(self._filter_timeout_s)
        return lambda: out_of_steps() or clock.now() >= end
