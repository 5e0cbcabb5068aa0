import pytest

from mooring.cluster.node_info import NodeInfo
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint
from mooring.framework.status import SUCCESS, unresolvable
from mooring.plugins.node_name import NodeName
from tests.makers import make_pod

PLUGIN = NodeName()
ANOTHER_NODE = unresolvable("node(s) didn't match the requested node name")


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        pytest.param(None, SUCCESS, id="any node"),
        pytest.param("n", SUCCESS, id="this node"),
        pytest.param("m", ANOTHER_NODE, id="another node"),
    ],
)
def test_a_pod_that_names_its_node_goes_nowhere_else(wanted, verdict):
    assert PLUGIN.filter(CycleState(), make_pod(node=wanted), NodeInfo("n")) == verdict


def test_every_new_node_is_worth_a_try():
    assert PLUGIN.events_to_register() == (
        EventWithHint(ClusterEvent(EventResource.NODE, Action.ADD), None),
    )


def test_pods_that_name_different_nodes_are_not_alike():
    assert PLUGIN.sign(make_pod("a", node="n")) == PLUGIN.sign(make_pod("b", node="n"))
    assert PLUGIN.sign(make_pod(node="n")) != PLUGIN.sign(make_pod(node="m"))
