import pytest

from mooring.cluster.node_info import NodeInfo
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SUCCESS, unresolvable
from mooring.objects.taints import Toleration
from mooring.plugins.node_unschedulable import NodeUnschedulable
from tests.makers import make_node, make_pod

PLUGIN = NodeUnschedulable()
CORDONED = unresolvable("node(s) were unschedulable")
KEY = "node.kubernetes.io/unschedulable"

TOLERATES = Toleration(key=KEY, operator="Exists", effect="NoSchedule")


@pytest.mark.parametrize(
    ("tolerations", "verdict"),
    [
        pytest.param([], CORDONED, id="tolerates nothing"),
        pytest.param([TOLERATES], SUCCESS, id="tolerates the taint"),
        pytest.param([Toleration(key=KEY)], SUCCESS, id="Equal, and both values are empty"),
        pytest.param([Toleration(operator="Exists")], SUCCESS, id="tolerates everything"),
        pytest.param([Toleration(key=KEY, value="x")], CORDONED, id="another value"),
        pytest.param(
            [Toleration(key=KEY, operator="Exists", effect="NoExecute")],
            CORDONED,
            id="another effect",
        ),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_that(tolerations, verdict):
    pod = make_pod(tolerations=tolerations)

    assert PLUGIN.filter(CycleState(), pod, _info(unschedulable=True)) == verdict
    assert PLUGIN.filter(CycleState(), pod, _info(unschedulable=False)) == SUCCESS


OPEN, CLOSED = make_node(), make_node(unschedulable=True)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, OPEN, Hint.QUEUE, id="came uncordoned"),
        pytest.param(None, CLOSED, Hint.SKIP, id="came cordoned"),
        pytest.param(CLOSED, OPEN, Hint.QUEUE, id="was uncordoned"),
        pytest.param(OPEN, CLOSED, Hint.SKIP, id="was cordoned"),
        pytest.param(OPEN, OPEN, Hint.SKIP, id="was never cordoned"),
        pytest.param(CLOSED, CLOSED, Hint.SKIP, id="is still cordoned"),
    ],
)
def test_a_node_helps_when_it_opens_whatever_the_pod_tolerates(old, new, hint):
    registered = PLUGIN.events_to_register()[0]

    assert registered.event.resource == EventResource.NODE
    assert registered.event.action == Action.ADD | Action.UPDATE_NODE_TAINT
    assert registered.hint(make_pod(), old, new) == hint
    assert registered.hint(make_pod(tolerations=[TOLERATES]), old, new) == hint


@pytest.mark.parametrize(
    ("name", "tolerations", "hint"),
    [
        pytest.param("p", [TOLERATES], Hint.QUEUE, id="tolerates it at last"),
        pytest.param("p", [Toleration(key="x")], Hint.SKIP, id="tolerates something else"),
        pytest.param("other", [TOLERATES], Hint.SKIP, id="another pod"),
    ],
)
def test_a_toleration_helps_the_pod_that_got_it(name, tolerations, hint):
    registered = PLUGIN.events_to_register()[1]
    updated = make_pod(name, tolerations=tolerations)

    assert registered.event.resource == EventResource.POD
    assert registered.event.action == Action.UPDATE_POD_TOLERATION
    assert registered.hint(make_pod("p"), make_pod(name), updated) == hint


def test_pods_are_alike_whatever_the_order_of_their_tolerations():
    other = Toleration(key="x")

    signature = PLUGIN.sign(make_pod(tolerations=[TOLERATES, other]))
    assert signature == PLUGIN.sign(make_pod(tolerations=[other, TOLERATES]))
    assert signature != PLUGIN.sign(make_pod(tolerations=[other]))


def _info(*, unschedulable):
    info = NodeInfo("n")
    info.set_node(make_node(unschedulable=unschedulable))
    return info
