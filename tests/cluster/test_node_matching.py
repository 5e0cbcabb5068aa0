from hypothesis import given

from mooring.cluster.node_matching import RequiredNodeAffinity
from tests import generate


@given(pod=generate.pods(), cluster=generate.clusters())
def test_all_rows_at_once_match_where_each_node_matches(pod, cluster):
    snapshot = cluster.snapshot()
    required = RequiredNodeAffinity.of(pod)

    matching = required.match_rows(snapshot.columns, snapshot.columns.all_rows)
    assert matching.nonzero()[0].tolist() == sorted(
        node.row for node in snapshot if required.matches(node)
    )
    some = snapshot.rows[::-2]
    assert required.match_rows(snapshot.columns, some).tolist() == matching[some].tolist()


@given(pod=generate.pods(), cluster=generate.clusters())
def test_a_selector_and_terms_are_counted_once_each(pod, cluster):
    """What matches with both must match with either alone."""
    required = RequiredNodeAffinity.of(pod)
    selector, terms = (
        RequiredNodeAffinity(required.selector),
        RequiredNodeAffinity(terms=required.terms),
    )

    for node in cluster.snapshot():
        assert required.matches(node) == (selector.matches(node) and terms.matches(node))
