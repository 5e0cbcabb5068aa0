import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.config.args import NodeAffinityArgs
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.interface import PreFilterResult
from mooring.framework.status import SKIP, SUCCESS, Code, unresolvable
from mooring.objects.pod import Affinity, PreferredSchedulingTerm
from mooring.objects.pod import NodeAffinity as Terms
from mooring.objects.selectors import NodeSelector
from mooring.plugins.node_affinity import NodeAffinity
from tests import generate
from tests.makers import make_node, make_node_affinity, make_node_term, make_pod
from tests.plugins.agreement import assert_filters_agree, assert_scores_agree

PLUGIN = NodeAffinity()
MISMATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")

SSD = make_node_term(("disk", "In", ["ssd"]))
MALFORMED = make_node_term(("disk", "In", []))


def named(*names):
    return make_node_term(fields=[("metadata.name", "In", [name]) for name in names])


def requiring(*terms):
    """A pod with these required terms; unlike the maker's, none at all is an empty list."""
    selector = NodeSelector(node_selector_terms=list(terms))
    return make_pod(affinity=Affinity(node_affinity=Terms(required=selector)))


def adding(*terms, preferred=None):
    """The plugin with an affinity added by the configuration."""
    return NodeAffinity(
        NodeAffinityArgs(
            added_affinity=Terms(
                required=NodeSelector(node_selector_terms=list(terms)) if terms else None,
                preferred=preferred,
            )
        )
    )


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        pytest.param(make_pod(node_selector={"disk": "ssd"}), SUCCESS, id="selector"),
        pytest.param(make_pod(node_selector={"disk": "hdd"}), MISMATCH, id="selector, other value"),
        pytest.param(make_pod(node_selector={"gpu": ""}), MISMATCH, id="selector, no such label"),
        pytest.param(make_pod(node_selector={}), SUCCESS, id="empty selector"),
        pytest.param(requiring(SSD), SUCCESS, id="In"),
        pytest.param(requiring(make_node_term(("disk", "NotIn", ["ssd"]))), MISMATCH, id="NotIn"),
        pytest.param(requiring(make_node_term(("gpu", "NotIn", ["a"]))), SUCCESS, id="NotIn, none"),
        pytest.param(requiring(make_node_term(("disk", "Exists", []))), SUCCESS, id="Exists"),
        pytest.param(
            requiring(make_node_term(("disk", "DoesNotExist", []))), MISMATCH, id="DoesNotExist"
        ),
        pytest.param(requiring(make_node_term(("cores", "Gt", ["8"]))), SUCCESS, id="Gt"),
        pytest.param(requiring(make_node_term(("cores", "Lt", ["16"]))), MISMATCH, id="Lt"),
        pytest.param(requiring(make_node_term(("disk", "Gt", ["8"]))), MISMATCH, id="no number"),
        pytest.param(
            requiring(make_node_term(("cores", "Gt", ["-1"]))), MISMATCH, id="a sign is malformed"
        ),
        pytest.param(requiring(named("n")), SUCCESS, id="name"),
        pytest.param(requiring(named("m")), MISMATCH, id="other name"),
        pytest.param(
            requiring(make_node_term(fields=[("metadata.name", "NotIn", ["m"])])),
            SUCCESS,
            id="not the other name",
        ),
        pytest.param(
            requiring(make_node_term(fields=[("metadata.name", "In", ["n", "m"])])),
            MISMATCH,
            id="two names in one line are malformed",
        ),
        pytest.param(
            requiring(make_node_term(("disk", "In", ["ssd"]), ("gpu", "Exists", []))),
            MISMATCH,
            id="every line of a term must hold",
        ),
        pytest.param(requiring(named("m"), SSD), SUCCESS, id="any term will do"),
        pytest.param(requiring(MALFORMED, SSD), SUCCESS, id="beside a malformed term"),
        pytest.param(requiring(MALFORMED), MISMATCH, id="a malformed term never matches"),
        pytest.param(requiring(make_node_term()), MISMATCH, id="an empty term matches nothing"),
        pytest.param(requiring(), MISMATCH, id="no terms match nothing"),
    ],
)
def test_a_node_must_match_what_the_pod_requires(pod, verdict):
    info = _info(make_node("n", labels={"disk": "ssd", "cores": "16"}))

    assert PLUGIN.filter(CycleState(), pod, info) == verdict


def test_selector_and_affinity_must_both_match():
    pod = make_pod(node_selector={"zone": "a"}, affinity=make_node_affinity(SSD))

    assert PLUGIN.filter(CycleState(), pod, _info(make_node(labels={"disk": "ssd"}))) == MISMATCH
    both = make_node(labels={"disk": "ssd", "zone": "a"})
    assert PLUGIN.filter(CycleState(), pod, _info(both)) == SUCCESS


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        pytest.param({"disk": "ssd", "pool": "batch"}, SUCCESS, id="both"),
        pytest.param({"disk": "ssd"}, ENFORCED, id="only the pod's"),
        pytest.param({"pool": "batch"}, MISMATCH, id="only the added"),
        pytest.param({}, ENFORCED, id="neither: the added is asked first"),
    ],
)
def test_what_the_configuration_adds_must_match_as_well(labels, verdict):
    plugin = adding(make_node_term(("pool", "In", ["batch"])))

    node = _info(make_node(labels=labels))
    assert plugin.filter(CycleState(), requiring(SSD), node) == verdict


@pytest.mark.parametrize(
    ("pod", "result"),
    [
        pytest.param(make_pod(), SKIP, id="nothing required"),
        pytest.param(make_pod(node_selector={}), SUCCESS, id="an empty selector is one"),
        pytest.param(requiring(), SUCCESS, id="no terms"),
        pytest.param(requiring(SSD), SUCCESS, id="labels only"),
        pytest.param(requiring(named("n1", "n2")), CONFLICT, id="one node of two names"),
        pytest.param(
            requiring(
                named("n1"),
                make_node_term(("disk", "In", ["ssd"]), fields=[("metadata.name", "In", ["n2"])]),
            ),
            PreFilterResult(frozenset({"n1", "n2"})),
            id="a name in every term",
        ),
        pytest.param(requiring(named("n1"), named("n2"), SSD), SUCCESS, id="not in every term"),
        pytest.param(
            requiring(make_node_term(fields=[("metadata.name", "In", ["n1", "n2"])])),
            PreFilterResult(frozenset({"n1", "n2"})),
            id="malformed, and narrows all the same",
        ),
        pytest.param(
            requiring(make_node_term(fields=[("metadata.name", "NotIn", ["n1"])])),
            SUCCESS,
            id="NotIn names no node",
        ),
    ],
)
def test_pre_filter_leaves_the_nodes_that_every_term_names(pod, result):
    assert PLUGIN.pre_filter(CycleState(), pod, Cluster().snapshot()) == result


def test_an_added_requirement_is_reason_enough_to_filter_and_names_no_nodes():
    plugin = adding(named("n1"))

    assert plugin.pre_filter(CycleState(), make_pod(), Cluster().snapshot()) == SUCCESS


@pytest.mark.parametrize(
    ("labels", "score"),
    [
        pytest.param({"disk": "ssd", "cores": "16", "x": "1"}, 65, id="40 + 25"),
        pytest.param({"disk": "ssd", "cores": "8"}, 40, id="8 is not above 8"),
        pytest.param({"cores": "1_6"}, 0, id="no number"),
    ],
)
def test_a_node_scores_the_weights_of_the_terms_it_matches(labels, score):
    pod = make_pod(
        affinity=make_node_affinity(
            preferred={
                40: SSD,
                25: make_node_term(("cores", "Gt", ["8"])),
                0: make_node_term(("x", "Exists", [])),
            }
        )
    )
    node = _info(make_node(labels=labels))

    assert PLUGIN.score(_scoring(PLUGIN, pod), pod, node) == score
    assert PLUGIN.score(CycleState(), pod, node) == score


def test_added_preferences_count_beside_the_pods():
    plugin = adding(preferred=[PreferredSchedulingTerm(weight=5, preference=SSD)])
    pod = make_pod(affinity=make_node_affinity(preferred={10: SSD}))
    node = _info(make_node(labels={"disk": "ssd"}))

    assert plugin.score(_scoring(plugin, pod), pod, node) == 15
    assert plugin.score(_scoring(plugin, make_pod()), make_pod(), node) == 5


@pytest.mark.parametrize(
    ("preferred", "code"),
    [
        pytest.param(None, Code.SKIP, id="no list"),
        pytest.param({}, Code.SUCCESS, id="an empty list"),
        pytest.param({10: SSD}, Code.SUCCESS, id="a term"),
        pytest.param({10: MALFORMED}, Code.ERROR, id="a malformed term"),
        pytest.param({0: MALFORMED}, Code.SUCCESS, id="malformed, but without weight"),
    ],
)
def test_pre_score_skips_only_pods_without_a_list_of_preferences(preferred, code):
    pod = make_pod(affinity=make_node_affinity(preferred=preferred))
    snapshot = Cluster().snapshot()

    assert PLUGIN.pre_score(CycleState(), pod, snapshot, snapshot.rows).code == code


def test_scores_are_shares_of_the_highest():
    """Raw 5, 35, 0 become 14, 100, 0."""
    scores = np.array([5, 35, 0], np.int64)

    assert PLUGIN.normalize_scores(CycleState(), make_pod(), scores) == SUCCESS
    assert scores.tolist() == [14, 100, 0]


@pytest.mark.parametrize(
    ("affinity", "where"),
    [
        pytest.param(
            Terms(required=NodeSelector(node_selector_terms=[SSD, MALFORMED])),
            "requiredDuringSchedulingIgnoredDuringExecution",
            id="required",
        ),
        pytest.param(
            Terms(preferred=[PreferredSchedulingTerm(weight=1, preference=MALFORMED)]),
            "preferredDuringSchedulingIgnoredDuringExecution",
            id="preferred",
        ),
    ],
)
def test_a_malformed_added_affinity_is_refused(affinity, where):
    with pytest.raises(PluginError, match=f"parsing addedAffinity.{where}"):
        NodeAffinity(NodeAffinityArgs(added_affinity=affinity))


@given(
    pod=generate.pods(),
    cluster=generate.clusters(),
    added=st.none() | generate.node_affinities(),
    prepared=st.booleans(),
)
def test_all_rows_at_once_say_what_each_node_says(pod, cluster, added, prepared):
    state, snapshot = CycleState(), cluster.snapshot()
    try:
        plugin = NodeAffinity(NodeAffinityArgs(added_affinity=added))
    except PluginError:
        plugin = PLUGIN
    if prepared:
        plugin.pre_filter(state, pod, snapshot)

    assert_filters_agree(plugin, state, pod, snapshot)
    if plugin.pre_score(state, pod, snapshot, snapshot.rows).ok:
        assert_scores_agree(plugin, state, pod, snapshot)


PLAIN, MATCHING = make_node(), make_node(labels={"disk": "ssd"})


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(requiring(SSD), None, MATCHING, Hint.QUEUE, id="came and matches"),
        pytest.param(requiring(SSD), None, PLAIN, Hint.SKIP, id="came and does not match"),
        pytest.param(requiring(SSD), PLAIN, MATCHING, Hint.QUEUE, id="came to match"),
        pytest.param(requiring(SSD), MATCHING, MATCHING, Hint.SKIP, id="matched before"),
        pytest.param(requiring(SSD), MATCHING, PLAIN, Hint.SKIP, id="matches no more"),
        pytest.param(requiring(MALFORMED), PLAIN, MATCHING, Hint.QUEUE, id="nobody can tell"),
        pytest.param(
            requiring(MALFORMED, SSD), None, PLAIN, Hint.QUEUE, id="nobody can tell of one term"
        ),
        pytest.param(
            requiring(MALFORMED, SSD), PLAIN, MATCHING, Hint.QUEUE, id="the other term matches"
        ),
    ],
)
def test_a_node_helps_when_it_comes_to_match(pod, old, new, hint):
    (registered,) = PLUGIN.events_to_register()

    assert registered.event == ClusterEvent(
        EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL
    )
    assert registered.hint(pod, old, new) == hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, {"pool": "batch"}, Hint.QUEUE, id="came and is allowed"),
        pytest.param(None, {}, Hint.SKIP, id="came and is not allowed"),
        pytest.param({}, {"pool": "batch"}, Hint.SKIP, id="allowed just now, matched before"),
    ],
)
def test_a_node_outside_the_added_affinity_does_not_help(old, new, hint):
    plugin = adding(make_node_term(("pool", "In", ["batch"])))
    (registered,) = plugin.events_to_register()
    before = None if old is None else make_node(labels=old)

    assert registered.hint(make_pod(), before, make_node(labels=new)) == hint


def test_pods_are_alike_whatever_the_order_of_terms_lines_and_values():
    zone = ("zone", "In", ["b", "a"])
    disk = ("disk", "Exists", [])
    pod = requiring(make_node_term(zone, disk), SSD)

    alike = requiring(SSD, make_node_term(disk, ("zone", "In", ["a", "b"])))
    assert PLUGIN.sign(pod) == PLUGIN.sign(alike)
    assert hash(tuple(PLUGIN.sign(pod).items())) == hash(tuple(PLUGIN.sign(alike).items()))
    assert PLUGIN.sign(pod) != PLUGIN.sign(requiring(SSD))
    # The reference takes these two for one, though the second fits nowhere.
    assert PLUGIN.sign(make_pod()) != PLUGIN.sign(requiring())
    selected = make_pod(node_selector={"disk": "ssd"})
    assert PLUGIN.sign(make_pod()) != PLUGIN.sign(selected)


def _info(node):
    info = NodeInfo(node.name)
    info.set_node(node)
    return info


def _scoring(plugin, pod):
    state, snapshot = CycleState(), Cluster().snapshot()
    assert plugin.pre_score(state, pod, snapshot, snapshot.rows) == SUCCESS
    return state
