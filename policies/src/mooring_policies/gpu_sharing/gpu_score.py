"""What the score plugins for GPUs have in common: a rule over rows, which is also the rule for a node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from mooring.objects.pod import Pod
from mooring.plugin import Columns, CycleState, Depends, Ints, NodeInfo, Rows
from mooring_policies.gpu_sharing.free_gpus import FreeGpus, GpuRows
from mooring_policies.gpu_sharing.typical_pods import Shape, shape_of


class GpuScore(ABC):
    """A policy that scores a node by its free GPUs and cpu, and the shape of the pod."""

    @abstractmethod
    def scores(self, shape: Shape, nodes: GpuRows) -> Ints:
        """int64[row]: the score of each node; the nodes have room for the pod."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(self.scores(shape_of(pod), FreeGpus.within(state).of_node(node))[0])

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return self.scores(shape_of(pod), FreeGpus.within(state).of_rows(columns, rows))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"shape": shape_of(pod)}
