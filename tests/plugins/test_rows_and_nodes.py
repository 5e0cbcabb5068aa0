"""All rows at once say what each node says, for the plugins that look at the pod and the node alone.

They share what is drawn, since drawing a cluster takes ten times as long as asking them about it.
"""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given

from mooring.framework.cycle_state import CycleState
from mooring.plugins.image_locality import ImageLocality
from mooring.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.plugins.node_name import NodeName
from mooring.plugins.node_ports import NodePorts
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.plugins.taint_toleration import TaintToleration
from tests import generate
from tests.plugins.agreement import assert_filters_agree, assert_scores_agree

FILTERS = (NodeName(), NodeUnschedulable(), TaintToleration())
WITH_PRE_FILTER = (NodePorts(), NodeDeclaredFeatures())
TAINTS = TaintToleration()


@given(pod=generate.pods(), cluster=generate.clusters())
def test_all_rows_at_once_say_what_each_node_says(pod, cluster):
    snapshot = cluster.snapshot()

    for plugin in FILTERS:
        assert_filters_agree(plugin, CycleState(), pod, snapshot)
    for plugin in WITH_PRE_FILTER:
        state = CycleState()
        if plugin.pre_filter(state, pod, snapshot).ok:
            assert_filters_agree(plugin, state, pod, snapshot)
    assert_scores_agree(
        ImageLocality(None, SimpleNamespace(cluster=cluster)), CycleState(), pod, snapshot
    )
    state = CycleState()
    assert TAINTS.pre_score(state, pod, snapshot, snapshot.rows).ok
    assert_scores_agree(TAINTS, state, pod, snapshot)
