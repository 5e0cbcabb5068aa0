"""What a pod wants of GPUs, and what a node has.

    a share of one GPU    mooring.dev/gpu-milli: 460
    whole GPUs            nvidia.com/gpu: 4
    only these models     node affinity or node selector on the label nvidia.com/gpu.product

The names of Alibaba's GPU sharing are understood too: pods have the annotations `alibabacloud.com/gpu-milli`,
`gpu-count` and `gpu-card-model` (`A10|T4`), nodes the resource `gpu-count` and the label `gpu-card-model`.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.objects.node import Node
from mooring.objects.pod import Pod

#: A whole GPU, in thousandths.
WHOLE = 1000

GPU = "nvidia.com/gpu"
GPU_MILLI = "mooring.dev/gpu-milli"
GPU_MODEL = "nvidia.com/gpu.product"

_ALIBABA = "alibabacloud.com/"
ALIBABA_MILLI = _ALIBABA + "gpu-milli"
ALIBABA_COUNT = _ALIBABA + "gpu-count"
ALIBABA_MODEL = _ALIBABA + "gpu-card-model"

_MODEL_LABELS = (GPU_MODEL, ALIBABA_MODEL)


class GpuRequest(NamedTuple):
    """A number of GPUs, and how much of each, in thousandths; both are 0 for a pod without GPUs."""

    gpus: int
    milli: int

    @property
    def is_share(self) -> bool:
        return self.gpus == 1 and self.milli < WHOLE

    @property
    def total_milli(self) -> int:
        return self.gpus * self.milli


NO_GPU = GpuRequest(0, 0)


def gpu_request(pod: Pod) -> GpuRequest:
    annotations = pod.metadata.annotations
    if annotations and ALIBABA_MILLI in annotations:
        milli, count = _number(annotations[ALIBABA_MILLI]), _number(annotations.get(ALIBABA_COUNT))
        return GpuRequest(count, min(milli, WHOLE)) if milli and count else NO_GPU
    requests = pod.requests
    whole = requests.get(GPU, 0)
    if whole:
        return GpuRequest(whole, WHOLE)
    milli = requests.get(GPU_MILLI, 0)
    if milli < WHOLE:
        return GpuRequest(1, milli) if milli else NO_GPU
    return GpuRequest(-(-milli // WHOLE), WHOLE)


def gpu_models(pod: Pod) -> tuple[str, ...]:
    """The models that the pod is restricted to, in order; empty if any will do.

    Of node affinity, only a single term counts that names the models: other rules are for NodeAffinity.
    """
    text = pod.metadata.annotations.get(ALIBABA_MODEL, "") if pod.metadata.annotations else ""
    models = {model for model in text.split("|") if model}
    selector = pod.spec.node_selector or {}
    models.update(selector[label] for label in _MODEL_LABELS if label in selector)
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = required.node_selector_terms if required is not None else []
    if len(terms) == 1:
        for expression in terms[0].match_expressions:
            if expression.key in _MODEL_LABELS and expression.operator == "In":
                models.update(expression.values)
    return tuple(sorted(models))


def gpu_count(node: Node | None) -> int:
    if node is None:
        return 0
    allocatable = node.status.allocatable
    for name in (GPU, ALIBABA_COUNT):
        if name in allocatable:
            return max(0, allocatable[name].value)
    return 0


def gpu_model(node: Node | None) -> str:
    labels = node.labels if node is not None else {}
    return labels.get(GPU_MODEL) or labels.get(ALIBABA_MODEL, "")


def cpu_milli(pod: Pod) -> int:
    """As scoring counts it: a container without a request has a default."""
    return pod.held_non_zero[0]


def _number(text: str | None) -> int:
    """0 for what is no number, as Alibaba's scheduler reads it."""
    return int(text) if text and text.isascii() and text.isdigit() else 0
