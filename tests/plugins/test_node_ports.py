import pytest

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint, Hint
from mooring.framework.status import SKIP, SUCCESS, unschedulable
from mooring.objects.pod import ContainerPort
from mooring.plugins.node_ports import NodePorts
from tests.makers import make_container, make_pod

PLUGIN = NodePorts()
TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


def port(number, ip="", protocol=""):
    return ContainerPort(host_port=number, host_ip=ip, protocol=protocol)


@pytest.mark.parametrize(
    ("used", "wanted", "verdict"),
    [
        pytest.param(port(80, "0.0.0.0", "TCP"), port(80, "10.0.0.1", "TCP"), TAKEN, id="all used"),
        pytest.param(port(80, "10.0.0.1", "TCP"), port(80), TAKEN, id="all wanted, by default"),
        pytest.param(
            port(80, "10.0.0.1", "TCP"), port(80, "10.0.0.2", "TCP"), SUCCESS, id="two addresses"
        ),
        pytest.param(
            port(80, "10.0.0.1", "TCP"), port(80, "10.0.0.1", "TCP"), TAKEN, id="one address"
        ),
        pytest.param(port(80, "0.0.0.0", "TCP"), port(80, "", "UDP"), SUCCESS, id="two protocols"),
        pytest.param(
            port(80, "::", "TCP"), port(80, "10.0.0.1", "TCP"), SUCCESS, id=":: is one address"
        ),
        pytest.param(port(80), port(81), SUCCESS, id="two ports"),
    ],
)
def test_a_port_is_taken_where_address_protocol_and_number_meet(used, wanted, verdict):
    info = NodeInfo("n")
    info.add_pod(make_pod("there", node="n", ports=[used]))
    pod = make_pod(ports=[wanted])

    assert PLUGIN.filter(_filtering(pod), pod, info) == verdict


def test_two_ports_of_one_pod_do_not_stand_in_each_others_way():
    pod = make_pod(ports=[80, 80])

    assert PLUGIN.filter(_filtering(pod), pod, NodeInfo("n")) == SUCCESS


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        pytest.param(make_pod(), SKIP, id="no port"),
        pytest.param(make_pod(ports=[port(0)]), SKIP, id="no host port"),
        pytest.param(
            make_pod(init_containers=[make_container(ports=[80])]),
            SKIP,
            id="of a container that ends before the others start",
        ),
        pytest.param(
            make_pod(init_containers=[make_container(ports=[80], restart_policy="Always")]),
            SUCCESS,
            id="of a sidecar",
        ),
        pytest.param(make_pod(ports=[80]), SUCCESS, id="of a container"),
    ],
)
def test_only_pods_with_host_ports_are_filtered(pod, verdict):
    assert PLUGIN.pre_filter(CycleState(), pod, Cluster().snapshot()) == verdict


def test_a_filter_without_pre_filter_is_a_failure():
    snapshot = Cluster().snapshot()

    with pytest.raises(PluginError, match="PreFilterNodePorts"):
        PLUGIN.filter(CycleState(), make_pod(ports=[80]), NodeInfo("n"))
    with pytest.raises(PluginError, match="PreFilterNodePorts"):
        PLUGIN.filter_rows(CycleState(), make_pod(ports=[80]), snapshot.columns, snapshot.rows)


@pytest.mark.parametrize(
    ("gone", "hint"),
    [
        pytest.param(make_pod("d", node="n", ports=[80]), Hint.QUEUE, id="held the port"),
        pytest.param(make_pod("d", nominated="n", ports=[80]), Hint.QUEUE, id="was to hold it"),
        pytest.param(make_pod("d", ports=[80]), Hint.SKIP, id="was on no node"),
        pytest.param(make_pod("d", node="n", ports=[81]), Hint.SKIP, id="held another port"),
        pytest.param(make_pod("d", node="n"), Hint.SKIP, id="held no port"),
    ],
)
def test_a_pod_that_is_gone_helps_if_it_held_a_port(gone, hint):
    registered = PLUGIN.events_to_register()[0]

    assert registered.event == ClusterEvent(EventResource.POD, Action.DELETE)
    assert registered.hint(make_pod(ports=[80]), gone, None) == hint


def test_every_new_node_is_worth_a_try():
    assert PLUGIN.events_to_register()[1] == EventWithHint(
        ClusterEvent(EventResource.NODE, Action.ADD), None
    )


def test_pods_that_differ_in_the_address_of_a_port_are_not_alike():
    """The reference signs the numbers alone, which would share a verdict that is not shared."""
    signature = PLUGIN.sign(make_pod(ports=[port(80), port(81)]))

    assert signature == PLUGIN.sign(make_pod(ports=[port(81), port(80, "0.0.0.0", "TCP")]))
    assert signature != PLUGIN.sign(make_pod(ports=[port(80, "10.0.0.1"), port(81)]))


def _filtering(pod):
    state = CycleState()
    assert PLUGIN.pre_filter(state, pod, Cluster().snapshot()) == SUCCESS
    return state
