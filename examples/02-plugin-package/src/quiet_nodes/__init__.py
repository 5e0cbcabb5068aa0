"""QuietNodes: the fewer pods a node has, the better."""

from __future__ import annotations

from mooring.objects.pod import Pod
from mooring.plugin import CycleState, NodeInfo


class QuietNodes:
    name = "QuietNodes"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - len(node.pods))
