"""Random clusters that are about resources: small numbers, none at all, and some at int64's edge."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.row_states import LARGEST
from mooring.objects.devices import DeviceClass, DeviceClassSpec
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Container, Pod
from mooring.objects.requests import PODS
from tests.makers import make_container, make_node, make_pod, resources

GPU = "example.com/gpu"
HUGE_PAGES = "hugepages-2Mi"
ATTACHABLE = "attachable-volumes-csi"
IMPLICIT = "deviceclass.resource.kubernetes.io/big"
#: Counted nowhere.
UNKNOWN = "foo"
#: The last is on no node.
NAMES = ("cpu", "memory", "ephemeral-storage", GPU, HUGE_PAGES, IMPLICIT, UNKNOWN, ATTACHABLE)

#: "10E" is 0 as an integer, and a number of twenty digits wraps around to a negative one.
EXTREME = ("9223372036854775807", "92233720368547759", "10E", "18446744073709551615", "-1", "-3")


def amounts() -> st.SearchStrategy[str]:
    few = st.integers(0, 8).map(str)
    return few | few | st.integers(0, 2**40).map(str) | st.sampled_from(EXTREME)


def resource_lists(*names: str) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(names), amounts(), max_size=4)


def containers() -> st.SearchStrategy[Container]:
    return st.builds(make_container, requests=resource_lists(*NAMES))


@st.composite
def pods(draw: st.DrawFn, name: str = "p", node: str | None = None) -> Pod:
    return make_pod(
        name,
        node=node,
        containers=draw(st.lists(containers(), min_size=1, max_size=2)),
        pod_level=draw(st.none() | resource_lists("cpu", "memory")),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    node = make_node(name, pods=draw(st.sampled_from((None, "0", "1", "2", "110"))))
    offered = {
        **resources(draw(resource_lists(*NAMES[:-1]))),
        **{n: q for n, q in node.status.allocatable.items() if n == PODS},
    }
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, allocatable=offered)
    )


def make_device_class(name: str, serves: str | None = None) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=serves)
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes with pods on them, some of which have left, and perhaps device classes."""
    cluster = Cluster()
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    for name in names:
        cluster.add_node(draw(nodes(name)))
        for i in range(draw(st.integers(0, 2))):
            cluster.add_pod(draw(pods(f"{name}-{i}", node=name)))
    cluster.snapshot()
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=2)):
        cluster.remove_node(name)
    for served in draw(st.lists(st.sampled_from((None, GPU)), max_size=2)):
        cluster.listers.put(make_device_class("big", served))
    return cluster


def _few_or_many() -> st.SearchStrategy[int]:
    """Small ones, those of real nodes, and some near the largest that states of rows are kept for."""
    largest = st.sampled_from((LARGEST - 1, LARGEST, LARGEST + 1))
    return st.integers(1, 9) | st.integers(1, 2**40) | largest


@st.composite
def ordinary_pods(draw: st.DrawFn, name: str = "p", node: str | None = None) -> Pod:
    """Cpu and memory, or one of them, or none."""
    cpu, memory = draw(st.none() | _few_or_many()), draw(st.none() | _few_or_many())
    return make_pod(name, node=node, cpu=cpu and f"{cpu}m", memory=memory)


@st.composite
def ordinary_clusters(draw: st.DrawFn) -> Cluster:
    """Every node offers cpu and memory, and may have more pods than fit."""
    cluster = Cluster()
    for i in range(draw(st.integers(1, 4))):
        cpu, memory = draw(_few_or_many()), draw(_few_or_many())
        pods = draw(st.sampled_from((1, 2, 3, 110)))
        cluster.add_node(make_node(f"n{i}", cpu=f"{cpu}m", memory=memory, pods=pods))
        for number in range(draw(st.integers(0, 2))):
            cluster.add_pod(draw(ordinary_pods(f"n{i}-{number}", node=f"n{i}")))
    if draw(st.booleans()):
        cluster.remove_node("n0")
    return cluster
