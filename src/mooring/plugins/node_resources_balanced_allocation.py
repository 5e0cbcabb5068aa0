"""NodeResourcesBalancedAllocation: prefer nodes where the pod balances the use of resources.

A node with little free memory cannot use its free cpu. The score compares the balance before and
after the pod. A pod that requests none of the resources is not scored, because all such pods would
go to the same node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.objects.devices import DeviceClass
from mooring.objects.pod import Pod
from mooring.objects.requests import amount_of
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    Handle,
    Ints,
    NodeInfo,
    Rows,
    Snapshot,
    Status,
    row_count,
)
from mooring.plugin.args import CPU_AND_MEMORY, NodeResourcesBalancedAllocationArgs
from mooring.plugin.nodes import StateAmounts
from mooring.plugins import resource_scoring
from mooring.plugins.resource_scoring import NOT_SIGNABLE, Floats, Offers, ScoredRequest

_PRE_SCORE = "PreScoreNodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    #: Device classes decide which resources devices serve.
    depends_on_kinds = (DeviceClass,)
    #: See `runtime.usage_columns`.
    reads_usage_columns = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None, handle: Handle) -> None:
        self._scored = (args and args.resources) or CPU_AND_MEMORY
        self._counted = resource_scoring.ScoredResources(self._scored)
        self._served_by_devices = handle.cluster.device_classes
        self._device_counts = handle.cluster.device_counts
        self._infos = handle.cluster.infos
        self._workspace = resource_scoring.Workspace()
        self._offers = resource_scoring.KeptOffers()
        self._columns_of = resource_scoring.ScoredColumns()
        #: The pod that was last asked about, and its request.
        self._last_pod: Pod | None = None
        self._last_request = ScoredRequest((), (), ())

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        request = self._scored_request(pod)
        if not any(request.amounts):
            return SKIP
        state.write(_PRE_SCORE, request)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        request = state.read(_PRE_SCORE, ScoredRequest) or self._scored_request(pod)
        if not any(request.amounts):
            return 0
        held, offered = node.requested, node.allocatable
        allocated = [held.get(name, 0) for name in request.names]
        allocatable = [offered.get(name, 0) for name in request.names]
        if 0 in allocatable:
            counts = self._device_counts
            resource_scoring.count_devices(request, node, allocated, allocatable, counts)
        return resource_scoring.balanced_allocation_score(
            request.added_to(allocated), allocated, allocatable
        )

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        request = state.read(_PRE_SCORE, ScoredRequest) or self._scored_request(pod)
        if not any(request.amounts):
            return np.zeros(row_count(rows), np.int64)
        scores: Ints = np.empty(row_count(rows), np.int64)
        known = self._columns_of.request(request, columns)
        allocated = resource_scoring.gathered(columns.requested, known.indices, rows)
        allocatable: Ints | Offers = self._offers.of(columns, known.indices, rows)
        amounts = known.amounts
        if self._served_by_devices.any and any(map(self._device_counts.counts, request.names)):
            allocated, allocatable = resource_scoring.count_devices_of_rows(
                request,
                columns,
                rows,
                allocated,
                resource_scoring.gathered(columns.allocatable, known.indices, rows),
                self._device_counts,
                self._infos,
            )
            amounts = resource_scoring.as_column(request.amounts)
        return resource_scoring.balanced_allocation(
            self._workspace.sum(allocated, amounts),
            allocated,
            allocatable,
            out=scores,
            workspace=self._workspace,
        )

    def score_states(self, state: CycleState, pod: Pod, states: StateAmounts) -> Floats | None:
        """The same by state; None if this is not how the resources are scored."""
        request = self._scored_request(pod)
        if not self._counted.are_plain or not any(request.amounts):
            return None
        if not resource_scoring.is_exact_on_states(request):
            return None
        return resource_scoring.balanced_allocation_on_states(request, states)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sees_only_resources(self, pod: Pod) -> bool:
        """Devices are not among the columns. See `runtime.answers`."""
        return not self._served_by_devices.any

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """Pods with the same requests for these resources have the same scores."""
        if self._served_by_devices.serve_any_of(pod.requests):
            return NOT_SIGNABLE
        return {"NodeResourcesBalancedAllocation.Score": self._scored_request(pod)}

    def _scored_request(self, pod: Pod) -> ScoredRequest:
        """A configured resource that scheduling does not count still makes the pod scored."""
        if pod is not self._last_pod:
            counted, held = pod.held, pod.held_resources
            if len(counted) < len(held):
                uncounted = held.keys() - counted.keys()
                counted = counted | {name: amount_of(name, held[name]) for name in uncounted}
            self._last_request = self._counted.request(counted)
            self._last_pod = pod
        return self._last_request
