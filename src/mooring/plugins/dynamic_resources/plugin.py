"""The plugin: look up claims, judge nodes, choose, reserve and bind devices."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from mooring.objects.devices import (
    Allocation,
    DeviceClass,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource_claims import ClaimProblem, reference_to, with_finalizer
from mooring.objects.selectors import NodeSelector, NodeTerm, compile_node_term
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Code,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Ints,
    MooringError,
    NodeInfo,
    NodeStatuses,
    PluginError,
    PostFilterResult,
    PreFlight,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_mask,
    by_table,
    row_count,
    unresolvable,
    unschedulable,
)
from mooring.plugin.args import DynamicResourcesArgs
from mooring.plugins.dynamic_resources import extended_resources
from mooring.plugins.dynamic_resources.binding import ClaimBinder
from mooring.plugins.dynamic_resources.deallocation import Deallocation
from mooring.plugins.dynamic_resources.hints import Hints
from mooring.plugins.dynamic_resources.kept_allocations import KeptAllocations
from mooring.plugins.dynamic_resources.node_filter import NOT_AVAILABLE, NodeFilter
from mooring.plugins.dynamic_resources.pod_claims import (
    NO_CLAIMS,
    NodeAllocation,
    PodClaims,
    claims_and_users,
    claims_of,
)
from mooring.plugins.normalize import normalize

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
NO_STATE = Status(Code.ERROR, ("not found",))
NOT_SIGNABLE = unschedulable("pods with dra resource claims are not signable")
IN_FLIGHT = "resource claim {} is in the process of being allocated"
NO_CLASS = "request {}: device class {} does not exist"
NO_CLASS_NAME = "request {}: unsupported request type"
NO_ALTERNATIVES = (
    "resource claim {}, request {}: has subrequests, but the DRAPrioritizedList feature is disabled"
)
UNKNOWN_REQUEST = "resource claim {}, request {}: unknown request type"
NO_ALLOCATION = "claim allocation not found for node"
WRONG_COUNT = "internal error, have {} allocations, {} claims to allocate, want {} claims"

#: A request may have this many alternatives; the score of the first is this.
_MOST_ALTERNATIVES = 8

_SHARES = uuid.UUID("6d6f6f72-696e-4673-8000-000000000000")
_STATE = "DynamicResources"


class DynamicResources:
    name = "DynamicResources"
    #: Device classes decide which resources devices serve.
    depends_on_kinds = (DeviceClass,)
    normalizes_by_extremes = True

    def __init__(self, args: DynamicResourcesArgs | None, handle: Handle) -> None:
        args = args or DynamicResourcesArgs()
        filter_timeout, binding_timeout = args.filter_timeout, args.binding_timeout
        self._handle = handle
        self._cluster = handle.cluster
        self._cache = handle.cluster.claims
        self._classes = handle.cluster.device_classes
        binding_timeout_s = None if binding_timeout is None else binding_timeout.seconds
        self._filter = NodeFilter(
            handle,
            filter_timeout_s=0.0 if filter_timeout is None else filter_timeout.seconds,
            binding_timeout_s=binding_timeout_s,
        )
        self._kept = KeptAllocations(handle.cluster)
        self._deallocation = Deallocation(handle)
        self._binder = ClaimBinder(handle, binding_timeout_s=binding_timeout_s)
        self._hints = Hints(handle.cluster)

    # Before a node is looked for

    def pre_enqueue(self, pod: Pod) -> Status:
        if pod.spec.resource_claims:
            try:
                claims_of(pod, self._cache)
            except ClaimProblem as problem:
                return unresolvable(str(problem))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        state.write(_STATE, NO_CLAIMS)
        served = self._classes.serve(pod)
        if not pod.spec.resource_claims and not served:
            return SKIP
        try:
            claims = PodClaims(*claims_and_users(pod, self._cache, self._sharing_group(pod)))
        except ClaimProblem as problem:
            return unresolvable(str(problem))
        if served:
            self._add_extended(claims, pod)
        if not claims.claims:
            return SKIP
        for index, claim in enumerate(claims.claims):
            allocation = claim.status.allocation
            if allocation is not None:
                claims.available_on.append(_terms(allocation.node_selector))
                continue
            shared = self._cache.in_flight_for(claim.uid, self._group_of(pod))
            if shared is not None:
                claims.available_on.append(_terms(shared.node_selector))
                claims.reused[index] = shared
                continue
            claims.available_on.append(None)
            claims.to_allocate.append(index)
            status = self._check(claim, is_extended=index == claims.extended_at)
            if status is not None:
                return status
        if claims.to_allocate:
            claims.allocator = self._cluster.device_pools.allocator()
        state.write(_STATE, claims)
        return SUCCESS

    def _group_of(self, pod: Pod) -> str:
        """The group whose pods are placed together; "" if the pod is placed alone."""
        grouped = pod.spec.scheduling_group is not None and self._cluster.pod_groups is not None
        return pod.group_key if grouped else ""

    def _sharing_group(self, pod: Pod) -> PodGroup | None:
        """The group whose claims the pod shares."""
        if not self._cache.groups_own_claims or not pod.group_key:
            return None
        return self._cluster.listers.get(PodGroup, pod.group_key)

    def _add_extended(self, claims: PodClaims, pod: Pod) -> None:
        """Add the claim for extended resources: one of an earlier attempt, or a new one."""
        claim = self._cache.extended_resource_claim_of(pod) or extended_resources.new_claim(pod)
        claims.extended_at = len(claims.claims)
        claims.extended_uid = claim.uid
        claims.resources = extended_resources.requested(pod)
        claims.claims.append(claim)
        claims.users.append(reference_to(pod))

    def _check(self, claim: ResourceClaim, *, is_extended: bool) -> Status | None:
        """Why a claim cannot be allocated on any node."""
        if self._cache.in_flight(claim.uid) is not None:
            return unresolvable(IN_FLIGHT.format(claim.key))
        if is_extended:
            return None
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                status = self._check_class(request.exactly.device_class_name, request.name)
                if status is not None:
                    return status
            elif request.first_available:
                if not self._handle.gates.enabled("DRAPrioritizedList"):
                    return unresolvable(NO_ALTERNATIVES.format(claim.key, request.name))
                for alternative in request.first_available:
                    name = _qualified(request.name, alternative)
                    status = self._check_class(alternative.device_class_name, name)
                    if status is not None:
                        return status
            else:
                return unresolvable(UNKNOWN_REQUEST.format(claim.key, request.name))
        return None

    def _check_class(self, class_name: str, request: str) -> Status | None:
        if not class_name:
            raise PluginError(NO_CLASS_NAME.format(request))
        if self._cluster.listers.get(DeviceClass, class_name) is None:
            return unresolvable(NO_CLASS.format(request, class_name))
        return None

    # Nodes

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        claims = _read(state)
        if not claims.claims:
            return SUCCESS
        return self._filter.judge(claims, pod, node)

    def filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        """All rows at once if all claims are allocated, or none is; otherwise node by node.

        A claim or class that no node can satisfy makes an error only if some node is asked about it.
        """
        claims = _read(state)
        if not claims.to_allocate:
            claims.by_rows = True
            return by_mask(self._filter.available_rows(claims, columns, rows), NOT_AVAILABLE)
        if len(claims.to_allocate) < len(claims.claims):
            return None
        try:
            claims.kept = self._kept.of(
                claims,
                pod,
                columns,
                lambda node: self._filter.look(claims, pod, node),
                lambda found: _score(claims, found),
            )
        except MooringError:
            return None
        return by_table(claims.kept.codes[rows].copy(), claims.kept.statuses)

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Without state, return an error, so that no other PostFilter runs, not even preemption.

        There is no state if an earlier PreFilter ended the attempt. The reference does the same.
        """
        claims = self._after_filter(state, statuses)
        if claims is None:
            return None, NO_STATE
        return None, self._deallocation.help_pod(claims, pod)

    def _after_filter(self, state: CycleState, statuses: NodeStatuses) -> PodClaims | None:
        """The state, with the claims that some node cannot use."""
        claims = state.read(_STATE, PodClaims)
        if claims is not None and claims.by_rows:
            claims.by_rows = False
            for node in statuses.nodes_with(Code.UNRESOLVABLE):
                if statuses.get(node.name).reasons == NOT_AVAILABLE.reasons:
                    claims.unavailable.update(self._filter.unavailable(claims, node))
        return claims

    async def give_back(self, state: CycleState, pod: Pod) -> None:
        """Do what `post_filter` does beside the scheduling cycle, now."""
        claims = state.read(_STATE, PodClaims)
        if claims is not None:
            await self._deallocation.carry_out(self._deallocation.plan(claims, pod), pod)

    def answer_post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """What `post_filter` would say, without doing it: for explanations."""
        claims = self._after_filter(state, statuses)
        if claims is None:
            return None, NO_STATE
        return None, self._deallocation.plan(claims, pod).status

    def post_filter_repeats(self, pod: Pod) -> bool:
        """A pod without claims has none to deallocate."""
        return not pod.spec.resource_claims and not self._classes.serve(pod)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The earlier the alternatives that requests got, the better."""
        claims = _read(state)
        found = claims.found_on(node.name)
        return 0 if found is None else _score(claims, found)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        claims = _read(state)
        if claims.kept is not None:
            return claims.kept.scores[rows].copy()
        scores: Ints = np.zeros(row_count(rows), np.int64)
        if claims.by_node and any(_has_alternatives(claim) for claim in claims.claims):
            for place, name in enumerate(columns.names_of(rows)):
                found = claims.by_node.get(name)
                if found is not None:
                    scores[place] = _score(claims, found)
        return scores

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        normalize(scores)

    # The chosen node

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Put the allocations in flight, so that no other pod takes the devices."""
        claims = _read(state)
        if not claims.claims:
            return
        group = self._group_of(pod)
        claims.chosen = [None] * len(claims.claims)
        for index, allocation in claims.reused.items():
            self._choose(claims, index, claims.claims[index], allocation, group)
        if not claims.to_allocate:
            return
        found = claims.found_on(node_name)
        if found is None or not found.allocations:
            if claims.to_allocate == [claims.extended_at]:
                return  # The node itself offers the resources.
            raise PluginError(NO_ALLOCATION)
        wanted = len(claims.to_allocate)
        if len(found.allocations) != wanted:
            raise PluginError(WRONG_COUNT.format(len(found.allocations), wanted, wanted))
        if claims.extended is not None and found.extended is not None:
            # What is kept was found for another pod.
            requests = found.extended.spec.devices.requests
            extended = extended_resources.claim_with(claims.extended, requests)
            found = NodeAllocation(found.allocations, extended, found.mappings)
        claims.by_node[node_name] = found
        for index, allocation in zip(claims.to_allocate, found.allocations, strict=True):
            claim = claims.claims[index]
            if index == claims.extended_at and found.extended is not None:
                claim = found.extended
            self._choose(claims, index, claim, self._with_share_ids(allocation, claim), group)

    def _choose(
        self,
        claims: PodClaims,
        index: int,
        claim: ResourceClaim,
        allocation: Allocation,
        group: str,
    ) -> None:
        claims.chosen[index] = allocation
        status = ResourceClaimStatus(allocation=allocation)
        self._cache.signal(replace(with_finalizer(claim), status=status), group)

    def _with_share_ids(self, allocation: Allocation, claim: ResourceClaim) -> Allocation:
        """Shares get identities that no other allocation has, the same in every run."""
        results = allocation.devices.results
        if all(result.share_id is None for result in results):
            return allocation
        seed = f"{claim.uid}/{self._handle.clock.now()}"
        identified = [
            result
            if result.share_id is None
            else replace(result, share_id=str(uuid.uuid5(_SHARES, f"{seed}/{number}")))
            for number, result in enumerate(results)
        ]
        return replace(allocation, devices=replace(allocation.devices, results=identified))

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        claims = state.read(_STATE, PodClaims)
        if claims is not None and claims.claims:
            self._deallocation.undo(claims, pod)

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreFlight | Status:
        return PreFlight(allow_parallel=True) if _read(state).claims else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        await self.write_claims(state, pod, node_name)
        await self._binder.wait_until_ready(_read(state), pod, node_name)

    async def write_claims(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """The first part of PreBind, without the wait for devices."""
        await self._binder.write(_read(state), pod, node_name)

    def close(self) -> None:
        self._binder.close()

    # Queueing, and what is kept of the answers

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events()

    def depends_on(self, pod: Pod) -> Depends:
        served = pod.spec.resource_claims or self._classes.serve(pod)
        return Depends.CLUSTER if served else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return NOT_SIGNABLE if pod.spec.resource_claims else {}

    def devices(self, state: CycleState) -> dict[str, list[str]]:
        """For each claim, the devices it holds or will hold, sorted; known after Reserve."""
        claims = state.read(_STATE, PodClaims) or NO_CLAIMS
        held = {}
        for index, claim in enumerate(claims.claims):
            chosen = claims.chosen[index] if claims.chosen else None
            allocation = chosen or claim.status.allocation
            if allocation is not None:
                held[claim.name] = sorted(
                    f"{result.request}={result.driver}/{result.pool}/{result.device}"
                    for result in allocation.devices.results
                )
        return held


def _read(state: CycleState) -> PodClaims:
    claims = state.read(_STATE, PodClaims)
    if claims is None:
        raise PluginError("not found")
    return claims


def _terms(selector: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Raises PluginError if the selector of an allocation makes no sense."""
    if selector is None:
        return None
    try:
        compiled = [compile_node_term(term) for term in selector.node_selector_terms]
    except ValueError as error:
        raise PluginError(str(error)) from error
    return tuple(term for term in compiled if term is not None)


def _qualified(request: str, alternative: DeviceSubRequest) -> str:
    return f"{request}/{alternative.name}"


def _has_alternatives(claim: ResourceClaim) -> bool:
    return any(request.first_available for request in claim.spec.devices.requests)


def _score(claims: PodClaims, found: NodeAllocation) -> int:
    score = 0
    allocations = iter(found.allocations)
    for claim in claims.claims:
        allocation = claim.status.allocation or next(allocations)
        taken = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            if request.exactly is None:
                for place, alternative in enumerate(request.first_available):
                    if _qualified(request.name, alternative) in taken:
                        score += _MOST_ALTERNATIVES - place
    return score
