"""Explanations: whose cluster they are about, what the story says, and what cannot be answered."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mooring.config import load_config
from mooring.explain.explanation import CannotAnswer, Explanation, explainer_for
from mooring.library import Cluster
from mooring.objects.meta import KubeObject
from mooring.sim.simulation import SimOptions
from tests.engine import registry_with
from tests.makers import make_node, make_pod


def explain(*objects: KubeObject, pod: str = "p", as_is: bool = False) -> Explanation:
    return Cluster.of(objects).explain(pod, as_is=as_is)


def told(explanation: Explanation) -> dict[str, str]:
    return {step.point: step.text for step in explanation.story}


# Which cluster it is about


def test_a_placed_pod_is_explained_by_the_cluster_of_its_moment():
    """The second pod fills node a; that must not show in why the first went there."""
    first = make_pod("p", cpu=1)
    second = make_pod("second", cpu=3, node_selector={"kubernetes.io/hostname": "a"})

    explanation = explain(make_node("a"), make_node("b"), first, second)

    assert (explanation.state, explanation.node, explanation.fits) == ("placed", "a", True)
    assert explanation.tied == ("a", "b")
    assert any("tied with 1 other node (" in step.text for step in explanation.story)
    assert explanation.margin is None
    assert explanation.matrix is not None
    assert {view.node: view.total for view in explanation.matrix.best(2)} == {
        "a": explanation.matrix.node("b").total,
        "b": explanation.matrix.node("b").total,
    }


def test_the_margin_is_what_the_best_leads_the_next_by():
    explanation = explain(
        make_node("a", cpu=8), make_node("b"), make_pod("q", node="b"), make_pod(cpu=1)
    )
    matrix = explanation.matrix
    assert matrix is not None
    first, second = matrix.best(2)

    assert first.node == explanation.node == "a"
    assert explanation.margin == first.total - second.total > 0
    assert f"{explanation.margin} more than the next" in told(explanation)["choice"]


def test_a_pending_pod_is_explained_by_the_end_of_the_simulation():
    filler = make_pod("a-filler", cpu=3)

    explanation = explain(make_node("n"), filler, make_pod(cpu=2))

    assert (explanation.state, explanation.node, explanation.fits) == ("unschedulable", "", False)
    assert told(explanation)["Filter"] == "0 of 1 node fits: NodeResourcesFit rejects 1"
    assert explanation.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_as_is_nothing_is_placed_first():
    explanation = explain(make_node("n"), make_pod("a-filler", cpu=3), make_pod(cpu=2), as_is=True)

    assert (explanation.state, explanation.node) == ("schedulable", "n")


def test_a_pod_that_came_with_its_node_is_explained_without_itself():
    explanation = explain(make_node("n", cpu=1), make_node("m"), make_pod(node="n", cpu=1))

    assert (explanation.state, explanation.node) == ("placed", "n")
    assert explanation.matrix is not None
    assert explanation.matrix.node("n").fits
    assert told(explanation)["today"] == "if it were scheduled again, it would go to m"


def test_a_pod_that_has_finished_is_explained_by_the_moment_it_was_placed():
    runs = {"mooring.dev/run-seconds": "60"}
    explanation = explain(make_node("n"), make_pod(annotations=runs))

    assert explanation.state == "finished"
    assert "finished at 60s" in told(explanation)["Bind"]


# The story


def test_a_gated_pod_is_not_let_in_and_still_looked_at():
    explanation = explain(make_node("n"), make_pod(gates=["quota"]))

    assert (explanation.state, explanation.fits) == ("gated", False)
    assert told(explanation)["PreEnqueue"] == "waiting for scheduling gates: quota"
    assert explanation.matrix is not None
    assert explanation.matrix.node("n").fits


def test_a_pod_of_an_unknown_scheduler_is_ignored():
    explanation = explain(make_node("n"), make_pod(scheduler="other"))

    assert (explanation.state, explanation.matrix) == ("ignored", None)
    assert "no profile has the scheduler name 'other'" in explanation.message


@pytest.mark.parametrize("as_is", [False, True])
def test_a_pod_that_is_being_deleted_goes_nowhere(as_is):
    """It was said to go to the node that it fits on."""
    objects = [make_node("n"), make_pod(deleting=datetime(2026, 1, 1, tzinfo=UTC))]

    explanation = explain(*objects, as_is=as_is)

    assert (explanation.state, explanation.fits) == ("terminating", False)
    assert "is being deleted" in explanation.message
    assert Cluster.of(objects).counterfactuals("p").note == "the pod is being deleted"


def test_preemption_is_told_and_not_carried_out():
    objects = [make_node("n"), make_pod("low", node="n", cpu=4), make_pod(cpu=1, priority=9)]

    explanation = explain(*objects, as_is=True)

    assert told(explanation)["PostFilter"] == (
        "preemption would make room on n by evicting default/low (priority 0)"
    )


@pytest.mark.parametrize(
    ("others", "pod"),
    [
        ([], make_pod(cpu=9)),
        ([make_pod("low", node="n", cpu=4)], make_pod(cpu=9, priority=9)),
        ([make_pod("equal", node="n", cpu=4)], make_pod(cpu=1)),
        ([], make_pod(node_selector={"disk": "ssd"})),
        ([make_pod("other", node="n", ports=[80])], make_pod(ports=[80])),
        ([], make_pod(cpu=9, preemption_policy="Never")),
    ],
)
def test_a_pending_pod_s_message_is_the_scheduler_s_word_for_word(others, pod):
    cluster = Cluster.of([make_node("n"), *others, pod])

    (pending,) = cluster.simulate().pending

    assert cluster.explain("p").message == pending.message
    assert told(cluster.explain("p"))["PostFilter"] in pending.message


class Acting:
    """A PostFilter of someone's own: nobody knows what asking it does."""

    name = "Acting"

    def __init__(self, args: object, handle: object) -> None:
        self.asked = 0

    def post_filter(self, state, pod, statuses):
        raise AssertionError("it was asked")


def test_a_post_filter_that_may_act_is_not_asked():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"postFilter": {"enabled": [{"name": "Acting"}]}}}],
        }
    )
    options = SimOptions(config=config, registry=registry_with({"Acting": Acting}))
    explainer = explainer_for([make_node("n"), make_pod(cpu=9)], options, as_read=True)
    try:
        steps = [
            step for step in explainer.explain("default/p").story if step.point == "PostFilter"
        ]
    finally:
        explainer.what_if.close()

    assert "Preemption is not helpful" in steps[0].text
    assert steps[1].text == "Acting: not asked, because asking could change the cluster"


def test_the_only_node_that_fits_is_not_scored():
    explanation = explain(make_node("n"), make_node("m", cpu=0), make_pod(cpu=1))

    assert told(explanation)["choice"] == "n is the only node that fits"
    assert "Score" not in told(explanation)


# Nonsense


def test_one_pod_is_counted_as_one():
    with pytest.raises(CannotAnswer) as caught:
        explain(make_node("n"), make_pod("web"), pod="qqqqqqqq")

    assert str(caught.value) == "there is no pod 'qqqqqqqq' among 1 pod"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("wbe-0", "there is no pod 'wbe-0'; did you mean shop/web-0 or shop/web-1?"),
        ("web", "there is no pod 'web'; did you mean shop/web-0 or shop/web-1?"),
        ("shop/web", "there is no pod 'shop/web'; did you mean shop/web-0 or shop/web-1?"),
        ("default/web-0", "there is no pod 'default/web-0'; did you mean"),
        ("qqqqqqqq", "there is no pod 'qqqqqqqq' among 4 pods"),
        ("twin", "2 pods are called 'twin'; name one of a/twin, b/twin"),
    ],
)
def test_a_pod_that_is_not_there_is_answered_with_those_like_it(asked, answer):
    objects = [
        make_node("n"),
        *(make_pod(f"web-{i}", namespace="shop") for i in range(2)),
        *(make_pod("twin", namespace=each) for each in "ab"),
    ]

    with pytest.raises(CannotAnswer) as caught:
        explain(*objects, pod=asked)

    assert str(caught.value).startswith(answer)


def test_an_unknown_node_is_answered_with_those_like_it():
    with pytest.raises(CannotAnswer, match="no node 'worker1'; did you mean worker-1"):
        explain(make_node("worker-1"), make_pod()).node_view("worker1")


def test_a_cluster_without_nodes_has_nothing_to_explain():
    with pytest.raises(CannotAnswer, match="the cluster has no nodes"):
        explain(make_pod())


def test_a_pod_that_is_over_is_not_looked_for():
    with pytest.raises(CannotAnswer, match="has finished"):
        explain(make_node("n"), make_pod(phase="Succeeded"))


def test_among_fifty_thousand_pending_pods_a_misspelt_one_is_still_found():
    pods = [make_pod(f"job-{i:05}") for i in range(50_000)]

    with pytest.raises(CannotAnswer, match="default/job-0001"):
        Cluster.of([make_node("n"), *pods]).explain("job-0001")


# A big cluster


def test_of_five_thousand_nodes_every_one_is_explained():
    nodes = [make_node(f"n{i:04}", zone=f"z{i % 3}", cpu=8) for i in range(5000)]
    running = [make_pod(f"r{i}", node=f"n{i:04}", cpu=2, memory="1Gi") for i in range(500)]

    for pod in (make_pod(cpu=1), make_pod(cpu=16)):
        explanation = explain(*nodes, *running, pod)

        assert explanation.matrix is not None
        assert len(explanation.matrix) == 5000
