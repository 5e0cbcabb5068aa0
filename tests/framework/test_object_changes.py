"""What an update was about."""

from __future__ import annotations

import pytest

from mooring.framework.events import Action
from mooring.framework.object_changes import node_change_events, pod_change_events
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import ContainerStatus, Pod, PodResourceClaimStatus, ResourceRequirements
from mooring.objects.taints import Toleration
from tests.makers import make_container, make_node, make_pod, resources

TOLERATION = Toleration(key="gpu", operator="Exists")


def pod_actions(old: Pod, new: Pod) -> list[Action]:
    return [event.action for event in pod_change_events(old, new)]


def node_actions(old: Node, new: Node) -> list[Action]:
    return [event.action for event in node_change_events(old, new)]


def resized(spec: str, actual: str) -> Pod:
    """A pod with a node that asks for `spec` and has `actual` while its resize is under way."""
    has = ResourceRequirements(requests=resources(cpu=actual))
    return make_pod(
        cpu=spec, node="n", container_statuses=[ContainerStatus(name="c", resources=has)]
    )


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(make_pod(), make_pod(), [Action.UPDATE], id="nothing a rule looks at"),
        pytest.param(
            make_pod(), make_pod(annotations={"a": "b"}), [Action.UPDATE], id="annotations"
        ),
        pytest.param(
            make_pod(labels={"a": "1"}),
            make_pod(labels={"a": "2"}),
            [Action.UPDATE_POD_LABEL],
            id="labels",
        ),
        pytest.param(
            make_pod(cpu=2), make_pod(cpu=1), [Action.UPDATE_POD_SCALE_DOWN], id="asks for less"
        ),
        pytest.param(
            make_pod(cpu=1, memory="1Gi"),
            make_pod(cpu=2),
            [Action.UPDATE_POD_SCALE_DOWN],
            id="no longer asks for one resource, and for more of another",
        ),
        pytest.param(make_pod(cpu=1), make_pod(cpu=2), [Action.UPDATE], id="asks for more"),
        pytest.param(
            make_pod(cpu="1"), make_pod(cpu="1000m"), [Action.UPDATE], id="asks in other words"
        ),
        pytest.param(
            make_pod(requests={"cpu": "1.2m"}),
            make_pod(requests={"cpu": "1.1m"}),
            [Action.UPDATE],
            id="less by under a thousandth",
        ),
        pytest.param(
            make_pod(requests={"unheard/of": 2}),
            make_pod(requests={"unheard/of": 1}),
            [Action.UPDATE_POD_SCALE_DOWN],
            id="less of whatever it is",
        ),
        pytest.param(
            make_pod(gates=["a", "b"]),
            make_pod(),
            [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED],
            id="the last gates are gone",
        ),
        pytest.param(
            make_pod(gates=["a", "b"]), make_pod(gates=["a"]), [Action.UPDATE], id="one gate less"
        ),
        pytest.param(
            make_pod(),
            make_pod(tolerations=[TOLERATION]),
            [Action.UPDATE_POD_TOLERATION],
            id="one toleration more",
        ),
        pytest.param(
            make_pod(tolerations=[TOLERATION]),
            make_pod(tolerations=[Toleration(key="other")]),
            [Action.UPDATE],
            id="as many tolerations, which is all that counts",
        ),
        pytest.param(
            make_pod(),
            make_pod(resource_claim_statuses=[PodResourceClaimStatus(name="c")]),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
            id="a claim was generated",
        ),
        pytest.param(
            make_pod(cpu=2, gates=["g"]),
            make_pod(
                cpu=1,
                labels={"a": "b"},
                tolerations=[TOLERATION],
                resource_claim_statuses=[PodResourceClaimStatus(name="c")],
            ),
            [
                Action.UPDATE_POD_LABEL,
                Action.UPDATE_POD_SCALE_DOWN,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                Action.UPDATE_POD_TOLERATION,
                Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            ],
            id="everything, in this order",
        ),
    ],
)
def test_a_pods_update_is_told_by_what_changed(old, new, actions):
    assert pod_actions(old, new) == actions


def test_a_pod_scales_down_only_once_it_holds_less():
    started = resized(spec="1", actual="2")

    assert pod_actions(resized(spec="2", actual="2"), started) == [Action.UPDATE]
    assert pod_actions(started, resized(spec="1", actual="1")) == [Action.UPDATE_POD_SCALE_DOWN]


def test_a_sidecar_that_asks_for_less_counts_too():
    def pod(cpu: int) -> Pod:
        return make_pod(init_containers=[make_container("s", cpu=cpu, restart_policy="Always")])

    assert pod_actions(pod(2), pod(1)) == [Action.UPDATE_POD_SCALE_DOWN]


@pytest.mark.parametrize(
    ("new", "label"),
    [
        (make_pod(labels={"a": "b"}), "UnschedulablePodUpdatePodLabel"),
        (make_pod(labels={"a": "b"}, node="n"), "AssignedPodUpdatePodLabel"),
        (make_pod(), "UnschedulablePodUpdate"),
    ],
)
def test_a_pods_update_is_named_for_what_the_pod_has_become(new, label):
    assert [event.label for event in pod_change_events(make_pod(), new)] == [label]


def annotated(**annotations: str) -> Node:
    node = make_node()
    return Node(
        metadata=ObjectMeta(name="n", labels=node.labels, annotations=annotations),
        spec=node.spec,
        status=node.status,
    )


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(make_node(), make_node(), [], id="a heartbeat"),
        pytest.param(
            make_node(unschedulable=True),
            make_node(),
            [Action.UPDATE_NODE_TAINT],
            id="no longer cordoned",
        ),
        pytest.param(make_node(), make_node(unschedulable=True), [], id="cordoned"),
        pytest.param(
            make_node(cpu=1), make_node(cpu=2), [Action.UPDATE_NODE_ALLOCATABLE], id="allocatable"
        ),
        pytest.param(make_node(cpu="1"), make_node(cpu="1000m"), [], id="the same in other words"),
        pytest.param(
            make_node(), make_node(labels={"a": "b"}), [Action.UPDATE_NODE_LABEL], id="labels"
        ),
        pytest.param(
            make_node(taints=["a:NoSchedule"]), make_node(), [Action.UPDATE_NODE_TAINT], id="taints"
        ),
        pytest.param(
            make_node(conditions={"Ready": "False"}),
            make_node(conditions={"Ready": "True"}),
            [Action.UPDATE_NODE_CONDITION],
            id="a condition's status",
        ),
        pytest.param(
            make_node(conditions={"Ready": "True", "Disk": "False"}),
            make_node(conditions={"Disk": "False", "Ready": "True"}),
            [],
            id="conditions in another order",
        ),
        pytest.param(
            annotated(), annotated(a="b"), [Action.UPDATE_NODE_ANNOTATION], id="annotations"
        ),
        pytest.param(
            make_node(),
            make_node(features=["F"]),
            [Action.UPDATE_NODE_DECLARED_FEATURE],
            id="declared features",
        ),
        pytest.param(
            make_node(unschedulable=True, taints=["a:NoSchedule"]),
            make_node(
                cpu=9,
                labels={"a": "b"},
                conditions={"Ready": "True"},
                annotations={"a": "b"},
                features=["F"],
            ),
            [
                Action.UPDATE_NODE_TAINT,
                Action.UPDATE_NODE_ALLOCATABLE,
                Action.UPDATE_NODE_LABEL,
                Action.UPDATE_NODE_TAINT,
                Action.UPDATE_NODE_CONDITION,
                Action.UPDATE_NODE_ANNOTATION,
                Action.UPDATE_NODE_DECLARED_FEATURE,
            ],
            id="everything, in this order",
        ),
    ],
)
def test_a_nodes_update_is_told_by_what_changed(old, new, actions):
    assert node_actions(old, new) == actions
