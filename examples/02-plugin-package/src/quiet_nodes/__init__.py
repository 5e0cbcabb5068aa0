"""QuietNodes: the fewer pods a node has, the better."""

from __future__ import annotations

from mooring.cluster.node_info import NodeInfo
from mooring.framework.cycle_state import CycleState
from mooring.objects.pod import Pod


class QuietNodes:
    name = "QuietNodes"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - len(node.pods))
