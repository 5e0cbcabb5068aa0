"""The OpenB trace: a GPU cluster of Alibaba over five months, published with 'Beware of Fragmentation'.

Pods share its GPUs in thousandths, and Kubernetes has no resource for that. This reader translates:

    the trace says               the objects have
    node: gpu = 8                mooring.dev/gpu-milli: 8000, nvidia.com/gpu: 8
    node: model = T4             label nvidia.com/gpu.product=T4
    pod: num_gpu = 1, 460 milli  mooring.dev/gpu-milli: 460
    pod: num_gpu = 4, 1000 milli mooring.dev/gpu-milli: 4000, nvidia.com/gpu: 4
    pod: gpu_spec = A10|T4       required node affinity: nvidia.com/gpu.product in (A10, T4)
    pod: qos = LS                label qos=LS, and a priority if one is given for it

So the GPUs of a node are one pool. The sum over a node is never exceeded, but a share can span two GPUs,
which real hardware does not allow. That is a lower bound of the needed GPUs. `Sharing.WHOLE` gives every
share its own GPU, which is an upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from mooring.objects.meta import ResourceList
from mooring.objects.node import Node
from mooring.objects.pod import Affinity, NodeAffinity, PodSpec
from mooring.objects.quantity import Quantity, parse_quantity
from mooring.objects.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement
from mooring.sim.traces.objects import PodMaker, make_node, make_spec
from mooring.sim.traces.table import Row, Table
from mooring.sim.traces.trace import TracePod

GPU = "nvidia.com/gpu"
GPU_MILLI = "mooring.dev/gpu-milli"
GPU_MODEL = "nvidia.com/gpu.product"
QOS = "qos"

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
#: Some lists also have gpu_spec, qos, creation_time, deletion_time and scheduled_time. Without times, pods
#: arrive at once and never end.
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

NOTES = (
    "the trace has no pod limit for nodes; each node takes 110 pods",
    "pods without a scheduled time leave at their deletion time; others run as long as recorded",
)

_PODS_A_NODE = "110"
WHOLE_MILLI = 1000


class Sharing(StrEnum):
    """How a share of a GPU is requested."""

    POOL = "pool"
    WHOLE = "whole"


def read_nodes(table: Table, problems: list[str]) -> list[Node]:
    table.check_columns(NODE_COLUMNS)
    return [_node(row) for row in table.each(problems)]


def read_pods(
    table: Table, problems: list[str], *, sharing: Sharing, priorities: Mapping[str, int]
) -> list[TracePod]:
    """`priorities` by quality of service; the default is 0."""
    table.check_columns(POD_COLUMNS)
    maker = PodMaker()
    return [_pod(row, maker, sharing, priorities) for row in table.each(problems)]


def _node(row: Row) -> Node:
    gpus = row.whole("gpu")
    allocatable = _cpu_and_memory(row)
    allocatable["pods"] = parse_quantity(_PODS_A_NODE)
    if gpus:
        allocatable[GPU] = _count(gpus)
        allocatable[GPU_MILLI] = _count(gpus * WHOLE_MILLI)
    model = row.text("model")
    return make_node(row.name("sn"), allocatable, {GPU_MODEL: model} if model else {})


def _pod(row: Row, maker: PodMaker, sharing: Sharing, priorities: Mapping[str, int]) -> TracePod:
    qos = row.text("qos")
    columns = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
    shape = (*(row.text(column) for column in columns), priorities.get(qos, 0))
    pod = maker.make(
        row.name("name"),
        shape,
        lambda: _spec(row, sharing, priorities.get(qos, 0)),
        labels={QOS: qos} if qos else {},
    )
    arrives_s = row.seconds("creation_time") or 0.0
    placed_s, leaves_s = row.seconds("scheduled_time"), row.seconds("deletion_time")
    if placed_s is None or leaves_s is None:
        return TracePod(pod, arrives_s, leaves_s=leaves_s)
    return TracePod(pod, arrives_s, run_s=max(0.0, leaves_s - placed_s))


def _spec(row: Row, sharing: Sharing, priority: int) -> PodSpec:
    requests = _cpu_and_memory(row)
    gpus, milli = row.whole("num_gpu"), row.whole("gpu_milli")
    if gpus and sharing is Sharing.WHOLE:
        milli = WHOLE_MILLI
    if gpus and milli:
        requests[GPU_MILLI] = _count(gpus * milli)
        if milli >= WHOLE_MILLI:
            requests[GPU] = _count(gpus)
    models = sorted(set(filter(None, row.text("gpu_spec").split("|"))))
    return make_spec(
        requests, priority=priority, affinity=_one_of(models) if models and gpus else None
    )


def _one_of(models: list[str]) -> Affinity:
    in_models = SelectorRequirement(key=GPU_MODEL, operator="In", values=models)
    term = NodeSelectorTerm(match_expressions=[in_models])
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term])))


def _cpu_and_memory(row: Row) -> ResourceList:
    return {
        "cpu": parse_quantity(f"{row.whole('cpu_milli')}m"),
        "memory": parse_quantity(f"{row.whole('memory_mib')}Mi"),
    }


def _count(number: int) -> Quantity:
    return parse_quantity(str(number))
