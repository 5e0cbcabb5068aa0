from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.affinity_terms import HeldTerms, TermKind
from tests import topology_clusters as topology
from tests.makers import ZONE, make_affinity_term, make_pod, make_pod_affinity, make_selector

AWAY_FROM_WEB = make_pod_affinity(anti=[make_affinity_term({"app": "web"})])


def described(held):
    """What a held term is, and how many pods hold it on each row that has any."""
    rows = {row: int(count) for row, count in enumerate(held.counts) if count}
    return held.kind, held.weight, held.term, tuple(sorted(rows.items()))


@given(
    cluster=topology.histories(topology.affinities()),
    namespace=st.sampled_from(topology.NAMESPACES),
    labels=topology.pod_labels(),
)
def test_terms_kept_through_any_history_equal_those_of_the_pods_that_are_there(
    cluster, namespace, labels
):
    incoming = make_pod("incoming", namespace=namespace, labels=labels)
    namespace_labels = cluster.listers.namespace_labels(namespace)

    recount: dict[tuple[object, ...], Counter[int]] = {}
    for info in cluster.infos.values():
        for pod in info.pods.values():
            terms = pod.affinity_terms
            for kind, weight, term in [
                *((TermKind.REQUIRED_AFFINITY, 0, t) for t in terms.required_affinity),
                *((TermKind.REQUIRED_ANTI_AFFINITY, 0, t) for t in terms.required_anti_affinity),
                *((TermKind.PREFERRED_AFFINITY, w, t) for w, t in terms.preferred_affinity),
                *(
                    (TermKind.PREFERRED_ANTI_AFFINITY, w, t)
                    for w, t in terms.preferred_anti_affinity
                ),
            ]:
                if term.matches(namespace, labels, namespace_labels):
                    recount.setdefault((kind, weight, term), Counter())[info.row] += 1

    matching = cluster.held_terms.matching(incoming, namespace_labels)

    assert Counter(map(described, matching)) == Counter(
        (*key, tuple(sorted(rows.items()))) for key, rows in recount.items()
    )


def test_equal_terms_of_several_pods_are_one_held_term():
    held = HeldTerms(3)
    for name, row in (("a", 0), ("b", 2), ("c", 2)):
        held.add(make_pod(name, labels={"app": "web"}, affinity=AWAY_FROM_WEB), row)

    (term,) = held.matching(make_pod(labels={"app": "web"}), {})

    assert term.counts.tolist() == [1, 0, 2]
    assert term.holders == 3


@pytest.mark.parametrize(
    ("pod", "matches"),
    [
        pytest.param(make_pod(labels={"app": "web", "v": "1"}), True, id="matches"),
        pytest.param(make_pod(labels={"app": "db"}), False, id="another value"),
        pytest.param(make_pod(), False, id="no label"),
        pytest.param(
            make_pod(namespace="other", labels={"app": "web"}), False, id="another namespace"
        ),
    ],
)
def test_a_term_is_found_for_the_pods_it_matches(pod, matches):
    held = HeldTerms(1)
    held.add(make_pod("holder", affinity=AWAY_FROM_WEB), 0)

    assert bool(held.matching(pod, {})) is matches


def test_a_term_with_a_namespace_selector_is_found_from_any_namespace():
    held = HeldTerms(1)
    term = make_affinity_term(
        make_selector(), ZONE, namespaces=["x"], namespace_selector=make_selector({"team": "y"})
    )
    held.add(make_pod("holder", affinity=make_pod_affinity(preferred=[(7, term)])), 0)
    pod = make_pod(namespace="other")

    assert [t.weight for t in held.matching(pod, {"team": "y"})] == [7]
    assert held.matching(pod, {"team": "x"}) == []


def test_a_term_that_nobody_holds_any_more_is_gone():
    held = HeldTerms(1)
    holder = make_pod("holder", affinity=AWAY_FROM_WEB)
    held.add(holder, 0)
    held.remove(holder, 0)

    assert not held.matching(make_pod(labels={"app": "web"}), {})
    with pytest.raises(KeyError):
        held.remove(holder, 0)


def test_growing_keeps_who_holds_what():
    held = HeldTerms(1)
    held.add(make_pod("a", affinity=AWAY_FROM_WEB), 0)
    held.grow(3)
    held.add(make_pod("b", affinity=AWAY_FROM_WEB), 2)

    (term,) = held.matching(make_pod(labels={"app": "web"}), {})

    assert term.counts.tolist() == [1, 0, 1]
