"""Questions leave no trace."""

from __future__ import annotations

from mooring.config import load_config
from mooring.explain.what_if import WhatIf
from mooring.sim.simulation import SimOptions
from tests.makers import make_node, make_node_affinity, make_node_term, make_pod

SAMPLING = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 50,
    }
)


def test_a_question_does_not_move_the_place_where_the_next_search_starts():
    """With a sample of the nodes it matters where the search for them starts."""
    nodes = [make_node(f"n{i}", cpu="4") for i in range(7)]
    what_if = WhatIf.as_read(nodes, SimOptions(config=SAMPLING))
    try:
        search = what_if.scheduler.searches["default-scheduler"]
        before = search.start.position
        # Of the pod's own node alone: the search ends in the middle of the nodes.
        by_name = make_node_term(fields=[("metadata.name", "In", ["n3"])])
        pod = make_pod("p", cpu="1", affinity=make_node_affinity(by_name))
        for _ in range(3):
            what_if.look(pod)
            what_if.fits(pod)

        assert search.start.position == before
    finally:
        what_if.close()


def test_explaining_a_placed_pod_does_not_change_whom_preemption_evicts():
    """Of equally important pods, the order on the node decides who is spared.

    To ask about a pod as if it had no node, it was removed and added again, and so came last.
    """
    placed = [make_pod(name, cpu="1", node="n") for name in "abcd"]
    preemptor = make_pod("p", cpu="1", priority=10)
    what_if = WhatIf.as_read([make_node("n", cpu="4"), *placed, preemptor])
    try:

        def victims() -> object:
            said = what_if.look_and_preempt(preemptor).post_filtering
            assert said is not None
            return said

        before = victims()
        what_if.look_without(placed[0])

        assert victims() == before
        on_node = what_if.cluster.infos["n"].pods.values()
        assert [pod.name for pod in on_node] == ["a", "b", "c", "d"]
    finally:
        what_if.close()
