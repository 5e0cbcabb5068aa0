import pytest

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, unresolvable
from mooring.plugins.node_declared_features import NodeDeclaredFeatures
from tests.makers import make_container, make_node, make_pod

PLUGIN = NodeDeclaredFeatures()
NOT_DECLARED = unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"

PLAIN = make_pod()
RESTARTS_ALL = make_pod(containers=[make_container(restart_actions=["RestartAllContainers"])])
BOTH = make_pod(
    init_containers=[make_container(restart_actions=["RestartAllContainers"])],
    host_network=True,
    host_users=False,
)


@pytest.mark.parametrize(
    ("pod", "required"),
    [
        pytest.param(PLAIN, set(), id="nothing special"),
        pytest.param(RESTARTS_ALL, {RESTART_ALL}, id="a container restarts all"),
        pytest.param(
            make_pod(containers=[make_container(restart_actions=["Restart"])]),
            set(),
            id="a container restarts itself",
        ),
        pytest.param(
            make_pod(host_network=True, host_users=False), {USER_NAMESPACES}, id="both by name"
        ),
        pytest.param(make_pod(host_network=True), set(), id="host users not mentioned"),
        pytest.param(make_pod(host_users=False), set(), id="not on the host's network"),
        pytest.param(BOTH, {RESTART_ALL, USER_NAMESPACES}, id="an init container counts, too"),
    ],
)
def test_what_a_pod_requires_follows_from_its_spec(pod, required):
    state = CycleState()

    assert PLUGIN.sign(pod) == {"v1.Pod.Spec.RequiredFeatures()": frozenset(required)}
    expected = SUCCESS if required else SKIP
    assert PLUGIN.pre_filter(state, pod, Cluster().snapshot()) == expected


@pytest.mark.parametrize(
    ("declared", "verdict"),
    [
        pytest.param([], NOT_DECLARED, id="none"),
        pytest.param([RESTART_ALL], NOT_DECLARED, id="one of two"),
        pytest.param([RESTART_ALL, USER_NAMESPACES], SUCCESS, id="both"),
        pytest.param(["Another", RESTART_ALL, USER_NAMESPACES], SUCCESS, id="and an unknown one"),
    ],
)
def test_a_node_must_declare_all_that_is_required(declared, verdict):
    info = NodeInfo("n")
    info.set_node(make_node(features=declared))
    state = CycleState()
    PLUGIN.pre_filter(state, BOTH, Cluster().snapshot())

    assert PLUGIN.filter(state, BOTH, info) == verdict


def test_a_filter_without_pre_filter_is_a_failure():
    snapshot = Cluster().snapshot()

    with pytest.raises(PluginError, match="PreFilterNodeDeclaredFeatures"):
        PLUGIN.filter_rows(CycleState(), BOTH, snapshot.columns, snapshot.rows)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, make_node(), Hint.QUEUE, id="came, whatever it declares"),
        pytest.param(make_node(), make_node(features=["A"]), Hint.QUEUE, id="declares another"),
        pytest.param(make_node(features=["A"]), make_node(features=["A"]), Hint.SKIP, id="same"),
    ],
)
def test_a_node_helps_when_it_declares_something_else(old, new, hint):
    registered = PLUGIN.events_to_register()[0]

    assert registered.event.resource == EventResource.NODE
    assert registered.event.action == Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE
    assert registered.hint(BOTH, old, new) == hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(RESTARTS_ALL, PLAIN, Hint.QUEUE, id="requires less"),
        pytest.param(RESTARTS_ALL, RESTARTS_ALL, Hint.SKIP, id="requires the same"),
        pytest.param(
            make_pod("other", host_network=True, host_users=False),
            make_pod("other"),
            Hint.SKIP,
            id="another pod",
        ),
    ],
)
def test_an_update_of_the_pod_helps_when_it_requires_something_else(old, new, hint):
    registered = PLUGIN.events_to_register()[1]

    assert registered.event.resource == EventResource.POD
    assert registered.event.action == Action.UPDATE
    assert registered.hint(RESTARTS_ALL, old, new) == hint
