import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.cluster.node_matching import RequiredNodeAffinity
from mooring.config.args import LIST_DEFAULTING, PodTopologySpreadArgs
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, Code, unresolvable, unschedulable
from mooring.objects.kinds import ReplicaSet, ReplicaSetSpec
from mooring.objects.meta import ObjectMeta
from mooring.objects.selectors import compile_selector, selector_from_map
from mooring.objects.taints import Toleration, untolerated
from mooring.plugins.pod_topology_spread import PodTopologySpread
from tests import topology_clusters as topology
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_node,
    make_node_affinity,
    make_node_term,
    make_owner,
    make_pod,
    make_selector,
    make_service,
    make_spread,
)
from tests.plugins.agreement import assert_filters_agree, assert_scores_agree

SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
MISSING_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
WEB = {"app": "web"}
NOT_WEB = {"app": "db"}
BY_ZONE = make_spread(ZONE, labels=WEB)
MALFORMED = make_selector(None, ("app", "Near", ["web"]))
GPU = "gpu:NoSchedule"
GPU_TOLERATION = Toleration(key="gpu", operator="Exists")


def cluster_of(nodes, pods=(), *listed):
    """`pods` gives the number of web pods on each node by its name, or pods as they are."""
    cluster = Cluster()
    for node in nodes:
        cluster.add_node(node)
    if isinstance(pods, dict):
        pods = [
            make_pod(f"{node}-{i}", node=node, labels=WEB)
            for node, count in pods.items()
            for i in range(count)
        ]
    for pod in pods:
        cluster.add_pod(pod)
    for obj in listed:
        cluster.listers.put(obj)
    return cluster


def zones(**names):
    """`zones(a="n1 n2", b="n3")`"""
    return [make_node(name, zone=zone) for zone, each in names.items() for name in each.split()]


def plugin_of(cluster, args=None):
    return PodTopologySpread(args, topology.handle_of(cluster))


def listing(*constraints):
    return PodTopologySpreadArgs(default_constraints=constraints, defaulting_type=LIST_DEFAULTING)


def filtered(cluster, pod, args=None, plugin=None):
    """The status of every node by its name, or that of PreFilter if it has something to say."""
    plugin = plugin or plugin_of(cluster, args)
    state, snapshot = CycleState(), cluster.snapshot()
    status = plugin.pre_filter(state, pod, snapshot)
    if status is not None:
        return status
    assert_filters_agree(plugin, state, pod, snapshot)
    return {node.name: plugin.filter(state, pod, node) for node in snapshot}


def scored(cluster, pod, args=None, feasible=None, plugin=None, rows=None):
    """Raw and normalised scores of the feasible nodes, in their order; or the status of PreScore."""
    plugin = plugin or plugin_of(cluster, args)
    state, snapshot = CycleState(), cluster.snapshot()
    if rows is None:
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


THREE_ZONES = zones(a="a", b="b", c="c")
F1 = {"a": 2, "b": 1, "c": 0}


@pytest.mark.parametrize(
    ("pods", "labels", "constraint", "verdicts"),
    [
        # a: 2 + 1 - 0 = 3 > 1; b: 1 + 1 - 0 = 2 > 1; c: 0 + 1 - 0 = 1
        pytest.param(F1, WEB, BY_ZONE, [SKEWED, SKEWED, SUCCESS]),
        # 2 + 1 - 0 = 3 > 2, since there are three domains and not four
        pytest.param(
            {"a": 2, "b": 2, "c": 2},
            WEB,
            make_spread(ZONE, max_skew=2, min_domains=4, labels=WEB),
            [SKEWED] * 3,
            id="fewer domains than there should be",
        ),
        # 2 + 1 - 2 = 1 <= 2
        pytest.param(
            {"a": 2, "b": 2, "c": 2},
            WEB,
            make_spread(ZONE, max_skew=2, min_domains=3, labels=WEB),
            [SUCCESS] * 3,
            id="as many domains as there should be",
        ),
        pytest.param(F1, WEB, make_spread(ZONE, labels={}), [SUCCESS] * 3, id="an empty selector"),
        pytest.param(F1, WEB, make_spread(ZONE, labels=None), [SUCCESS] * 3, id="no selector"),
        # a: 2 + 0 - 0 = 2 > 1; b: 1; c: 0
        pytest.param(
            F1, NOT_WEB, BY_ZONE, [SKEWED, SUCCESS, SUCCESS], id="the pod does not count itself"
        ),
        # Each host is a domain of its own, as in F1.
        pytest.param(
            F1, WEB, make_spread(HOSTNAME, labels=WEB), [SKEWED, SKEWED, SUCCESS], id="hosts"
        ),
    ],
)
def test_a_hard_constraint_refuses_domains_that_would_hold_too_many(
    pods, labels, constraint, verdicts
):
    pod = make_pod(labels=labels, spread=[constraint])

    assert filtered(cluster_of(THREE_ZONES, pods), pod) == dict(zip("abc", verdicts, strict=True))


def test_a_node_without_the_label_is_refused_for_good():
    cluster = cluster_of([*THREE_ZONES, make_node("bare")], F1)
    pod = make_pod(labels=WEB, spread=[BY_ZONE])

    assert filtered(cluster, pod)["bare"] == MISSING_LABEL


def test_the_first_constraint_that_fails_gives_the_reason():
    nodes = [
        *THREE_ZONES,
        make_node("bare"),
        make_node("hostless a", zone="a", hostname=False),
        make_node("hostless b", zone="b", hostname=False),
    ]
    cluster = cluster_of(nodes, {"a": 1})
    by_host = make_spread(HOSTNAME, labels=WEB)

    assert filtered(cluster, make_pod(labels=WEB, spread=[BY_ZONE, by_host])) == {
        "a": SKEWED,
        "b": SUCCESS,
        "c": SUCCESS,
        "bare": MISSING_LABEL,
        "hostless a": SKEWED,
        "hostless b": MISSING_LABEL,
    }


def test_only_nodes_with_every_label_count():
    """The pod on a node without a hostname is not counted, and its zone c is not a domain.

    a: 1 + 1 - 0 = 2 > 1, b: 0 + 1 - 0 = 1; on c there is no pod, so 0 + 1 - 0 = 1.
    """
    nodes = [
        *zones(a="a", b="b"),
        make_node("c", zone="c", hostname=False),
        make_node("d", zone="c"),
    ]
    cluster = cluster_of(nodes, {"a": 1, "c": 1})
    wide = make_spread(HOSTNAME, max_skew=9, labels=WEB)

    assert filtered(cluster, make_pod(labels=WEB, spread=[BY_ZONE, wide])) == {
        "a": SKEWED,
        "b": SUCCESS,
        "c": MISSING_LABEL,
        "d": SUCCESS,
    }


@pytest.mark.parametrize(
    ("policies", "verdicts"),
    [
        # The emptiest of a and b holds 1: a: 2 + 1 - 1 = 2 > 1; b: 1 + 1 - 1 = 1; c: 0 + 1 - 1
        pytest.param({}, [SKEWED, SUCCESS, SUCCESS], id="affinity is honoured by default"),
        pytest.param(
            {"node_affinity_policy": "Honor"}, [SKEWED, SUCCESS, SUCCESS], id="and if told to"
        ),
        pytest.param({"node_affinity_policy": "Ignore"}, [SKEWED, SKEWED, SUCCESS], id="ignored"),
    ],
)
@pytest.mark.parametrize(
    "kept_to",
    [
        {"node_selector": {"kept": "yes"}},
        {"affinity": make_node_affinity(make_node_term(("kept", "Exists", [])))},
    ],
)
def test_nodes_that_the_pod_cannot_use_are_left_out(kept_to, policies, verdicts):
    nodes = [make_node(n, zone=n, labels={"kept": "yes"} if n != "c" else {}) for n in "abc"]
    pod = make_pod(labels=WEB, spread=[make_spread(ZONE, labels=WEB, **policies)], **kept_to)

    assert filtered(cluster_of(nodes, F1), pod) == dict(zip("abc", verdicts, strict=True))


@pytest.mark.parametrize(
    ("policy", "tolerations", "verdicts"),
    [
        pytest.param(None, [], [SKEWED, SKEWED, SUCCESS], id="ignored by default"),
        pytest.param("Ignore", [], [SKEWED, SKEWED, SUCCESS], id="ignored"),
        pytest.param("Honor", [], [SKEWED, SUCCESS, SUCCESS], id="honoured"),
        pytest.param("Honor", [GPU_TOLERATION], [SKEWED, SKEWED, SUCCESS], id="tolerated"),
    ],
)
def test_tainted_nodes_are_left_out_if_asked_for(policy, tolerations, verdicts):
    """As for node affinity, with a taint in place of the missing label."""
    nodes = [make_node(n, zone=n, taints=[GPU] if n == "c" else []) for n in "abc"]
    constraint = make_spread(ZONE, labels=WEB, node_taints_policy=policy)
    pod = make_pod(labels=WEB, spread=[constraint], tolerations=tolerations)

    assert filtered(cluster_of(nodes, F1), pod) == dict(zip("abc", verdicts, strict=True))


def test_where_no_node_counts_there_is_no_skew():
    pod = make_pod(labels=WEB, spread=[BY_ZONE], node_selector={"no": "such"})

    assert filtered(cluster_of(THREE_ZONES, F1), pod) == {"a": SUCCESS, "b": SUCCESS, "c": SUCCESS}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_pod("x", labels=WEB, node="a", namespace="other"), id="elsewhere"),
        pytest.param(make_pod("x", labels=NOT_WEB, node="a"), id="another label"),
        pytest.param(
            make_pod("x", labels=WEB, node="a", deleting=topology.DELETED), id="being deleted"
        ),
        pytest.param(make_pod("x", labels=WEB, node="unknown"), id="on an unknown node"),
    ],
)
def test_other_pods_do_not_count(other):
    pod = make_pod(labels=WEB, spread=[BY_ZONE])

    assert filtered(cluster_of(THREE_ZONES, [other]), pod)["a"] == SUCCESS


@pytest.mark.parametrize(
    ("labels", "selector", "verdict"),
    [
        pytest.param({"app": "web", "rev": "2"}, WEB, SUCCESS, id="the pod's value is required"),
        pytest.param({"app": "web", "rev": "1"}, WEB, SKEWED, id="and may be there"),
        pytest.param(WEB, WEB, SKEWED, id="a key that the pod lacks is dropped"),
        pytest.param({"rev": "1"}, {}, SKEWED, id="it makes an empty selector count"),
        pytest.param({"rev": "1"}, None, SUCCESS, id="a missing selector stays nothing"),
    ],
)
def test_match_label_keys_are_merged_into_the_selector(labels, selector, verdict):
    placed = make_pod("x", node="a", labels={"app": "web", "rev": "1"})
    constraint = make_spread(ZONE, labels=selector, match_label_keys=["rev"])

    verdicts = filtered(
        cluster_of(THREE_ZONES, [placed]), make_pod(labels=labels, spread=[constraint])
    )

    assert verdicts["a"] == verdict


def test_a_pod_without_hard_constraints_skips_filter():
    cluster = cluster_of(THREE_ZONES, F1)
    soft = make_spread(ZONE, hard=False, labels=WEB)

    assert filtered(cluster, make_pod(labels=WEB, spread=[soft])) == SKIP
    assert filtered(cluster, make_pod(labels=WEB)) == SKIP


def test_a_malformed_selector_is_an_error():
    cluster = cluster_of(THREE_ZONES)

    hard = filtered(cluster, make_pod(spread=[make_spread(ZONE, labels=MALFORMED)]))
    soft = scored(cluster, make_pod(spread=[make_spread(ZONE, hard=False, labels=MALFORMED)]))

    assert hard.code == soft.code == Code.ERROR
    assert hard.message.startswith(
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
    )
    assert soft.message.startswith(
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
    )


def test_filter_and_score_without_their_preparation_are_errors():
    cluster = cluster_of(THREE_ZONES)
    plugin, pod, snapshot = plugin_of(cluster), make_pod(), cluster.snapshot()
    node, columns = snapshot.get("a"), snapshot.columns

    for call in (
        lambda: plugin.filter(CycleState(), pod, node),
        lambda: plugin.filter_rows(CycleState(), pod, columns, columns.all_rows),
        lambda: plugin.add_pod(CycleState(), pod, pod, node),
        lambda: plugin.score(CycleState(), pod, node),
        lambda: plugin.score_rows(CycleState(), pod, columns, columns.all_rows),
        lambda: plugin.normalize_scores(CycleState(), pod, np.zeros(3, np.int64)),
    ):
        with pytest.raises(PluginError, match="from cycleState: not found"):
            call()


BY_ZONE_SOFTLY = make_spread(ZONE, hard=False, labels=WEB)
BY_HOST_SOFTLY = make_spread(HOSTNAME, hard=False, labels=WEB)
SERVICE = make_service(selector=WEB)


@pytest.mark.parametrize(
    ("nodes", "pods", "constraints", "raw", "normalised"),
    [
        # 3 ln 4 = 4.16, 1 ln 4 = 1.39; then 100 * (4 + 1 - s) // 4
        pytest.param(
            zones(a="n1 n2", b="n3"),
            {"n1": 1, "n2": 2, "n3": 1},
            [BY_ZONE_SOFTLY],
            [4, 4, 1],
            [25, 25, 100],
            id="one constraint",
        ),
        # 2 ln 5 + 2 + 2 ln 4 + 4 = 11.99; 2 + 2 ln 4 + 4 = 8.77; ln 5 + 2 + ln 4 + 4 = 9.00
        pytest.param(
            zones(a="n1 n2", b="n3"),
            {"n1": 2, "n3": 1},
            [],
            [12, 9, 9],
            [75, 100, 100],
            id="the system's defaults",
        ),
        pytest.param(
            zones(a="n1 n2", b="n3"),
            {},
            [BY_HOST_SOFTLY],
            [0, 0, 0],
            [100, 100, 100],
            id="no pods",
        ),
        # Two candidates, since n2 is ignored: 2 ln 4 = 2.77
        pytest.param(
            [make_node("n1"), make_node("n2", hostname=False), make_node("n3")],
            {"n1": 2, "n2": 1},
            [BY_HOST_SOFTLY],
            [3, 0, 0],
            [0, 0, 100],
            id="a node without the label is ignored",
        ),
        # Two hosts and the zones a and "": ln 4 + 2 + ln 4 + 4 = 8.77; ln 4 + 2 = 3.39
        pytest.param(
            [make_node("n1", zone="a"), make_node("n2")],
            {"n1": 1, "n2": 1},
            [],
            [9, 3],
            [33, 100],
            id="the system's defaults let nodes without a zone compete",
        ),
        # n1: ln 4 + 2 + 2 ln 3 + 4 = 9.58; n2 has no host: 2 ln 3 + 4 = 6.2
        pytest.param(
            [make_node("n1", zone="a"), make_node("n2", zone="a", hostname=False)],
            {"n1": 1, "n2": 1},
            [],
            [10, 6],
            [60, 100],
            id="and nodes without a host name",
        ),
        # c ln 6 + 1: 4.58, 2.79, 1, 6.38; then 100 * (6 + 1 - s) // 6
        pytest.param(
            zones(a="n1 n2 n3 n4"),
            {"n1": 2, "n2": 1, "n4": 3},
            [make_spread(HOSTNAME, max_skew=2, hard=False, labels=WEB)],
            [5, 3, 1, 6],
            [33, 66, 100, 16],
            id="a wider skew waters differences down",
        ),
        # Nothing is counted: 0 + (3 - 1).
        pytest.param(
            zones(a="n1", b="n2"),
            {"n1": 3},
            [make_spread(ZONE, max_skew=3, hard=False, labels={})],
            [2, 2],
            [100, 100],
            id="an empty selector counts no pods",
        ),
        # The zone "" of n2 holds the pods of n3 too: ln 5 + 2 + 2 ln 4 + 4 = 10.38 for n2.
        # n1: 2 + 0 + 4 = 6; n3: ln 5 + 2 = 3.61. There are two zones, a and "".
        pytest.param(
            [make_node("n1", zone="a"), make_node("n2", zone=""), make_node("n3")],
            {"n2": 1, "n3": 1},
            [],
            [6, 10, 4],
            [80, 40, 100],
            id="a missing zone and an empty one are the same",
        ),
    ],
)
def test_soft_constraints_score_fuller_domains_lower(nodes, pods, constraints, raw, normalised):
    cluster = cluster_of(nodes, pods, SERVICE)
    pod = make_pod(labels=WEB, spread=constraints)

    assert scored(cluster, pod) == (raw, normalised)


def test_ignored_nodes_are_no_candidates_and_their_pods_do_not_count():
    """n2 and n3 lack a label. One candidate is left: zone 1 ln 3, host 1 ln 3, together 2.2."""
    nodes = [
        make_node("n1", zone="a"),
        make_node("n2", zone="a", hostname=False),
        make_node("n3"),
    ]
    cluster = cluster_of(nodes, {"n1": 1, "n2": 4, "n3": 4})
    pod = make_pod(labels=WEB, spread=[BY_ZONE_SOFTLY, BY_HOST_SOFTLY])

    assert scored(cluster, pod) == ([2, 0, 0], [100, 0, 0])


def test_pods_on_unknown_nodes_are_in_no_domain_not_even_that_of_the_empty_value():
    """Zone "" holds nothing: 2 + 4."""
    stray = [make_pod(f"x{i}", labels=WEB, node="unknown") for i in range(3)]
    cluster = cluster_of([make_node("n1", zone="")], stray, SERVICE)

    assert scored(cluster, make_pod(labels=WEB)) == ([6], [100])


def test_pods_with_equal_constraints_that_may_use_other_nodes_count_other_nodes():
    """What is kept for the one must not serve the other."""
    nodes = [make_node("n1", zone="a", labels={"kept": "yes"}), make_node("n2", zone="b")]
    cluster = cluster_of(nodes, {"n2": 2})
    plugin = plugin_of(cluster)
    hard, soft = make_pod(labels=WEB, spread=[BY_ZONE]), make_pod(spread=[BY_ZONE_SOFTLY])
    there = {"node_selector": {"kept": "yes"}}
    kept_hard = make_pod(labels=WEB, spread=[BY_ZONE], **there)
    kept_soft = make_pod(spread=[BY_ZONE_SOFTLY], **there)

    for _ in range(2):
        # b: 2 + 1 - 0 = 3 > 1, but 0 + 1 - 0 = 1 if its node does not count
        assert filtered(cluster, hard, plugin=plugin) == {"n1": SUCCESS, "n2": SKEWED}
        assert filtered(cluster, kept_hard, plugin=plugin) == {"n1": SUCCESS, "n2": SUCCESS}
        assert scored(cluster, soft, plugin=plugin)[0] == [0, round(2 * math.log(4))]
        assert scored(cluster, kept_soft, plugin=plugin)[0] == [0, 0]


def test_nodes_that_are_not_feasible_count_but_add_no_domain():
    """n2 adds its pod to zone a, which n1 is in; zone b is nobody's, so ln 3: 2 ln 3 = 2.2."""
    cluster = cluster_of(zones(a="n1 n2", b="n3"), {"n1": 1, "n2": 1, "n3": 5})
    pod = make_pod(labels=WEB, spread=[BY_ZONE_SOFTLY])

    assert scored(cluster, pod, feasible=["n1"]) == ([2], [100])


def test_excluded_nodes_count_for_hosts_but_not_for_zones():
    """The pod's selector excludes n2. Zone: 1 ln 3 = 1.1 for both; host: 1 ln 4 and 2 ln 4 = 2.77."""
    nodes = [make_node("n1", zone="a", labels={"kept": "yes"}), make_node("n2", zone="a")]
    cluster = cluster_of(nodes, {"n1": 1, "n2": 2})
    pod = make_pod(
        labels=WEB, spread=[BY_ZONE_SOFTLY, BY_HOST_SOFTLY], node_selector={"kept": "yes"}
    )

    raw, _ = scored(cluster, pod)

    assert raw == [round(math.log(3) + math.log(4)), round(math.log(3) + 2 * math.log(4))]


@pytest.mark.parametrize(
    ("args", "objects", "fields", "skips"),
    [
        pytest.param(None, [SERVICE], {}, False, id="a service"),
        pytest.param(None, [], {}, True, id="nothing selects the pod"),
        pytest.param(
            None,
            [
                ReplicaSet(
                    metadata=ObjectMeta(name="w", namespace="default"),
                    spec=ReplicaSetSpec(selector=make_selector(WEB)),
                )
            ],
            {"owner": make_owner("ReplicaSet", "w")},
            False,
            id="a controller",
        ),
        pytest.param(
            None,
            [SERVICE],
            {"spread": [make_spread(ZONE, labels=WEB)]},
            True,
            id="an explicit hard constraint keeps soft defaults away",
        ),
        pytest.param(listing(), [SERVICE], {}, True, id="an empty list"),
        pytest.param(listing(make_spread()), [SERVICE], {}, True, id="a hard default"),
        pytest.param(listing(make_spread(hard=False)), [SERVICE], {}, False, id="a soft default"),
    ],
)
def test_defaults_spread_the_pods_of_services_and_controllers(args, objects, fields, skips):
    cluster = cluster_of(zones(a="n1", b="n2"), {"n1": 1}, *objects)
    result = scored(cluster, make_pod(labels=WEB, **fields), args)

    assert (result == SKIP) is skips


def test_a_service_that_selects_other_pods_changes_what_its_pods_are_spread_by():
    green = {**WEB, "color": "green"}
    placed = [make_pod("a", node="n1", labels=WEB), make_pod("b", node="n2", labels=green)]
    cluster = cluster_of(zones(a="n1", b="n2"), placed, make_service(selector=WEB))
    plugin, pod = plugin_of(cluster), make_pod(labels=green)

    assert scored(cluster, pod, plugin=plugin)[1] == [100, 100]

    cluster.listers.put(make_service(selector=green))
    # n1: 2 + 4 = 6; n2: log(4) + 2 + log(4) + 4 = 9, and 100 * (9 + 6 - 9) // 9 = 66
    assert scored(cluster, pod, plugin=plugin) == ([6, 9], [100, 66])


def test_a_listed_default_filters_by_the_deduced_selector_alone():
    """Label keys to match have no effect there: the deduced selector takes the merged one's place."""
    cluster = cluster_of(THREE_ZONES, F1, SERVICE)
    args = listing(make_spread(ZONE, match_label_keys=["rev"]))
    pod = make_pod(labels={**WEB, "rev": "2"})

    assert filtered(cluster, pod, args) == {"a": SKEWED, "b": SKEWED, "c": SUCCESS}


def test_a_listed_default_needs_every_label():
    cluster = cluster_of([*zones(a="n1"), make_node("n2")], {"n1": 1, "n2": 1}, SERVICE)
    args = listing(make_spread(HOSTNAME, hard=False), make_spread(ZONE, hard=False))

    assert scored(cluster, make_pod(labels=WEB), args) == ([2, 0], [100, 0])


def test_without_nodes_there_is_nothing_to_score():
    assert scored(cluster_of([]), make_pod(labels=WEB, spread=[BY_ZONE_SOFTLY])) == SKIP


def _hint(resource, pod, old, new, cluster=None):
    plugin = plugin_of(cluster or Cluster())
    (event,) = (e for e in plugin.events_to_register() if e.event.resource == resource)
    return event.hint(pod, old, new)


def _placed(labels=WEB, **fields):
    return make_pod("other", **{"node": "n", "labels": labels, **fields})


WAITING = make_pod("waiting", labels=WEB, spread=[BY_ZONE])
WAITING_BY_TAINTS = make_pod(
    "waiting", labels=WEB, spread=[make_spread(ZONE, labels=WEB, node_taints_policy="Honor")]
)
QUEUE, SKIPPED = Hint.QUEUE, Hint.SKIP


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(
            WAITING, None, _placed(namespace="other"), SKIPPED, id="added in another namespace"
        ),
        pytest.param(WAITING, None, _placed(node=None), SKIPPED, id="added, not placed"),
        pytest.param(
            WAITING, None, _placed(node=None, nominated="n"), QUEUE, id="added, nominated"
        ),
        pytest.param(
            WAITING, _placed(node=None), _placed(NOT_WEB), SKIPPED, id="updated, was not placed"
        ),
        pytest.param(
            WAITING_BY_TAINTS,
            WAITING_BY_TAINTS,
            make_pod("waiting", labels=WEB, tolerations=[GPU_TOLERATION]),
            QUEUE,
            id="own tolerations changed, and taints are honoured",
        ),
        pytest.param(
            WAITING,
            WAITING,
            make_pod("waiting", labels=WEB, tolerations=[GPU_TOLERATION]),
            SKIPPED,
            id="own tolerations changed, and taints are ignored",
        ),
        pytest.param(
            WAITING_BY_TAINTS,
            _placed(),
            _placed(tolerations=[GPU_TOLERATION]),
            SKIPPED,
            id="another pod's tolerations changed",
        ),
        pytest.param(WAITING, _placed(), _placed(), SKIPPED, id="updated, labels equal"),
        pytest.param(WAITING, _placed(NOT_WEB), _placed(), QUEUE, id="updated, comes to match"),
        pytest.param(WAITING, _placed(), _placed(NOT_WEB), QUEUE, id="updated, matches no more"),
        pytest.param(
            WAITING, _placed(), _placed({**WEB, "v": "1"}), SKIPPED, id="updated, matches still"
        ),
        pytest.param(WAITING, WAITING, make_pod("waiting"), QUEUE, id="own labels match no more"),
        pytest.param(WAITING, None, _placed(), QUEUE, id="added, matches"),
        pytest.param(WAITING, None, _placed(NOT_WEB), SKIPPED, id="added, does not match"),
        pytest.param(WAITING, _placed(), None, QUEUE, id="deleted, matched"),
        pytest.param(WAITING, _placed(NOT_WEB), None, SKIPPED, id="deleted, did not match"),
        pytest.param(
            make_pod(spread=[make_spread(labels=MALFORMED)]), None, _placed(), QUEUE, id="malformed"
        ),
        pytest.param(make_pod(labels=WEB), None, _placed(), SKIPPED, id="no constraints"),
    ],
)
def test_a_pod_that_changes_what_is_counted_wakes_the_waiting(pod, old, new, hint):
    assert _hint(EventResource.POD, pod, old, new) == hint


IN_A, IN_B, BARE = make_node(zone="a"), make_node(zone="b"), make_node()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(BARE, IN_A, QUEUE, id="updated, gets the label"),
        pytest.param(IN_A, BARE, QUEUE, id="updated, loses the label"),
        pytest.param(IN_A, IN_B, QUEUE, id="updated, moves"),
        pytest.param(IN_A, make_node(zone="a", taints=[GPU]), QUEUE, id="updated, other taints"),
        pytest.param(
            IN_A, make_node(zone="a", labels={"x": "y"}), SKIPPED, id="updated, another label"
        ),
        pytest.param(
            BARE, make_node(taints=[GPU]), SKIPPED, id="updated, other taints, lacks the label"
        ),
        pytest.param(None, IN_A, QUEUE, id="added with the label"),
        pytest.param(None, BARE, SKIPPED, id="added without the label"),
        pytest.param(IN_A, None, QUEUE, id="deleted with the label"),
        pytest.param(BARE, None, SKIPPED, id="deleted without the label"),
    ],
)
def test_a_node_that_changes_the_domains_wakes_the_waiting(old, new, hint):
    assert _hint(EventResource.NODE, WAITING, old, new) == hint


def test_a_hint_that_cannot_read_the_constraints_lets_the_pod_be_tried():
    pod = make_pod(spread=[make_spread(labels=MALFORMED)])

    assert _hint(EventResource.NODE, pod, None, BARE) == QUEUE


def test_the_events_heard_of_are_those_that_change_counts_or_domains():
    events = {e.event.resource: e.event.action for e in plugin_of(Cluster()).events_to_register()}

    assert events == {
        EventResource.POD: Action.ADD
        | Action.DELETE
        | Action.UPDATE_POD_LABEL
        | Action.UPDATE_POD_TOLERATION,
        EventResource.NODE: Action.ADD
        | Action.DELETE
        | Action.UPDATE_NODE_LABEL
        | Action.UPDATE_NODE_TAINT,
    }


@pytest.mark.parametrize(
    ("args", "spread", "signature"),
    [
        pytest.param(
            listing(),
            [BY_ZONE],
            unschedulable("pods with topology constraints are not signable"),
            id="own constraints",
        ),
        pytest.param(
            None,
            [],
            unschedulable("pods with default topology constraints are not signable"),
            id="the system's defaults",
        ),
        pytest.param(
            listing(make_spread()),
            [],
            unschedulable("pods with default topology constraints are not signable"),
            id="listed defaults",
        ),
        pytest.param(listing(), [], {}, id="none"),
    ],
)
def test_a_pod_with_constraints_cannot_be_signed(args, spread, signature):
    assert plugin_of(Cluster(), args).sign(make_pod(spread=spread)) == signature


def test_removing_a_pod_that_is_being_deleted_takes_away_what_it_never_gave():
    """A trap of the reference: PreFilter did not count it, RemovePod does.

    Zone a holds one pod that counts, and one that does not; without the latter it is taken to be empty.
    """
    dying = make_pod("dying", labels=WEB, node="a", deleting=topology.DELETED)
    cluster = cluster_of(THREE_ZONES, [make_pod("x", labels=WEB, node="a"), dying])
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, spread=[BY_ZONE])
    plugin.pre_filter(state, pod, snapshot)
    assert plugin.filter(state, pod, snapshot.get("a")) == SKEWED

    plugin.remove_pod(state, pod, dying, snapshot.get("a"))

    assert plugin.filter(state, pod, snapshot.get("a")) == SUCCESS


@pytest.mark.parametrize(
    ("added", "node", "verdict"),
    [
        pytest.param(make_pod("x", labels=WEB), "a", SKEWED, id="counts"),
        pytest.param(make_pod("x", labels=NOT_WEB), "a", SUCCESS, id="another label"),
        pytest.param(make_pod("x", labels=WEB, namespace="y"), "a", SUCCESS, id="elsewhere"),
        pytest.param(make_pod("x", labels=WEB), "hostless", SUCCESS, id="a label is missing"),
        pytest.param(make_pod("x", labels=WEB), "unused", SUCCESS, id="affinity excludes the node"),
        pytest.param(make_pod("x", labels=WEB), "tainted", SUCCESS, id="a taint excludes the node"),
    ],
)
def test_an_added_pod_counts_where_a_placed_one_would(added, node, verdict):
    used = {"used": "yes"}
    nodes = [
        make_node("a", zone="a", labels=used),
        make_node("b", zone="b", labels=used),
        make_node("hostless", zone="a", labels=used, hostname=False),
        make_node("unused", zone="a"),
        make_node("tainted", zone="a", labels=used, taints=[GPU]),
    ]
    wide = make_spread(HOSTNAME, max_skew=9, labels=WEB)
    by_zone = make_spread(ZONE, labels=WEB, node_taints_policy="Honor")
    pod = make_pod(labels=WEB, spread=[by_zone, wide], node_selector=used)
    cluster = cluster_of(nodes)
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    plugin.pre_filter(state, pod, snapshot)

    plugin.add_pod(state, pod, added, snapshot.get(node))

    assert plugin.filter(state, pod, snapshot.get("a")) == verdict
    assert filtered(cluster_of(nodes, [added.placed_on(node)]), pod)["a"] == verdict


def test_an_added_pod_counts_where_policies_ignore_what_keeps_the_pod_away():
    cluster = cluster_of([*zones(a="a", b="b")])
    by_zone = make_spread(ZONE, labels=WEB, node_affinity_policy="Ignore")
    pod = make_pod(labels=WEB, spread=[by_zone], node_selector={"no": "such"})
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    plugin.pre_filter(state, pod, snapshot)

    plugin.add_pod(state, pod, make_pod("x", labels=WEB), snapshot.get("a"))

    assert plugin.filter(state, pod, snapshot.get("a")) == SKEWED


def test_an_added_pod_counts_for_an_empty_selector_though_none_of_the_others_do():
    cluster = cluster_of(THREE_ZONES, F1)
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(spread=[make_spread(ZONE, labels={})])
    plugin.pre_filter(state, pod, snapshot)

    plugin.add_pod(state, pod, make_pod("x"), snapshot.get("a"))

    assert plugin.filter(state, pod, snapshot.get("a")) == SKEWED


def test_a_dry_run_leaves_the_original_state_alone():
    cluster = cluster_of(THREE_ZONES)
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    pod = make_pod(labels=WEB, spread=[BY_ZONE])
    plugin.pre_filter(state, pod, snapshot)
    copy, info = state.clone(), snapshot.get("a").copy()

    plugin.add_pod(copy, pod, make_pod("x", labels=WEB), info)

    assert plugin.filter(copy, pod, info) == SKEWED
    assert plugin.filter(state, pod, snapshot.get("a")) == SUCCESS


# What follows states the rules once more, over objects alone, and compares.


def constraints():
    return st.builds(
        make_spread,
        st.sampled_from(topology.KEYS),
        max_skew=st.integers(1, 3),
        hard=st.booleans(),
        labels=topology.label_selectors(),
        min_domains=st.none() | st.integers(1, 4),
        node_affinity_policy=st.sampled_from((None, "Honor", "Ignore")),
        node_taints_policy=st.sampled_from((None, "Honor", "Ignore")),
        match_label_keys=st.sampled_from(([], [], ["tier"])),
    )


@st.composite
def incoming_pods(draw):
    return make_pod(
        "incoming",
        namespace=draw(st.sampled_from(topology.NAMESPACES_OF_PODS)),
        labels=draw(topology.pod_labels()),
        spread=draw(st.lists(constraints(), max_size=3)),
        node_selector=draw(st.none() | st.just({topology.RACK: "r"})),
        tolerations=draw(st.lists(st.just(GPU_TOLERATION), max_size=1)),
    )


@st.composite
def arguments(draw):
    if draw(st.booleans()):
        return None
    return listing(
        *draw(
            st.lists(
                st.builds(make_spread, st.sampled_from(topology.KEYS), hard=st.booleans()),
                max_size=2,
            )
        )
    )


SYSTEM_DEFAULTS = [
    make_spread(HOSTNAME, max_skew=3, hard=False),
    make_spread(ZONE, max_skew=5, hard=False),
]


class Oracle:
    """The rules, counting pod by pod."""

    def __init__(self, cluster, pod, args, service):
        self.infos = list(cluster.snapshot())
        self.pod = pod
        self.own = bool(pod.spec.topology_spread_constraints)
        self.require_all = self.own or args is not None
        defaults = SYSTEM_DEFAULTS if args is None else list(args.default_constraints)
        self.deduced = selector_from_map(service) if service.items() <= pod.labels.items() else None
        selected = self.deduced is not None and self.deduced.requirements
        self.constraints = (
            pod.spec.topology_spread_constraints if self.own else defaults if selected else []
        )

    def of_action(self, action):
        return [c for c in self.constraints if c.when_unsatisfiable == action]

    def selector(self, constraint):
        if not self.own:
            return self.deduced
        selector = compile_selector(constraint.label_selector)
        merged = {
            k: self.pod.labels[k] for k in constraint.match_label_keys if k in self.pod.labels
        }
        return selector.plus(selector_from_map(merged).requirements)

    def count(self, info, constraint):
        selector = self.selector(constraint)
        if selector.everything:
            return 0
        return sum(
            pod.namespace == self.pod.namespace
            and not pod.terminating
            and selector.matches(pod.labels)
            for pod in info.pods.values()
        )

    def included(self, info, constraint):
        if constraint.node_affinity_policy != "Ignore":
            if not RequiredNodeAffinity.of(self.pod).matches(info):
                return False
        if constraint.node_taints_policy == "Honor":
            return untolerated(info.taints, self.pod.spec.tolerations) is None
        return True

    def filter(self):
        hard = self.of_action("DoNotSchedule")
        match = []
        for constraint in hard:
            domains: dict[str, int] = {}
            for info in self.infos:
                if not all(c.topology_key in info.labels for c in hard):
                    continue
                if self.included(info, constraint):
                    value = info.labels[constraint.topology_key]
                    domains[value] = domains.get(value, 0) + self.count(info, constraint)
            match.append(domains)
        return {info.name: self._verdict(info, hard, match) for info in self.infos}

    def _verdict(self, info, hard, match):
        for constraint, domains in zip(hard, match, strict=True):
            if constraint.topology_key not in info.labels:
                return MISSING_LABEL
            enough = len(domains) >= (constraint.min_domains or 1)
            minimum = min(domains.values()) if enough else 0
            itself = self.selector(constraint).matches(self.pod.labels)
            there = domains.get(info.labels[constraint.topology_key], 0)
            if there + itself - minimum > constraint.max_skew:
                return SKEWED
        return SUCCESS

    def scores(self, feasible):
        """Raw and normalised, for the nodes of these names."""
        soft = self.of_action("ScheduleAnyway")
        candidates = [info for name in feasible for info in self.infos if info.name == name]
        needed = [c.topology_key for c in soft] if self.require_all else []
        ignored = [not all(key in info.labels for key in needed) for info in candidates]
        kept = [i for i, out in zip(candidates, ignored, strict=True) if not out]
        raw = []
        for info, out in zip(candidates, ignored, strict=True):
            total = 0.0
            for constraint in () if out else soft:
                if constraint.topology_key in info.labels:
                    total += self._score(info, constraint, kept, needed)
            raw.append(math.floor(total) + (total - math.floor(total) >= 0.5))
        counted = [s for s, out in zip(raw, ignored, strict=True) if not out]
        highest, lowest = max([0, *counted]), min(counted, default=0)
        normalised = [
            0 if out else 100 if highest == 0 else 100 * (highest + lowest - s) // highest
            for s, out in zip(raw, ignored, strict=True)
        ]
        return raw, normalised

    def _score(self, info, constraint, kept, needed):
        key = constraint.topology_key
        if key == HOSTNAME:
            size, count = len(kept), self.count(info, constraint)
        else:
            size = len({other.labels.get(key, "") for other in kept})
            count = sum(
                self.count(other, constraint)
                for other in self.infos
                if other.labels.get(key, "") == info.labels[key]
                and all(k in other.labels for k in needed)
                and self.included(other, constraint)
            )
        return float(count) * math.log(size + 2) + float(constraint.max_skew - 1)


@given(
    cluster=topology.histories(),
    pod=incoming_pods(),
    args=arguments(),
    service=topology.pod_labels(),
    data=st.data(),
)
def test_verdicts_and_scores_are_those_of_the_rules(cluster, pod, args, service, data):
    cluster.listers.put(make_service(selector=service, namespace=pod.namespace))
    oracle = Oracle(cluster, pod, args, service)
    names = [info.name for info in oracle.infos]
    feasible = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)) if names else []

    verdicts = filtered(cluster, pod, args)
    if oracle.of_action("DoNotSchedule"):
        assert verdicts == oracle.filter()
    else:
        assert verdicts == SKIP

    scores = scored(cluster, pod, args, feasible)
    if oracle.of_action("ScheduleAnyway") and names:
        assert scores == oracle.scores(feasible)
    else:
        assert scores == SKIP


@given(
    cluster=topology.histories(),
    pods=st.lists(incoming_pods(), min_size=1, max_size=2),
    args=arguments(),
    data=st.data(),
)
def test_what_is_kept_from_pod_to_pod_follows_the_cluster(cluster, pods, args, data):
    plugin, selections = plugin_of(cluster, args), {}
    happens = ("nothing", "pod", "pod", "drop pod", "node", "drop node", "service")
    for step in range(data.draw(st.integers(2, 6))):
        match data.draw(st.sampled_from(happens)) if step else "service":
            case "service":
                service = data.draw(topology.pod_labels())
                for namespace in topology.NAMESPACES:
                    cluster.listers.put(make_service(selector=service, namespace=namespace))
            case "pod":
                name = data.draw(st.sampled_from(topology.PODS))
                topology.put_pod(cluster, data.draw(topology.placed_pods(name)))
            case "drop pod" if cluster.pods:
                cluster.remove_pod(cluster.pods[data.draw(st.sampled_from(sorted(cluster.pods)))])
            case "node":
                name = data.draw(st.sampled_from(topology.NODES))
                cluster.update_node(data.draw(topology.nodes(name)))
            case "drop node" if len(cluster.snapshot()) > 1:
                cluster.remove_node(data.draw(st.sampled_from(cluster.snapshot().order)))
        pod = data.draw(st.sampled_from(pods))
        if data.draw(st.booleans()):
            labels = data.draw(topology.pod_labels())
            pod = replace(pod, metadata=replace(pod.metadata, labels=labels))
        if data.draw(st.booleans()):
            selector = data.draw(st.none() | st.just({topology.RACK: "r"}))
            pod = replace(pod, spec=replace(pod.spec, node_selector=selector))
        oracle, snapshot = Oracle(cluster, pod, args, service), cluster.snapshot()
        if not len(snapshot):
            continue
        # Scheduling hands over the same rows as long as the same nodes are feasible.
        every = snapshot.columns.all_rows
        rows = np.array(data.draw(st.sampled_from((snapshot.rows, snapshot.rows[:2]))), np.intp)
        rows = selections.setdefault(tuple(rows.tolist()), rows)
        names = snapshot.columns.names_of(rows)
        if len(snapshot) == every.stop and data.draw(st.booleans()):
            rows, names = every, snapshot.columns.names_of(every)

        verdicts = filtered(cluster, pod, plugin=plugin)
        scores = scored(cluster, pod, plugin=plugin, rows=rows)

        assert verdicts == (oracle.filter() if oracle.of_action("DoNotSchedule") else SKIP)
        assert scores == (oracle.scores(names) if oracle.of_action("ScheduleAnyway") else SKIP)


def _contents(state):
    spreads = state.read("PreFilterPodTopologySpread", object).spreads
    return [(s.counts.totals.tolist(), s.exists.tolist()) for s in spreads]


@given(cluster=topology.histories(), pod=incoming_pods(), data=st.data())
def test_adding_a_pod_is_undone_by_removing_it_and_equals_its_having_been_there(cluster, pod, data):
    plugin, state, snapshot = plugin_of(cluster), CycleState(), cluster.snapshot()
    if not len(snapshot) or plugin.pre_filter(state, pod, snapshot) is not None:
        return
    before = _contents(state)
    node = data.draw(st.sampled_from(snapshot.order))
    added = make_pod(
        "added",
        namespace=data.draw(st.sampled_from(topology.NAMESPACES_OF_PODS)),
        labels=data.draw(topology.pod_labels()),
        node=node,
    )
    info = snapshot.get(node).copy()

    plugin.add_pod(state, pod, added, info)
    after = _contents(state)
    plugin.remove_pod(state, pod, added, info)
    assert _contents(state) == before

    counts_none = any(
        c.label_selector == make_selector() and not (c.match_label_keys and "tier" in pod.labels)
        for c in pod.spec.topology_spread_constraints
    )
    if not counts_none:
        cluster.add_pod(added)
        recounted = CycleState()
        plugin.pre_filter(recounted, pod, cluster.snapshot())
        assert _contents(recounted) == after
