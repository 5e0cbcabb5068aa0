import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.config.args import InterPodAffinityArgs
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, Code, unresolvable, unschedulable
from mooring.objects.pod import Affinity, PodAffinity
from mooring.plugins.inter_pod_affinity import InterPodAffinity
from tests import topology_clusters as topology
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_affinity_term,
    make_namespace,
    make_node,
    make_pod,
    make_pod_affinity,
    make_selector,
)
from tests.plugins.agreement import assert_filters_agree, assert_scores_agree

NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

WEB, DB = {"app": "web"}, {"app": "db"}
WEB_IN_ZONE = make_affinity_term(WEB, ZONE)
WEB_ON_HOST = make_affinity_term(WEB, HOSTNAME)
DB_IN_ZONE = make_affinity_term(DB, ZONE)
WITH_WEB = make_pod_affinity(WEB_IN_ZONE)
AWAY_FROM_WEB = make_pod_affinity(anti=[WEB_IN_ZONE])
MALFORMED = make_affinity_term(make_selector(None, ("app", "Near", ["web"])), ZONE)

#: n1 and n2 in zone a, n3 in zone b, n4 without a zone.
NODES = [
    make_node("n1", zone="a"),
    make_node("n2", zone="a"),
    make_node("n3", zone="b"),
    make_node("n4"),
]


def cluster_of(pods=(), *namespaces, nodes=NODES):
    cluster = Cluster()
    for node in nodes:
        cluster.add_node(node)
    for pod in pods:
        cluster.add_pod(pod)
    for namespace in namespaces:
        cluster.listers.put(namespace)
    return cluster


def plugin_of(cluster, **args):
    return InterPodAffinity(
        InterPodAffinityArgs(**args) if args else None, topology.handle_of(cluster)
    )


def filtered(cluster, pod):
    """The status of every node by its name, or that of PreFilter if it has something to say."""
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    status = plugin.pre_filter(state, pod, snapshot)
    if status is not None:
        return status
    assert_filters_agree(plugin, state, pod, snapshot)
    return {node.name: plugin.filter(state, pod, node) for node in snapshot}


def scored(cluster, pod, feasible=None, **args):
    """Raw and normalised scores of the feasible nodes, in their order; or the status of PreScore."""
    plugin, state, snapshot = plugin_of(cluster, **args), CycleState(), cluster.snapshot()
    names = sorted(snapshot.order) if feasible is None else feasible
    rows = np.array([snapshot.columns.row_of[name] for name in names], np.intp)
    status = plugin.pre_score(state, pod, snapshot, rows)
    if status is not None:
        return status
    assert_scores_agree(plugin, state, pod, snapshot)
    scores = plugin.score_rows(state, pod, snapshot.columns, rows)
    raw = scores.tolist()
    plugin.normalize_scores(state, pod, scores)
    return raw, scores.tolist()


def on(node, labels=WEB, name="x", **fields):
    return make_pod(name, node=node, labels=labels, **fields)


def verdicts(*each):
    return dict(zip(("n1", "n2", "n3", "n4"), each, strict=True))


@pytest.mark.parametrize(
    ("placed", "pod", "expected"),
    [
        pytest.param(
            [on("n1")],
            make_pod(affinity=WITH_WEB),
            verdicts(SUCCESS, SUCCESS, NO_AFFINITY, NO_AFFINITY),
            id="affinity: where a matching pod is",
        ),
        pytest.param(
            [on("n1", DB)],
            make_pod(labels=DB, affinity=WITH_WEB),
            verdicts(*[NO_AFFINITY] * 4),
            id="affinity: nobody matches, nor does the pod itself",
        ),
        pytest.param(
            [],
            make_pod(labels=WEB, affinity=WITH_WEB),
            verdicts(SUCCESS, SUCCESS, SUCCESS, NO_AFFINITY),
            id="the first of its kind goes wherever there is a zone",
        ),
        pytest.param(
            [on("n2")],
            make_pod(labels=WEB, affinity=WITH_WEB),
            verdicts(SUCCESS, SUCCESS, NO_AFFINITY, NO_AFFINITY),
            id="the second follows it",
        ),
        pytest.param(
            [on("n4")],
            make_pod(labels=WEB, affinity=WITH_WEB),
            verdicts(SUCCESS, SUCCESS, SUCCESS, NO_AFFINITY),
            id="a pod that is in no zone does not make the next one the second",
        ),
        pytest.param(
            [on("unknown")],
            make_pod(labels=WEB, affinity=WITH_WEB),
            verdicts(SUCCESS, SUCCESS, SUCCESS, NO_AFFINITY),
            id="nor does one on a node that is not known",
        ),
        pytest.param(
            [on("n1"), on("n3", DB, name="y")],
            make_pod(affinity=make_pod_affinity(WEB_IN_ZONE, DB_IN_ZONE)),
            verdicts(*[NO_AFFINITY] * 4),
            id="affinity: one pod has to match all terms",
        ),
        pytest.param(
            [on("n1", {"app": "web", "tier": "1"})],
            make_pod(
                affinity=make_pod_affinity(WEB_IN_ZONE, make_affinity_term({"tier": "1"}, HOSTNAME))
            ),
            verdicts(SUCCESS, NO_AFFINITY, NO_AFFINITY, NO_AFFINITY),
            id="affinity: each term over its own topology",
        ),
        pytest.param(
            [on("n1")],
            make_pod(affinity=AWAY_FROM_WEB),
            verdicts(ANTI_AFFINITY, ANTI_AFFINITY, SUCCESS, SUCCESS),
            id="anti-affinity: not where a matching pod is",
        ),
        pytest.param(
            [on("n1"), on("n3", DB, name="y")],
            make_pod(affinity=make_pod_affinity(anti=[WEB_ON_HOST, DB_IN_ZONE])),
            verdicts(ANTI_AFFINITY, SUCCESS, ANTI_AFFINITY, SUCCESS),
            id="anti-affinity: any term",
        ),
        pytest.param(
            [on("n1", DB, affinity=AWAY_FROM_WEB)],
            make_pod(labels=WEB),
            verdicts(EXISTING, EXISTING, SUCCESS, SUCCESS),
            id="existing anti-affinity: it matches the pod",
        ),
        pytest.param([on("n1", DB, affinity=AWAY_FROM_WEB)], make_pod(labels=DB), SKIP, id="not"),
        pytest.param([on("n1", DB, affinity=WITH_WEB)], make_pod(labels=WEB), SKIP, id="affinity"),
        pytest.param([on("n4", DB, affinity=AWAY_FROM_WEB)], make_pod(labels=WEB), SKIP, id="zone"),
        pytest.param(
            [on("n1", WEB, affinity=AWAY_FROM_WEB)],
            make_pod(labels=WEB, affinity=make_pod_affinity(DB_IN_ZONE, anti=[WEB_IN_ZONE])),
            verdicts(*[NO_AFFINITY] * 4),
            id="affinity is heard first",
        ),
        pytest.param(
            [on("n1", WEB, affinity=AWAY_FROM_WEB)],
            make_pod(labels=WEB, affinity=make_pod_affinity(anti=[WEB_ON_HOST])),
            verdicts(ANTI_AFFINITY, EXISTING, SUCCESS, SUCCESS),
            id="then anti-affinity, then that of existing pods",
        ),
        pytest.param(
            [on("n1", deleting=topology.DELETED)],
            make_pod(affinity=AWAY_FROM_WEB),
            verdicts(ANTI_AFFINITY, ANTI_AFFINITY, SUCCESS, SUCCESS),
            id="a pod that is being deleted counts",
        ),
        pytest.param(
            [on("n1", namespace="other")],
            make_pod(affinity=AWAY_FROM_WEB),
            verdicts(*[SUCCESS] * 4),
            id="one in another namespace does not",
        ),
        pytest.param(
            [on("n1")],
            make_pod(affinity=make_pod_affinity(anti=[make_affinity_term(None, ZONE)])),
            verdicts(*[SUCCESS] * 4),
            id="a term without a selector matches no pod",
        ),
        pytest.param(
            [on("n1")],
            make_pod(affinity=make_pod_affinity(WEB_IN_ZONE, make_affinity_term(None, ZONE))),
            verdicts(*[NO_AFFINITY] * 4),
            id="so with one, no pod matches all terms",
        ),
        pytest.param(
            [on("n1", DB)],
            make_pod(affinity=make_pod_affinity(anti=[make_affinity_term({}, ZONE)])),
            verdicts(ANTI_AFFINITY, ANTI_AFFINITY, SUCCESS, SUCCESS),
            id="an empty selector matches all",
        ),
    ],
)
def test_required_terms_keep_pods_together_or_apart(placed, pod, expected):
    assert filtered(cluster_of(placed), pod) == expected


TEAM_X = make_selector({"team": "x"})
NOT_TEAM_X = make_selector(None, ("team", "NotIn", ["x"]))
NAMESPACES = [make_namespace("here", {"team": "x"}), make_namespace("there", {"team": "y"})]


@pytest.mark.parametrize(
    ("names", "selector", "namespaces"),
    [
        pytest.param([], None, {"default"}, id="none named: the pod's own"),
        pytest.param(["there"], None, {"there"}, id="named"),
        pytest.param([], TEAM_X, {"here"}, id="selected"),
        pytest.param(["there"], TEAM_X, {"here", "there"}, id="named and selected"),
        pytest.param(
            [], make_selector(), {"default", "here", "there"}, id="an empty selector: every one"
        ),
    ],
)
@pytest.mark.parametrize("incoming", [True, False], ids=["incoming term", "existing term"])
def test_a_term_covers_the_namespaces_it_names_or_selects(names, selector, namespaces, incoming):
    term = make_affinity_term(WEB, ZONE, namespaces=names, namespace_selector=selector)
    away = make_pod_affinity(anti=[term])

    spoken_of = set()
    for namespace in ("default", "here", "there"):
        its_pod = make_pod("its", namespace=namespace, labels=WEB, node=incoming and "n1")
        holder = make_pod("holder", affinity=away, node=None if incoming else "n1")
        placed, pod = (its_pod, holder) if incoming else (holder, its_pod)
        result = filtered(cluster_of([placed], *NAMESPACES), pod)
        if result != SKIP and not result["n1"].ok:
            spoken_of.add(namespace)

    assert spoken_of == namespaces


def test_a_selector_that_accepts_no_labels_covers_every_namespace_of_an_incoming_term():
    """A trap of the reference: the selector is asked of no labels after its namespaces are named."""
    term = make_affinity_term(WEB, ZONE, namespace_selector=NOT_TEAM_X)
    away = make_pod_affinity(anti=[term])
    in_team_x = make_pod("its", namespace="here", labels=WEB)

    incoming = filtered(
        cluster_of([in_team_x.placed_on("n1")], *NAMESPACES), make_pod(affinity=away)
    )
    existing = filtered(cluster_of([on("n1", DB, affinity=away)], *NAMESPACES), in_team_x)

    assert incoming["n1"] == ANTI_AFFINITY
    assert existing == SKIP


def test_all_terms_of_an_affinity_have_to_cover_the_namespace():
    narrow = make_affinity_term(WEB, ZONE, namespaces=["here"])
    both_named = make_affinity_term({"tier": "1"}, ZONE, namespaces=["here", "there"])
    every = make_affinity_term({"tier": "1"}, ZONE, namespace_selector=make_selector())
    pod = make_pod(affinity=make_pod_affinity(narrow, both_named, every))
    both = {"app": "web", "tier": "1"}

    assert filtered(cluster_of([on("n1", both, namespace="here")]), pod)["n1"] == SUCCESS
    assert filtered(cluster_of([on("n1", both, namespace="there")]), pod)["n1"] == NO_AFFINITY
    assert filtered(cluster_of([on("n1", WEB, namespace="here")]), pod)["n1"] == NO_AFFINITY


@pytest.mark.parametrize(
    ("affinity", "prefix"),
    [
        pytest.param(make_pod_affinity(MALFORMED), "parsing pod: requiredAffinityTerms: ", id="r"),
        pytest.param(
            make_pod_affinity(anti_preferred=[(1, MALFORMED)]),
            "parsing pod: preferredAntiAffinityTerms: ",
            id="preferred",
        ),
        pytest.param(
            make_pod_affinity(MALFORMED, anti=[MALFORMED]),
            "parsing pod: [requiredAffinityTerms: ",
            id="two kinds",
        ),
    ],
)
def test_a_malformed_term_rejects_the_pod(affinity, prefix):
    status = filtered(cluster_of(), make_pod(affinity=affinity))

    assert status.code == Code.UNRESOLVABLE
    assert status.message.startswith(prefix)


def test_a_malformed_term_fails_scoring():
    status = scored(cluster_of(), make_pod(affinity=make_pod_affinity(preferred=[(1, MALFORMED)])))

    assert status.code == Code.ERROR
    assert status.message.startswith("failed to parse pod: preferredAffinityTerms: ")


def test_a_malformed_term_of_a_placed_pod_is_as_if_it_were_not_there():
    away = make_pod_affinity(anti=[MALFORMED, WEB_IN_ZONE])

    assert filtered(cluster_of([on("n1", DB, affinity=away)]), make_pod(labels=WEB)) == SKIP


def test_filter_and_score_without_their_preparation_are_errors():
    cluster = cluster_of()
    plugin, pod, snapshot = plugin_of(cluster), make_pod(), cluster.snapshot()
    node, columns = snapshot.get("n1"), snapshot.columns

    for call in (
        lambda: plugin.filter(CycleState(), pod, node),
        lambda: plugin.filter_rows(CycleState(), pod, columns, columns.all_rows),
        lambda: plugin.remove_pod(CycleState(), pod, pod, node),
        lambda: plugin.score(CycleState(), pod, node),
        lambda: plugin.score_rows(CycleState(), pod, columns, columns.all_rows),
    ):
        with pytest.raises(PluginError, match="from cycleState: not found"):
            call()


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        # 100 * (29 / 100) = 28.999...
        pytest.param([0, 29, 100], [0, 28, 100], id="the quotient comes first"),
        pytest.param([-5, 0, 5], [0, 50, 100], id="negative"),
        pytest.param([7, 7], [0, 0], id="all equal"),
        pytest.param([0, 1, 2, 7], [0, 14, 28, 100]),
        pytest.param([], [], id="none"),
    ],
)
def test_scores_are_stretched_from_0_to_100(raw, normalised):
    scores = np.array(raw, np.int64)

    plugin_of(Cluster()).normalize_scores(CycleState(), make_pod(), scores)

    assert scores.tolist() == normalised


#: n1 and n2 in zone a, n3 and n4 in zone b.
FOUR = [make_node(f"n{i}", zone=zone) for i, zone in enumerate("aabb", start=1)]
TOGETHER_BUT_NOT_ON_ONE_HOST = make_pod_affinity(
    preferred=[(80, WEB_IN_ZONE)], anti_preferred=[(30, WEB_ON_HOST)]
)


@pytest.mark.parametrize(
    ("placed", "raw", "normalised"),
    [
        # 2 * 80 - 30, 2 * 80 - 30, 1 * 80
        pytest.param(["n1", "n2", "n4"], [130, 130, 80], [100, 100, 0], id="one each"),
        # 2 * 80 - 2 * 30, 2 * 80, 1 * 80
        pytest.param(["n1", "n1", "n4"], [100, 160, 80], [25, 100, 0], id="both on one"),
    ],
)
def test_preferred_terms_of_the_pod_weigh_the_domains_of_others(placed, raw, normalised):
    pods = [on(node, name=f"x{i}") for i, node in enumerate(placed)]
    pod = make_pod(affinity=TOGETHER_BUT_NOT_ON_ONE_HOST)
    cluster = cluster_of(pods, nodes=FOUR)

    assert scored(cluster, pod, feasible=["n1", "n2", "n3"]) == (raw, normalised)


@pytest.mark.parametrize(
    ("affinity", "args", "expected"),
    [
        pytest.param(WITH_WEB, {}, ([1, 1, 0], [100, 100, 0]), id="required affinity"),
        pytest.param(WITH_WEB, {"hard_pod_affinity_weight": 0}, SKIP, id="of no weight"),
        pytest.param(
            make_pod_affinity(preferred=[(7, WEB_IN_ZONE)]),
            {},
            ([7, 7, 0], [100, 100, 0]),
            id="preferred affinity",
        ),
        pytest.param(
            make_pod_affinity(anti_preferred=[(7, WEB_IN_ZONE)]),
            {},
            ([-7, -7, 0], [0, 0, 100]),
            id="preferred anti-affinity",
        ),
        pytest.param(AWAY_FROM_WEB, {}, SKIP, id="required anti-affinity is not scored"),
        pytest.param(make_pod_affinity(DB_IN_ZONE), {}, SKIP, id="it does not match the pod"),
        pytest.param(
            make_pod_affinity(preferred=[(7, WEB_IN_ZONE)]),
            {"ignore_preferred_terms_of_existing_pods": True},
            SKIP,
            id="ignored",
        ),
        pytest.param(
            make_pod_affinity(preferred=[(7, WEB_IN_ZONE)], anti_preferred=[(7, WEB_IN_ZONE)]),
            {},
            ([0, 0, 0], [0, 0, 0]),
            id="what cancels out does not skip",
        ),
    ],
)
def test_terms_of_placed_pods_weigh_their_own_domains(affinity, args, expected):
    cluster = cluster_of([on("n1", DB, affinity=affinity)], nodes=FOUR)

    result = scored(cluster, make_pod(labels=WEB), feasible=["n1", "n2", "n3"], **args)

    assert result == expected


def test_terms_of_placed_pods_are_ignored_only_for_pods_without_preferences():
    """Though told to ignore them, the reference heeds them for a pod that has its own."""
    placed = [on("n1", DB, affinity=make_pod_affinity(preferred=[(7, WEB_IN_ZONE)]))]
    pod = make_pod(labels=WEB, affinity=make_pod_affinity(preferred=[(1, DB_IN_ZONE)]))

    raw, _ = scored(
        cluster_of(placed, nodes=FOUR), pod, ignore_preferred_terms_of_existing_pods=True
    )

    assert raw == [8, 8, 0, 0]


@pytest.mark.parametrize("node", ["n4", "unknown"])
def test_a_pod_that_is_in_no_domain_has_no_say(node):
    cluster = cluster_of([on(node)])

    assert (
        scored(cluster, make_pod(affinity=make_pod_affinity(preferred=[(5, WEB_IN_ZONE)]))) == SKIP
    )


def _hint(resource, pod, old, new):
    (event,) = (
        e for e in plugin_of(Cluster()).events_to_register() if e.event.resource == resource
    )
    return event.hint(pod, old, new)


def _placed(labels=WEB, **fields):
    return make_pod("other", **{"node": "n", "labels": labels, **fields})


QUEUE, SKIPPED = Hint.QUEUE, Hint.SKIP
WANTS_WEB = make_pod("waiting", affinity=WITH_WEB)
SHUNS_WEB = make_pod("waiting", affinity=AWAY_FROM_WEB)
SHUNS_BOTH = make_pod(
    "waiting", affinity=make_pod_affinity(anti=[WEB_IN_ZONE, make_affinity_term({"tier": "1"})])
)
BOTH = {"app": "web", "tier": "1"}


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(make_pod("w"), make_pod("w"), make_pod("w", labels=WEB), QUEUE, id="own"),
        pytest.param(WANTS_WEB, None, _placed(node=None), SKIPPED, id="added, not placed"),
        pytest.param(
            WANTS_WEB, None, _placed(node=None, nominated="n"), QUEUE, id="added, nominated"
        ),
        pytest.param(
            WANTS_WEB, _placed(DB, node=None), _placed(), SKIPPED, id="updated, was not placed"
        ),
        pytest.param(WANTS_WEB, _placed(DB), _placed(), QUEUE, id="updated, comes to match"),
        pytest.param(WANTS_WEB, _placed(), _placed(BOTH), SKIPPED, id="updated, matches still"),
        pytest.param(WANTS_WEB, _placed(), _placed(DB), SKIPPED, id="updated, matches no more"),
        pytest.param(SHUNS_WEB, _placed(), _placed(DB), QUEUE, id="updated, no more shunned"),
        pytest.param(SHUNS_WEB, _placed(DB), _placed(), SKIPPED, id="updated, is shunned"),
        pytest.param(
            SHUNS_BOTH, _placed(BOTH), _placed(WEB), QUEUE, id="updated, not shunned by all terms"
        ),
        pytest.param(
            SHUNS_BOTH, _placed(WEB), _placed(DB), SKIPPED, id="updated, was shunned by one term"
        ),
        pytest.param(WANTS_WEB, None, _placed(), QUEUE, id="added, matches"),
        pytest.param(WANTS_WEB, None, _placed(DB), SKIPPED, id="added, does not match"),
        pytest.param(
            WANTS_WEB, None, _placed(namespace="x"), SKIPPED, id="added in another namespace"
        ),
        pytest.param(SHUNS_WEB, None, _placed(DB), SKIPPED, id="added, no affinity"),
        pytest.param(SHUNS_WEB, _placed(), None, QUEUE, id="deleted, was shunned"),
        pytest.param(SHUNS_WEB, _placed(DB), None, SKIPPED, id="deleted, was not shunned"),
        pytest.param(SHUNS_BOTH, _placed(), None, SKIPPED, id="deleted, was shunned by one term"),
        pytest.param(
            make_pod("waiting", labels=WEB),
            _placed(DB, affinity=AWAY_FROM_WEB),
            None,
            QUEUE,
            id="deleted, shunned this pod",
        ),
        pytest.param(
            make_pod("waiting", labels=DB),
            _placed(DB, affinity=AWAY_FROM_WEB),
            None,
            SKIPPED,
            id="deleted, shunned others",
        ),
        pytest.param(
            make_pod("waiting", affinity=make_pod_affinity(MALFORMED)),
            None,
            _placed(DB),
            QUEUE,
            id="malformed",
        ),
        pytest.param(
            make_pod("waiting", affinity=make_pod_affinity(preferred=[(1, MALFORMED)])),
            None,
            _placed(DB),
            SKIPPED,
            id="malformed preferences are not looked at",
        ),
        pytest.param(
            make_pod("waiting"),
            _placed(affinity=make_pod_affinity(anti=[MALFORMED])),
            None,
            QUEUE,
            id="deleted, malformed",
        ),
        pytest.param(
            make_pod(
                "waiting",
                affinity=make_pod_affinity(
                    make_affinity_term(WEB, ZONE, namespace_selector=TEAM_X)
                ),
            ),
            None,
            _placed(),
            SKIPPED,
            id="selected namespaces are not known to hints",
        ),
    ],
)
def test_a_pod_that_comes_or_goes_wakes_those_that_wait_for_it(pod, old, new, hint):
    assert _hint(EventResource.POD, pod, old, new) == hint


IN_A, IN_B, BARE = make_node(zone="a"), make_node(zone="b"), make_node()


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(WANTS_WEB, None, IN_A, QUEUE, id="affinity: added with the key"),
        pytest.param(WANTS_WEB, None, BARE, SKIPPED, id="affinity: added without the key"),
        pytest.param(WANTS_WEB, BARE, IN_A, QUEUE, id="affinity: gets the key"),
        pytest.param(WANTS_WEB, IN_A, IN_B, QUEUE, id="affinity: moves"),
        pytest.param(WANTS_WEB, IN_A, BARE, SKIPPED, id="affinity: loses the key"),
        pytest.param(WANTS_WEB, IN_A, IN_A, SKIPPED, id="affinity: stays"),
        pytest.param(SHUNS_WEB, None, BARE, QUEUE, id="anti-affinity: added"),
        pytest.param(SHUNS_WEB, BARE, IN_A, SKIPPED, id="anti-affinity: gets the key"),
        pytest.param(SHUNS_WEB, IN_A, IN_B, QUEUE, id="anti-affinity: moves"),
        pytest.param(SHUNS_WEB, IN_A, BARE, QUEUE, id="anti-affinity: loses the key"),
        pytest.param(SHUNS_WEB, IN_A, IN_A, SKIPPED, id="anti-affinity: stays"),
        pytest.param(make_pod(labels=WEB), None, IN_A, SKIPPED, id="no terms of its own"),
        pytest.param(
            make_pod(affinity=make_pod_affinity(MALFORMED)), IN_A, IN_A, QUEUE, id="malformed"
        ),
    ],
)
def test_a_node_that_joins_or_leaves_a_domain_wakes_those_with_terms(pod, old, new, hint):
    assert _hint(EventResource.NODE, pod, old, new) == hint


def test_the_events_heard_of_are_those_that_change_who_is_where():
    events = {e.event.resource: e.event.action for e in plugin_of(Cluster()).events_to_register()}

    assert events == {
        EventResource.POD: Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL,
        EventResource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    }


@pytest.mark.parametrize(
    ("pod", "args", "signature"),
    [
        pytest.param(
            make_pod(affinity=Affinity(pod_affinity=PodAffinity())),
            {},
            unschedulable("pods with InterPodAffinity are not signable"),
            id="affinity, be it empty",
        ),
        pytest.param(
            SHUNS_WEB,
            {},
            unschedulable("pods with InterPodAffinity are not signable"),
            id="anti-affinity",
        ),
        pytest.param(
            make_pod(labels=WEB),
            {},
            {"v1.Pod.Labels": frozenset({("app", "web")})},
            id="labels, which others' terms look at",
        ),
        pytest.param(
            make_pod(labels=WEB),
            {"ignore_preferred_terms_of_existing_pods": True},
            {},
            id="ignored",
        ),
    ],
)
def test_a_pod_with_terms_cannot_be_signed(pod, args, signature):
    assert plugin_of(Cluster(), **args).sign(pod) == signature


def test_a_dry_run_leaves_the_original_state_alone():
    cluster = cluster_of([on("n3", DB)])
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, affinity=make_pod_affinity(DB_IN_ZONE, anti=[WEB_ON_HOST]))
    plugin.pre_filter(state, pod, snapshot)
    copy, info = state.clone(), snapshot.get("n3").copy()

    plugin.add_pod(copy, pod, make_pod("x", labels=WEB), info)

    assert plugin.filter(copy, pod, info) == ANTI_AFFINITY
    assert plugin.filter(state, pod, snapshot.get("n3")) == SUCCESS


def test_the_last_pod_to_leave_makes_the_next_one_the_first():
    cluster = cluster_of([on("n3")])
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, affinity=WITH_WEB)
    plugin.pre_filter(state, pod, snapshot)
    assert plugin.filter(state, pod, snapshot.get("n1")) == NO_AFFINITY

    plugin.remove_pod(state, pod, on("n3"), snapshot.get("n3"))

    assert plugin.filter(state, pod, snapshot.get("n1")) == SUCCESS
    assert_filters_agree(plugin, state, pod, snapshot)


def test_an_added_pod_may_bring_a_topology_key_that_was_not_looked_at():
    cluster = cluster_of()
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, affinity=make_pod_affinity(anti=[WEB_ON_HOST]))
    plugin.pre_filter(state, pod, snapshot)

    plugin.add_pod(state, pod, make_pod("x", affinity=AWAY_FROM_WEB), snapshot.get("n1"))

    assert plugin.filter(state, pod, snapshot.get("n2")) == EXISTING
    assert_filters_agree(plugin, state, pod, snapshot)


def test_a_pod_added_where_there_is_no_domain_changes_nothing():
    """n4 has no zone; what happens there is not what happens on other nodes without one."""
    cluster = cluster_of(nodes=[*NODES, make_node("n5")])
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, affinity=AWAY_FROM_WEB)
    plugin.pre_filter(state, pod, snapshot)

    plugin.add_pod(
        state, pod, make_pod("x", labels=WEB, affinity=AWAY_FROM_WEB), snapshot.get("n4")
    )

    assert plugin.filter(state, pod, snapshot.get("n5")) == SUCCESS
    assert_filters_agree(plugin, state, pod, snapshot)


# What follows states the rules once more, over objects alone, and compares.


@st.composite
def incoming_pods(draw):
    return make_pod(
        "incoming",
        namespace=draw(st.sampled_from(topology.NAMESPACES_OF_PODS)),
        labels=draw(topology.pod_labels()),
        affinity=draw(topology.affinities()),
    )


class Oracle:
    """The rules, counting pod by pod."""

    def __init__(self, cluster, pod, *, hard_weight=1, ignore=False):
        self.infos = list(cluster.snapshot())
        self.pod = pod
        self.terms = pod.affinity_terms
        self.namespace_labels = topology.NAMESPACE_LABELS.get(pod.namespace, {})
        self.hard_weight, self.ignore = hard_weight, ignore
        self.existing, self.affinity, self.anti = {}, {}, {}
        for info in self.infos:
            for other in info.pods.values():
                self._count(other, info.labels)

    def incoming_matches(self, term, other):
        """The namespaces that a term selects are named; then it is asked without their labels."""
        named = set(term.namespaces)
        if not term.namespace_selector.everything:
            named |= {
                name
                for name, labels in topology.NAMESPACE_LABELS.items()
                if term.namespace_selector.matches(labels)
            }
        return (
            other.namespace in named or term.namespace_selector.matches({})
        ) and term.selector.matches(other.labels)

    def existing_matches(self, term):
        return term.matches(self.pod.namespace, self.pod.labels, self.namespace_labels)

    def matches_all(self, other):
        terms = self.terms.required_affinity
        return bool(terms) and all(self.incoming_matches(term, other) for term in terms)

    def _count(self, other, labels):
        def add(counts, key):
            if key in labels:
                counts[key, labels[key]] = counts.get((key, labels[key]), 0) + 1

        for term in other.affinity_terms.required_anti_affinity:
            if self.existing_matches(term):
                add(self.existing, term.topology_key)
        if self.matches_all(other):
            for term in self.terms.required_affinity:
                add(self.affinity, term.topology_key)
        for term in self.terms.required_anti_affinity:
            if self.incoming_matches(term, other):
                add(self.anti, term.topology_key)

    @property
    def skips_filter(self):
        return not (
            self.existing or self.terms.required_affinity or self.terms.required_anti_affinity
        )

    def filter(self):
        return {info.name: self._verdict(info.labels) for info in self.infos}

    def _verdict(self, labels):
        keys = [term.topology_key for term in self.terms.required_affinity]
        if not all(key in labels for key in keys):
            return NO_AFFINITY
        if not all(self.affinity.get((key, labels[key]), 0) > 0 for key in keys):
            if self.affinity or not self.matches_all(self.pod):
                return NO_AFFINITY
        for term in self.terms.required_anti_affinity:
            if self.anti.get((term.topology_key, labels.get(term.topology_key)), 0) > 0:
                return ANTI_AFFINITY
        if any(self.existing.get(pair, 0) > 0 for pair in labels.items()):
            return EXISTING
        return SUCCESS

    def scores(self, feasible):
        """None for Skip."""
        mine = self.terms
        if self.ignore and not (mine.preferred_affinity or mine.preferred_anti_affinity):
            return None
        weights: dict[tuple[str, str], int] = {}
        for info in self.infos:
            for other in info.pods.values():
                for weight, term in self._given(other):
                    if term.topology_key in info.labels:
                        pair = term.topology_key, info.labels[term.topology_key]
                        weights[pair] = weights.get(pair, 0) + weight
        if not weights:
            return None
        labels = {info.name: info.labels for info in self.infos}
        raw = [sum(weights.get(pair, 0) for pair in labels[name].items()) for name in feasible]
        lowest, spread = min(raw), max(raw) - min(raw)
        return raw, [int(100.0 * ((s - lowest) / spread)) if spread else 0 for s in raw]

    def _given(self, other):
        for sign, terms in (
            (1, self.terms.preferred_affinity),
            (-1, self.terms.preferred_anti_affinity),
        ):
            yield from ((sign * w, t) for w, t in terms if self.incoming_matches(t, other))
        theirs = other.affinity_terms
        if self.hard_weight > 0:
            for term in theirs.required_affinity:
                if self.existing_matches(term):
                    yield self.hard_weight, term
        for sign, terms in ((1, theirs.preferred_affinity), (-1, theirs.preferred_anti_affinity)):
            yield from ((sign * w, t) for w, t in terms if self.existing_matches(t))


@given(
    cluster=topology.histories(topology.affinities()),
    pod=incoming_pods(),
    hard_weight=st.integers(0, 2),
    ignore=st.booleans(),
    data=st.data(),
)
def test_verdicts_and_scores_are_those_of_the_rules(cluster, pod, hard_weight, ignore, data):
    oracle = Oracle(cluster, pod, hard_weight=hard_weight, ignore=ignore)
    names = [info.name for info in oracle.infos]

    assert filtered(cluster, pod) == (SKIP if oracle.skips_filter else oracle.filter())

    if names:
        feasible = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        scores = scored(
            cluster,
            pod,
            feasible,
            hard_pod_affinity_weight=hard_weight,
            ignore_preferred_terms_of_existing_pods=ignore,
        )
        assert scores == (oracle.scores(feasible) or SKIP)


def _contents(state):
    """Every number that is not 0, by kind, topology key and value."""
    required = state.read("PreFilterInterPodAffinity", object)
    return {
        (kind, table.column.key, value): int(table.totals[code])
        for kind in ("affinity", "anti", "existing_anti")
        for table in getattr(required, kind).tables()
        for code, value in enumerate([*table.column.values, "(none)"])
        if table.totals[code]
    }


@given(cluster=topology.histories(topology.affinities()), pod=incoming_pods(), data=st.data())
def test_adding_a_pod_is_undone_by_removing_it_and_equals_its_having_been_there(cluster, pod, data):
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    if not len(snapshot) or plugin.pre_filter(state, pod, snapshot) is not None:
        return
    before = _contents(state)
    node = data.draw(st.sampled_from(snapshot.order))
    added = data.draw(topology.placed_pods("added", topology.affinities())).placed_on(node)
    info = snapshot.get(node).copy()

    plugin.add_pod(state, pod, added, info)
    after = _contents(state)
    assert_filters_agree(plugin, state, pod, snapshot)
    plugin.remove_pod(state, pod, added, info)
    assert _contents(state) == before

    cluster.add_pod(added)
    recounted = CycleState()
    plugin.pre_filter(recounted, pod, cluster.snapshot())
    assert _contents(recounted) == after
