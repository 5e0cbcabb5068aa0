"""Clusters with GPUs for tests, and the handle that plugins get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.objects.pod import Pod
from mooring_policies.gpu_sharing.free_gpus import GPU_INDEX
from mooring_policies.gpu_sharing.requests import GPU, GPU_MILLI, GPU_MODEL
from tests.clock import FakeClock
from tests.makers import make_node, make_node_affinity, make_node_term, make_pod


@dataclass
class Handle:
    """What the policies use of a handle."""

    cluster: Cluster = field(default_factory=Cluster)
    expected_pods: Sequence[Pod] = ()
    writer: Any = None
    clock: Any = field(default_factory=FakeClock)
    observed_pod: Callable[[str], Pod | None] = lambda _: None


def gpu_node(name: str = "n", gpus: int = 2, *, model: str = "", cpu: int = 64):
    extra = {GPU: gpus, GPU_MILLI: 1000 * gpus} if gpus else {}
    return make_node(name, cpu=cpu, labels={GPU_MODEL: model} if model else None, **extra)


def gpu_pod(
    name: str = "p",
    *,
    share: int = 0,
    whole: int = 0,
    cpu: str = "1",
    models: Sequence[str] = (),
    node: str | None = None,
    on: str = "",
) -> Pod:
    """`on` is the annotation with the GPUs that the pod holds."""
    requests = (
        {GPU_MILLI: share} if share else {GPU: whole, GPU_MILLI: 1000 * whole} if whole else {}
    )
    affinity = make_node_affinity(make_node_term((GPU_MODEL, "In", models))) if models else None
    return make_pod(
        name,
        cpu=cpu,
        requests=requests,
        affinity=affinity,
        node=node,
        annotations={GPU_INDEX: on} if on else None,
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "p", node: str | None = None) -> Pod:
    kind = draw(st.sampled_from(("cpu", "share", "whole")))
    return gpu_pod(
        name,
        share=draw(st.integers(1, 999)) if kind == "share" else 0,
        whole=draw(st.integers(1, 3)) if kind == "whole" else 0,
        cpu=f"{draw(st.integers(1, 30))}",
        models=draw(st.lists(st.sampled_from(("T4", "A10")), max_size=2, unique=True)),
        node=node,
        on=draw(st.sampled_from(("", "", "0", "1", "0-1", "7", "x"))) if node else "",
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes with pods on them; some pods do not say which GPUs they hold, or name GPUs that are not there."""
    cluster = Cluster()
    for i in range(draw(st.integers(1, 4))):
        name = f"n{i}"
        model = draw(st.sampled_from(("", "T4", "A10", "P100")))
        cluster.add_node(gpu_node(name, draw(st.integers(0, 4)), model=model))
        for j in range(draw(st.integers(0, 4))):
            cluster.add_pod(draw(pods(f"{name}-{j}", node=name)))
    return cluster
