"""Random objects and clusters for property tests.

Names, labels, taints, images and ports come from short lists, so that what is drawn for a pod often
meets what is drawn for a node. Malformed selectors are among them: the rules cover those too.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import ContainerImage, Node, NodeSpec, NodeStatus
from mooring.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PreferredSchedulingTerm,
    RestartRule,
)
from mooring.objects.selectors import (
    NODE_OPERATORS,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)
from mooring.objects.storage import ImageVolumeSource, Volume
from mooring.objects.taints import Taint, Toleration
from tests.makers import make_pod

NODE_NAMES = tuple(f"n{i}" for i in range(8))
LABEL_KEYS = ("zone", "disk", "cores")
LABEL_VALUES = ("", "a", "b", "8", "16", "1_6")
TAINT_KEYS = ("gpu", "dedicated", "node.kubernetes.io/unschedulable")
TAINT_VALUES = ("", "a", "b")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMAGES = ("app", "app:v1", "host:5000/app", "db@sha256:00")
IMAGE_NAMES_ON_NODES = ("app:latest", "app:v1", "host:5000/app:latest", "db@sha256:00")
FEATURES = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "SomethingElse",
)

MB = 1024 * 1024


@cache
def labels() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(LABEL_KEYS), st.sampled_from(LABEL_VALUES))


@cache
def taints() -> st.SearchStrategy[Taint]:
    return st.builds(
        Taint,
        key=st.sampled_from(TAINT_KEYS),
        value=st.sampled_from(TAINT_VALUES),
        effect=st.sampled_from(EFFECTS),
    )


@cache
def tolerations() -> st.SearchStrategy[Toleration]:
    return st.builds(
        Toleration,
        key=st.sampled_from(("", *TAINT_KEYS)),
        operator=st.sampled_from(("", "Equal", "Exists", "Lt")),
        value=st.sampled_from(TAINT_VALUES),
        effect=st.sampled_from(("", *EFFECTS)),
    )


@cache
def label_requirements() -> st.SearchStrategy[SelectorRequirement]:
    return st.builds(
        SelectorRequirement,
        key=st.sampled_from(LABEL_KEYS),
        operator=st.sampled_from(NODE_OPERATORS),
        values=st.lists(st.sampled_from(LABEL_VALUES), max_size=3),
    ) | st.builds(  # Drawn apart, since few of the above are well-formed.
        SelectorRequirement,
        key=st.just("cores"),
        operator=st.sampled_from(("Gt", "Lt")),
        values=st.sampled_from((["7"], ["8"], ["+9"])),
    )


@cache
def field_requirements() -> st.SearchStrategy[SelectorRequirement]:
    return st.builds(
        SelectorRequirement,
        key=st.sampled_from(("metadata.name", "metadata.name", "metadata.uid")),
        operator=st.sampled_from(("In", "In", "NotIn", "Exists")),
        values=st.lists(st.sampled_from(NODE_NAMES), min_size=1, max_size=2),
    )


@cache
def node_terms() -> st.SearchStrategy[NodeSelectorTerm]:
    return st.builds(
        NodeSelectorTerm,
        match_expressions=st.lists(label_requirements(), max_size=2),
        match_fields=st.lists(field_requirements(), max_size=1),
    )


@cache
def node_selectors() -> st.SearchStrategy[NodeSelector]:
    return st.builds(NodeSelector, node_selector_terms=st.lists(node_terms(), max_size=3))


@cache
def preferred_terms() -> st.SearchStrategy[PreferredSchedulingTerm]:
    return st.builds(PreferredSchedulingTerm, weight=st.integers(0, 100), preference=node_terms())


@cache
def node_affinities() -> st.SearchStrategy[NodeAffinity]:
    return st.builds(
        NodeAffinity,
        required=st.none() | node_selectors(),
        preferred=st.none() | st.lists(preferred_terms(), max_size=3),
    )


@cache
def host_ports() -> st.SearchStrategy[ContainerPort]:
    return st.builds(
        ContainerPort,
        host_port=st.sampled_from((0, 80, 443)),
        host_ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::")),
        protocol=st.sampled_from(("", "TCP", "UDP")),
    )


@cache
def containers() -> st.SearchStrategy[Container]:
    return st.builds(
        Container,
        image=st.sampled_from(IMAGES),
        ports=st.lists(host_ports(), max_size=2),
        restart_policy=st.sampled_from(("", "Always")),
        restart_policy_rules=st.lists(
            st.builds(RestartRule, action=st.sampled_from(("Restart", "RestartAllContainers"))),
            max_size=1,
        ),
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "p", node: str | None = None) -> Pod:
    """A pod on that node; without one it is yet to be placed, and may name any node it likes."""
    affinity = draw(st.none() | node_affinities())
    return make_pod(
        name,
        node=draw(st.sampled_from((None, None, *NODE_NAMES))) if node is None else node,
        containers=draw(st.lists(containers(), min_size=1, max_size=2)),
        init_containers=draw(st.lists(containers(), max_size=1)),
        tolerations=draw(st.lists(tolerations(), max_size=3)),
        node_selector=draw(st.none() | labels()),
        affinity=None if affinity is None else Affinity(node_affinity=affinity),
        volumes=[
            Volume(name=image, image=ImageVolumeSource(reference=image))
            for image in draw(st.lists(st.sampled_from(IMAGES), max_size=1))
        ],
        host_network=draw(st.booleans()),
        host_users=draw(st.sampled_from((None, True, False))),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str = "n0") -> Node:
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, uid=name, labels=draw(labels())),
        spec=NodeSpec(
            unschedulable=draw(st.booleans()), taints=draw(st.lists(taints(), max_size=3))
        ),
        status=NodeStatus(
            images=[
                ContainerImage(names=[image], size_bytes=draw(st.integers(0, 3000)) * MB)
                for image in draw(st.lists(st.sampled_from(IMAGE_NAMES_ON_NODES), max_size=3))
            ],
            declared_features=draw(st.lists(st.sampled_from(FEATURES), unique=True)),
        ),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Some nodes with pods on them, after a past in which nodes left, changed and came back."""
    cluster = Cluster()
    names = draw(st.lists(st.sampled_from(NODE_NAMES), min_size=1, unique=True))
    for name in names:
        cluster.add_node(draw(nodes(name)))
        for i in range(draw(st.integers(0, 2))):
            cluster.add_pod(draw(pods(f"{name}-{i}", node=name)))
    cluster.snapshot()
    for name in draw(st.lists(st.sampled_from(names), unique=True)):
        cluster.remove_node(name)
        if draw(st.booleans()):
            cluster.snapshot()
        if draw(st.booleans()):
            cluster.add_node(draw(nodes(name)))
    return cluster
