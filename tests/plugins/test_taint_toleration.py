import numpy as np
import pytest

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SUCCESS, unresolvable
from mooring.objects.taints import Toleration
from mooring.plugins.taint_toleration import TaintToleration
from tests.makers import make_node, make_pod

PLUGIN = TaintToleration()
UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


def toleration(key="", operator="", value="", effect=""):
    return Toleration(key=key, operator=operator, value=value, effect=effect)


@pytest.mark.parametrize(
    ("taints", "tolerations", "verdict"),
    [
        pytest.param([], [], SUCCESS, id="no taint"),
        pytest.param(["a=1:NoSchedule"], [], UNTOLERATED, id="NoSchedule"),
        pytest.param(["a=1:NoExecute"], [], UNTOLERATED, id="NoExecute"),
        pytest.param(["a=1:PreferNoSchedule"], [], SUCCESS, id="PreferNoSchedule only discourages"),
        pytest.param(["a=1:NoSchedule"], [toleration("a", value="1")], SUCCESS, id="Equal"),
        pytest.param(["a=1:NoSchedule"], [toleration("a", value="2")], UNTOLERATED, id="not equal"),
        pytest.param(["a=1:NoSchedule"], [toleration("a", "Exists")], SUCCESS, id="Exists"),
        pytest.param(["a=1:NoSchedule"], [toleration("", "Exists")], SUCCESS, id="any key"),
        pytest.param(
            ["a=1:NoSchedule"], [toleration(value="1")], SUCCESS, id="any key, equal value"
        ),
        pytest.param(
            ["a=1:NoSchedule"],
            [toleration("a", "Exists", effect="NoExecute")],
            UNTOLERATED,
            id="another effect",
        ),
        pytest.param(
            ["a=1:NoSchedule", "b:NoExecute"],
            [toleration("a", "Exists")],
            UNTOLERATED,
            id="one of two",
        ),
        pytest.param(
            ["k=5:NoSchedule"],
            [toleration("k", "Gt", "3", "NoSchedule")],
            UNTOLERATED,
            id="Gt is behind a gate that is off",
        ),
    ],
)
def test_a_tainted_node_takes_only_the_pods_that_tolerate_it(taints, tolerations, verdict):
    pod = make_pod(tolerations=tolerations)

    assert PLUGIN.filter(CycleState(), pod, _info(*taints)) == verdict


def test_only_tolerations_for_any_effect_or_the_mildest_count_in_scores():
    """The toleration of `a` is for NoSchedule, so the mild taint `a` speaks against the node."""
    pod = make_pod(
        tolerations=[
            toleration("a", "Exists", effect="NoSchedule"),
            toleration("b", "Exists"),
            toleration("c", "Exists", effect="NoSchedule"),
        ]
    )
    info = _info("a=1:PreferNoSchedule", "b=2:PreferNoSchedule", "c=3:NoSchedule")

    assert PLUGIN.filter(CycleState(), pod, info) == SUCCESS
    assert PLUGIN.score(_scoring(pod), pod, info) == 1


def test_scores_are_reversed_counts():
    """Raw 0, 1, 3 become 100, 67, 0."""
    scores = np.array([0, 1, 3], np.int64)

    assert PLUGIN.normalize_scores(CycleState(), make_pod(), scores) == SUCCESS
    assert scores.tolist() == [100, 67, 0]


def test_a_score_without_pre_score_is_a_failure():
    snapshot = Cluster().snapshot()

    with pytest.raises(PluginError, match="PreScoreTaintToleration"):
        PLUGIN.score(CycleState(), make_pod(), _info())
    with pytest.raises(PluginError, match="PreScoreTaintToleration"):
        PLUGIN.score_rows(CycleState(), make_pod(), snapshot.columns, snapshot.rows)


CLEAN, TAINTED = make_node(), make_node(taints=["a=1:NoSchedule"])
MILD = make_node(taints=["a=1:PreferNoSchedule"])


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, CLEAN, Hint.QUEUE, id="came without taint"),
        pytest.param(None, MILD, Hint.QUEUE, id="came with a mild taint"),
        pytest.param(None, TAINTED, Hint.SKIP, id="came with an untolerated taint"),
        pytest.param(TAINTED, CLEAN, Hint.QUEUE, id="lost its taint"),
        pytest.param(TAINTED, MILD, Hint.QUEUE, id="its taint became mild"),
        pytest.param(CLEAN, TAINTED, Hint.SKIP, id="got a taint"),
        pytest.param(CLEAN, MILD, Hint.SKIP, id="was tolerable and is"),
        pytest.param(TAINTED, TAINTED, Hint.SKIP, id="was intolerable and is"),
    ],
)
def test_a_node_helps_when_it_turns_tolerable(old, new, hint):
    registered = PLUGIN.events_to_register()[0]

    assert registered.event.resource == EventResource.NODE
    assert registered.event.action == Action.ADD | Action.UPDATE_NODE_TAINT
    assert registered.hint(make_pod(), old, new) == hint


def test_a_toleration_helps_the_pod_that_got_it():
    registered = PLUGIN.events_to_register()[1]
    pod, other = make_pod("p"), make_pod("other")

    assert registered.event.resource == EventResource.POD
    assert registered.event.action == Action.UPDATE_POD_TOLERATION
    assert registered.hint(pod, pod, make_pod("p", tolerations=[toleration("x")])) == Hint.QUEUE
    assert registered.hint(pod, other, other) == Hint.SKIP


def test_pods_are_alike_whatever_the_order_of_their_tolerations():
    a, b = toleration("a", "Exists"), toleration("b", "Exists")

    signature = PLUGIN.sign(make_pod(tolerations=[a, b]))
    assert signature == PLUGIN.sign(make_pod(tolerations=[b, a]))
    assert signature != PLUGIN.sign(make_pod(tolerations=[a]))


def _info(*taints):
    info = NodeInfo("n")
    info.set_node(make_node(taints=taints))
    return info


def _scoring(pod):
    state = CycleState()
    snapshot = Cluster().snapshot()
    assert PLUGIN.pre_score(state, pod, snapshot, snapshot.rows) == SUCCESS
    return state
