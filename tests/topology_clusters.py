"""Random clusters that are about where pods are: domains, namespaces, and pods that come and go.

A history is a list of steps over a few names, so that what is drawn often meets: a node appears,
changes its labels and goes; a pod is placed, even on a node that is not known, is relabelled, begins
to terminate and goes. The columns are brought up to date now and then on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import cast

from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.framework.interface import Handle
from mooring.objects.node import Node
from mooring.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from mooring.objects.pod import WeightedPodAffinityTerm as Weighted
from mooring.objects.selectors import LabelSelector
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_affinity_term,
    make_namespace,
    make_node,
    make_pod,
    make_selector,
)

NODES = tuple(f"n{i}" for i in range(6))
PODS = tuple(f"p{i}" for i in range(8))
RACK = "rack"
KEYS = (ZONE, HOSTNAME, RACK)
#: The last namespace has no object.
NAMESPACES = ("default", "other", "lost")
#: Most pods are in the first, so that they meet.
NAMESPACES_OF_PODS = ("default", "default", "default", "other", "lost")
NAMESPACE_LABELS = {"default": {"team": "x"}, "other": {"team": "y"}}
DELETED = datetime(2026, 1, 1, tzinfo=UTC)
NO_AFFINITY: st.SearchStrategy[Affinity | None] = st.none()


@dataclass
class FakeHandle:
    cluster: Cluster


def handle_of(cluster: Cluster) -> Handle:
    """As much of a handle as these plugins use."""
    return cast(Handle, FakeHandle(cluster))


@cache
def label_selectors() -> st.SearchStrategy[LabelSelector | None]:
    return st.sampled_from(
        (
            None,
            make_selector(),
            make_selector({"app": "a"}),
            make_selector({"app": "b", "tier": "1"}),
            make_selector(None, ("app", "In", ["a", "b"])),
            make_selector(None, ("app", "NotIn", ["a"])),
            make_selector(None, ("tier", "Exists", [])),
            make_selector(None, ("tier", "DoesNotExist", [])),
        )
    )


@cache
def namespace_selectors() -> st.SearchStrategy[LabelSelector | None]:
    return st.sampled_from(
        (
            None,
            None,
            make_selector(),
            make_selector({"team": "x"}),
            make_selector(None, ("team", "In", ["x", "y"])),
            make_selector(None, ("team", "NotIn", ["x"])),
        )
    )


@cache
def affinity_terms() -> st.SearchStrategy[PodAffinityTerm]:
    return st.builds(
        make_affinity_term,
        label_selectors(),
        st.sampled_from(KEYS),
        namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=2),
        namespace_selector=namespace_selectors(),
    )


@cache
def pod_affinities() -> st.SearchStrategy[PodAffinity]:
    weighted = st.builds(Weighted, weight=st.integers(1, 3), pod_affinity_term=affinity_terms())
    return st.builds(
        PodAffinity,
        required=st.lists(affinity_terms(), max_size=2),
        preferred=st.lists(weighted, max_size=2),
    )


@cache
def affinities() -> st.SearchStrategy[Affinity | None]:
    return st.none() | st.builds(
        Affinity,
        pod_affinity=st.none() | pod_affinities(),
        pod_anti_affinity=st.none() | pod_affinities(),
    )


@cache
def pod_labels() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(
        {}, optional={"app": st.sampled_from("aab"), "tier": st.sampled_from("112")}
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    domains = {ZONE: ("a", "b", ""), RACK: ("r", "s")}
    labels = {
        key: value
        for key, values in domains.items()
        if (value := draw(st.sampled_from((*values, None)))) is not None
    }
    return make_node(
        name,
        labels=labels,
        hostname=draw(st.sampled_from((True, True, False))),
        taints=draw(st.lists(st.sampled_from(("gpu:NoSchedule", "old:NoExecute")), max_size=1)),
    )


@st.composite
def placed_pods(
    draw: st.DrawFn, name: str, affinity: st.SearchStrategy[Affinity | None] = NO_AFFINITY
) -> Pod:
    return make_pod(
        name,
        namespace=draw(st.sampled_from(NAMESPACES_OF_PODS)),
        uid=name,
        labels=draw(pod_labels()),
        node=draw(st.sampled_from(NODES)),
        affinity=draw(affinity),
        deleting=draw(st.sampled_from((None, None, DELETED))),
    )


@st.composite
def histories(
    draw: st.DrawFn, affinity: st.SearchStrategy[Affinity | None] = NO_AFFINITY
) -> Cluster:
    """A cluster with a past, whose pods have affinities like these."""
    cluster = Cluster()
    for name, labels in NAMESPACE_LABELS.items():
        cluster.listers.put(make_namespace(name, labels))
    for name in NODES[: draw(st.integers(1, len(NODES)))]:
        cluster.add_node(draw(nodes(name)))
    for name in PODS[: draw(st.integers(0, len(PODS)))]:
        cluster.add_pod(draw(placed_pods(name, affinity)))
    for _ in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(("pod", "drop pod", "node", "drop node"))):
            case "pod":
                put_pod(cluster, draw(placed_pods(draw(st.sampled_from(PODS)), affinity)))
            case "drop pod":
                known = cluster.pods.get(draw(st.sampled_from(PODS)))
                if known is not None:
                    cluster.remove_pod(known)
            case "node":
                cluster.update_node(draw(nodes(draw(st.sampled_from(NODES)))))
            case "drop node":
                info = cluster.infos.get(draw(st.sampled_from(NODES)))
                if info is not None and info.node is not None:
                    cluster.remove_node(info.name)
        if draw(st.booleans()):
            cluster.validate()
    return cluster


def put_pod(cluster: Cluster, pod: Pod) -> None:
    """Place a pod, or change one that is placed; it stays where it is."""
    known = cluster.pods.get(pod.uid)
    if known is None:
        cluster.add_pod(pod)
    else:
        cluster.update_pod(pod.placed_on(known.node_name))
