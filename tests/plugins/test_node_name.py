import pytest
from hypothesis import given

from mooring.cluster.node_info import NodeInfo
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint
from mooring.framework.status import SUCCESS, unresolvable
from mooring.plugins.node_name import NodeName
from tests import generate
from tests.makers import make_pod
from tests.plugins.agreement import assert_filters_agree

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


@given(pod=generate.pods(), cluster=generate.clusters())
def test_all_rows_at_once_say_what_each_node_says(pod, cluster):
    assert_filters_agree(PLUGIN, CycleState(), pod, cluster.snapshot())


def test_every_new_node_is_worth_a_try():
    assert PLUGIN.events_to_register() == (
        EventWithHint(ClusterEvent(EventResource.NODE, Action.ADD), None),
    )


def test_pods_that_name_different_nodes_are_not_alike():
    assert PLUGIN.sign(make_pod("a", node="n")) == PLUGIN.sign(make_pod("b", node="n"))
    assert PLUGIN.sign(make_pod(node="n")) != PLUGIN.sign(make_pod(node="m"))
