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
