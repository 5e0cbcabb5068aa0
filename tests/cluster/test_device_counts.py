"""Counts of devices, for scoring: what is kept for all rows is what a count of each node gives."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.config.args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from mooring.framework.cycle_state import CycleState
from mooring.objects.devices import ResourceClaim, ResourceSlice
from mooring.objects.node import Node
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit
from tests.devices.device_makers import make_claim, make_class, make_held, make_slice
from tests.makers import make_node, make_pod
from tests.plugins.agreement import assert_scores_agree

GPU = "example.com/gpu"
NODES = ("n1", "n2", "n3")
DEVICES = ("a", "b", "c")
SCORED = (ResourceSpec("cpu", 1), ResourceSpec(GPU, 3))
POD = make_pod(requests={"cpu": "1", GPU: "1"})


@st.composite
def slices(draw: st.DrawFn) -> ResourceSlice:
    """Of a node, or of all; several generations of a pool count."""
    name = draw(st.sampled_from(("s1", "s2", "s3")))
    return make_slice(
        *draw(st.lists(st.sampled_from(DEVICES), unique=True)),
        name=name,
        pool=draw(st.sampled_from(("p", "q"))),
        driver=draw(st.sampled_from(("d", "other"))),
        node=draw(st.sampled_from(NODES)),
        all_nodes=draw(st.sampled_from((None, None, True))),
    )


@st.composite
def claims(draw: st.DrawFn) -> ResourceClaim:
    holds = [
        make_held(
            name, pool=draw(st.sampled_from(("p", "q"))), share=draw(st.none() | st.just("1"))
        )
        for name in draw(st.lists(st.sampled_from(DEVICES), unique=True))
    ]
    return make_claim(name=draw(st.sampled_from(("c1", "c2"))), holds=holds)


@st.composite
def changes(draw: st.DrawFn) -> object:
    gpus = draw(st.sampled_from(({}, {}, {GPU: 2})))
    node = make_node(draw(st.sampled_from(NODES)), **gpus)
    return draw(slices() | claims() | st.just(node))


def put(cluster: Cluster, changed: object) -> None:
    if not isinstance(changed, Node):
        cluster.listers.put(changed)
    elif changed.name in cluster.infos:
        cluster.update_node(changed)
    else:
        cluster.add_node(changed)


@settings(deadline=None)
@given(steps=st.lists(changes(), max_size=12))
def test_kept_counts_of_rows_are_those_of_each_node(steps):
    cluster = Cluster()
    served = make_class()
    cluster.listers.put(replace(served, spec=replace(served.spec, extended_resource_name=GPU)))
    handle = SimpleNamespace(cluster=cluster)
    fit = NodeResourcesFit(
        NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", SCORED)), handle
    )
    balanced = NodeResourcesBalancedAllocation(
        NodeResourcesBalancedAllocationArgs(resources=SCORED), handle
    )

    for step in [make_node("n1"), *steps]:
        put(cluster, step)
        snapshot = cluster.snapshot()
        counts, columns = cluster.device_counts, snapshot.columns
        in_use, devices = counts.on_rows(GPU, columns, snapshot.rows, cluster.infos)

        names = columns.names_of(snapshot.rows)
        expected = [counts.of(GPU, cluster.infos[name].node) for name in names]
        assert list(zip(in_use.tolist(), devices.tolist(), strict=True)) == expected
        for plugin in (fit, balanced):
            assert_scores_agree(plugin, CycleState(), POD, snapshot)
