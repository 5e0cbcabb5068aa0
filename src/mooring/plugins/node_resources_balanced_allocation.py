"""NodeResourcesBalancedAllocation: a pod is best where it evens out how much of each resource is used.

A node with most of its memory taken and most of its cpu idle can use neither well. The score compares
the balance before and after the pod; a pod that asks for none of the resources is not scored, as every
such pod would be drawn to the same node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.cluster.columns import Columns, Ints, Rows, row_count
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.args import CPU_AND_MEMORY, NodeResourcesBalancedAllocationArgs
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, Handle
from mooring.framework.status import SKIP, SUCCESS, Status
from mooring.objects.kinds import DeviceClass
from mooring.objects.pod import Pod
from mooring.objects.requests import amount_of
from mooring.plugins import resource_scoring
from mooring.plugins.resource_scoring import NOT_SIGNABLE, Ask

_PRE_SCORE = "PreScoreNodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    #: Which resources devices serve is up to these.
    depends_on_kinds = (DeviceClass,)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None, handle: Handle) -> None:
        self._scored = (args and args.resources) or CPU_AND_MEMORY
        self._served_by_devices = handle.cluster.device_classes
        self._workspace = resource_scoring.Workspace()

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        ask = self._ask(pod)
        if not any(ask.amounts):
            return SKIP
        state.write(_PRE_SCORE, ask)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        ask = state.read(_PRE_SCORE, Ask) or self._ask(pod)
        if not any(ask.amounts):
            return 0
        allocated = [node.requested.get(name, 0) for name in ask.names]
        return resource_scoring.balanced_allocation_score(
            ask.added_to(allocated),
            allocated,
            [node.allocatable.get(name, 0) for name in ask.names],
        )

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        ask = state.read(_PRE_SCORE, Ask) or self._ask(pod)
        scores: Ints = np.zeros(row_count(rows), np.int64)
        if not any(ask.amounts):
            return scores
        known = ask.on_rows(columns)
        allocated = resource_scoring.gathered(columns.requested, known.indices, rows)
        allocatable = resource_scoring.gathered(columns.allocatable, known.indices, rows)
        return resource_scoring.balanced_allocation(
            allocated + known.amounts,
            allocated,
            allocatable,
            out=scores,
            workspace=self._workspace,
        )

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """Other pods that ask for as much of the same resources are scored the same."""
        if self._served_by_devices.serve_any_of(pod.requests):
            return NOT_SIGNABLE
        return {"NodeResourcesBalancedAllocation.Score": self._ask(pod)}

    def _ask(self, pod: Pod) -> Ask:
        """Any name may be configured, so also one that is counted nowhere: it keeps a pod scored."""
        held = pod.held_resources
        requests = {
            resource.name: amount_of(resource.name, held[resource.name])
            for resource in self._scored
            if resource.name in held
        }
        return resource_scoring.ask_of(self._scored, requests)
