"""Finding a node for a pod, and what an attempt that finds none leaves behind.

The ends of an attempt that every plugin can bring about stand in `test_cycle_rules`.
"""

from __future__ import annotations

import pytest

from mooring.config import load_config
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Nomination, PostFilterResult, PreFilterResult
from mooring.framework.status import Status, pending, unschedulable, wait
from mooring.scheduler.choosing import first_by_name
from mooring.scheduler.decision import Decision
from mooring.scheduler.node_search import NodeSearch, SearchStart
from tests.makers import make_node, make_node_affinity, make_node_term, make_pod
from tests.runtime.frameworks import framework_of, make_plugin, snapshot_of
from tests.scheduler.world import World, config_with

# Which nodes are looked at, and in which order


class Search:
    """A search over so many nodes by a few plugins."""

    def __init__(self, *plugins, nodes: int, percentage: int, start: SearchStart | None = None):
        self.framework = framework_of(*plugins)
        self.snapshot = snapshot_of(*(f"n{i:03d}" for i in range(nodes)))
        self.search = NodeSearch(
            tie_break=first_by_name,
            percentage_of_nodes=percentage,
            start=start or SearchStart(),
        )

    def find(self, pod=None) -> Decision:
        pod = pod or make_pod()
        return self.search.find_nodes_that_fit(self.framework, CycleState(), pod, self.snapshot)

    def found(self) -> list[str]:
        names = self.snapshot.columns.names
        return [names[row] for row in self.find().feasible.tolist()]


SCORES = make_plugin("Scores", score=1)


def fits(*positions: int):
    """Only the nodes at these positions."""
    names = {f"n{i:03d}" for i in positions}
    return make_plugin(
        "Fits",
        filter=lambda state, pod, node: None if node.name in names else unschedulable("full"),
    )


def test_the_search_goes_on_until_it_meets_one_feasible_node_more_than_it_wants():
    """So the nodes between the last one wanted and the next one are passed, and the start moves on."""
    every_other = fits(*range(0, 400, 2))
    search = Search(every_other, SCORES, nodes=400, percentage=10)

    decision = search.find()

    assert len(decision.feasible) == 100
    assert decision.evaluated == 200, "100 feasible, 100 full; the 101st feasible one ends it"
    assert search.search.start.position == 200


def test_a_search_that_finds_too_few_has_looked_at_every_node():
    search = Search(fits(5, 350), SCORES, nodes=400, percentage=10)

    assert search.found() == ["n005", "n350"]
    assert search.search.start.position == 0


def test_a_search_goes_round():
    search = Search(SCORES, nodes=120, percentage=1)

    first, second = search.found(), search.found()

    assert (first[0], first[-1]) == ("n000", "n099")
    assert (second[0], second[-1]) == ("n100", "n079")


@pytest.mark.parametrize("nodes", [3, 200])
def test_where_nobody_scores_the_first_feasible_node_will_do(nodes):
    search = Search(nodes=nodes, percentage=50)

    assert [search.found() for _ in range(3)] == [["n000"], ["n001"], ["n002"]]


def test_without_a_percentage_every_node_is_looked_at_though_nobody_scores():
    assert len(Search(nodes=200, percentage=0).found()) == 200


def test_a_search_of_few_nodes_moves_the_start_as_far_as_it_looked():
    narrow = make_plugin("Narrow", pre_filter=PreFilterResult(frozenset({"n001", "n002", "n003"})))
    search = Search(narrow, SCORES, nodes=200, percentage=50)

    search.find()

    assert search.search.start.position == 3


def test_all_profiles_go_on_where_the_last_search_of_any_ended():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 50,
            "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
        }
    )
    searches = World(config=config).scheduler.searches

    assert searches["a"].start is searches["b"].start


# The node that is held for the pod


def test_a_held_node_that_fits_is_the_only_one_looked_at():
    search = Search(SCORES, nodes=5, percentage=0)

    decision = search.find(make_pod(nominated="n003"))

    assert decision.feasible.tolist() == [3]
    assert decision.evaluated == 1


@pytest.mark.parametrize("held", ["n000", "gone"], ids=["it is full", "it is gone"])
def test_a_held_node_that_does_not_fit_is_passed_over(held):
    search = Search(fits(1), SCORES, nodes=3, percentage=0)

    assert search.find(make_pod(nominated=held)).feasible.tolist() == [1]


def test_a_plugin_that_fails_on_the_held_node_fails_the_attempt_only_if_the_search_meets_it():
    def fails_on_first(state, pod, node):
        if node.name == "n000":
            raise ValueError("boom")

    narrow = make_plugin("Narrow", pre_filter=PreFilterResult(frozenset({"n002"})))
    search = Search(narrow, make_plugin(filter=fails_on_first), nodes=3, percentage=0)

    assert search.find(make_pod(nominated="n000")).feasible.tolist() == [2]


def test_why_the_held_node_was_refused_is_told_though_the_search_leaves_it_out():
    search = Search(
        make_plugin("Narrow", pre_filter=PreFilterResult(frozenset({"n002"}))),
        make_plugin("Full", filter=unschedulable("full")),
        nodes=3,
        percentage=0,
    )

    diagnosis = search.find(make_pod(nominated="n000")).diagnosis

    assert diagnosis.fit_error == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [Narrow], 2 full."
    )
    assert diagnosis.get("n000") == unschedulable("full").by("Full")
    assert diagnosis.unschedulable_plugins == {"Narrow", "Full"}


# PreFilter narrows the search


def test_nodes_that_pre_filter_leaves_out_are_told_of_and_their_plugin_blamed():
    world = World().with_node("a", cpu=1).with_node("b").with_node("c")
    term = make_node_term(fields=[("metadata.name", "In", ["a"])])

    world.attempt(make_pod(cpu=2, affinity=make_node_affinity(term)))

    assert world.condition[1].startswith(
        "0/3 nodes are available: 1 Insufficient cpu,"
        " 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    (queued,) = world.scheduler.queue.unschedulable_pods()
    assert queued.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}


def test_a_plugin_that_narrowed_is_blamed_although_it_was_another_that_refused():
    narrow = make_plugin("Narrow", pre_filter=PreFilterResult(frozenset({"n000"})))
    search = Search(narrow, fits(), nodes=2, percentage=0)

    assert search.find().diagnosis.unschedulable_plugins == {"Narrow", "Fits"}


def test_only_nodes_that_exist_are_looked_at():
    narrow = make_plugin("Narrow", pre_filter=PreFilterResult(frozenset({"n000", "gone"})))

    assert Search(narrow, nodes=2, percentage=0).find().feasible.tolist() == [0]


# Choosing


def test_a_single_feasible_node_is_taken_without_scoring():
    class Scores:
        def score(self, state, pod, node):
            raise AssertionError("there is nothing to compare")

    world = World(Scores).with_node("a").with_node("b", cpu=1)

    world.attempt(make_pod(cpu=2))

    assert world.writer.bound == [("default/p", "a")]


# Ends of an attempt


def test_books_that_do_not_add_up_fail_the_attempt_and_not_the_scheduler():
    world = World().with_node()
    world.scheduler.cluster.snapshot()
    world.scheduler.cluster.columns.count += 1

    world.attempt(make_pod())

    reason, message = world.condition
    assert reason == "SchedulerError"
    assert message.startswith("snapshot state is not consistent")
    assert world.where(make_pod()) == "backoff"


def test_a_pod_that_is_in_the_books_already_cannot_be_assumed():
    """Its deletion was missed, and another one of its UID came."""
    world = World().with_node()
    world.handlers.added(make_pod("other", uid="same", node="n"))

    world.attempt(make_pod("p", uid="same"))

    assert world.condition == (
        "SchedulerError",
        "pod same(default/p) is in the cache, so can't be assumed",
    )
    assert world.where(make_pod("p", uid="same")) == "backoff"
    assert world.writer.bound == []


def test_a_pod_that_is_assumed_already_is_passed_over():
    world = World().with_node()
    pod = make_pod()
    world.scheduler.cluster.assume_pod(pod.placed_on("n"))

    world.attempt(pod)

    assert world.writer.events == []
    assert world.where(pod) == "nowhere"
    assert world.scheduler.queue.in_flight_pods() == []


class Pends:
    """Reserve has to wait for something that is on its way."""

    def reserve(self, state, pod, node_name):
        return pending("not there yet")

    def events_to_register(self):
        return []


class PendsInPermit:
    def permit(self, state, pod, node_name):
        return pending("not there yet")

    def events_to_register(self):
        return []


@pytest.mark.parametrize("plugin", [Pends, PendsInPermit])
def test_a_plugin_that_says_pending_of_the_chosen_node_is_one_to_wait_for(plugin):
    """When it hints that what it waits for is there, the pod goes without backoff."""
    world = World(plugin).with_node()

    world.attempt(make_pod())

    assert world.condition == ("Unschedulable", "0/1 nodes are available: 1 not there yet.")
    (queued,) = world.scheduler.queue.unschedulable_pods()
    assert queued.pending_plugins == {plugin.__name__}
    assert queued.unschedulable_plugins == {plugin.__name__}


class Helps:
    """A PostFilter that says what it is told to."""

    answer = (None, Status())

    def post_filter(self, state, pod, statuses):
        return type(self).answer


def only_post_filter(*plugins: str):
    enabled = [{"name": name} for name in plugins]
    point = {"enabled": enabled, "disabled": [{"name": "*"}]}
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"postFilter": point}}],
        }
    )


FULL = "0/2 nodes are available: 2 Insufficient cpu."


@pytest.mark.parametrize(
    ("answer", "message", "nominated"),
    [
        pytest.param((None, unschedulable("no help")), f"{FULL} no help", "old", id="no help"),
        pytest.param(
            (PostFilterResult(Nomination("n")), Status()), FULL, "n", id="it nominates a node"
        ),
        pytest.param(
            (PostFilterResult(Nomination("")), unschedulable("never")),
            f"{FULL} never",
            "",
            id="it takes the nomination back",
        ),
        pytest.param(
            None,
            f'{FULL} running PostFilter plugin "Helps":'
            " post_filter must return a PostFilterResult or None, and a Status or None",
            "old",
            id="it fails",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_is_unschedulable_whatever_post_filter_says(
    answer, message, nominated
):
    plugin = type("Helps", (Helps,), {"answer": answer})
    world = World(plugin, config=only_post_filter("Helps")).with_node("n", cpu=1)
    world.with_node("old", cpu=1)
    pod = make_pod(cpu=2, nominated="old")

    world.attempt(pod)

    assert world.condition == ("Unschedulable", message)
    assert world.where(pod) == "unschedulable"
    assert (world.scheduler.nominator.nominated_node(pod.uid) or "") == nominated
    (patch,) = [patch for _, patch in world.writer.patches]
    assert patch.nominated_node_name == (None if nominated == "old" else nominated)


def test_without_a_post_filter_the_nomination_is_taken_back():
    world = World(config=only_post_filter()).with_node("n", cpu=1)
    pod = make_pod(cpu=2, nominated="n")

    world.attempt(pod)

    assert not world.scheduler.nominator.has_any
    assert world.writer.patches[-1][1].nominated_node_name == ""


class WakesOthers:
    """A pod that fits takes a waiting one along."""

    def reserve(self, state, pod, node_name):
        other = make_pod("other", cpu=100)
        state.pods_to_activate[other.key] = other


def test_pods_to_activate_are_tried_as_soon_as_the_cycle_has_succeeded():
    world = World(WakesOthers).with_node()
    other = make_pod("other", cpu=100)
    world.attempt(other)
    assert world.where(other) == "unschedulable"

    world.attempt(make_pod("p"))

    assert world.where(other) == "active"


def test_no_pod_is_woken_by_a_cycle_that_fails():
    class Refuses:
        def permit(self, state, pod, node_name):
            return unschedulable("no") if pod.name == "p" else None

    world = World(WakesOthers, Refuses).with_node()
    other = make_pod("other", cpu=100)
    world.attempt(other)

    world.attempt(make_pod("p"))

    assert world.where(other) == "unschedulable"


def test_a_pod_without_a_profile_is_done_with(caplog):
    """The queue has it although nobody handles it: its profile went with a configuration."""
    world = World().with_node()
    world.scheduler.queue.add(make_pod(scheduler="gone"))

    assert world.schedule_one()

    assert "no profile is called gone" in caplog.text
    assert world.scheduler.queue.in_flight_pods() == []
    assert world.writer.events == []


def test_an_assumed_pod_loses_its_nomination():
    world = World().with_node("n")
    pod = make_pod(nominated="n")

    world.attempt(pod)

    assert not world.scheduler.nominator.has_any


def test_a_pod_that_waits_on_permit_is_assumed_and_others_go_on():
    class Holds:
        def permit(self, state, pod, node_name):
            return wait() if pod.name == "held" else None

    world = World(Holds, config=config_with("Holds"))
    world.handlers.added(make_node("n", cpu=3))
    world.handlers.added(make_pod("held", cpu=2))
    world.scheduler.schedule_one()
    world.handlers.added(make_pod("large", cpu=2))
    world.scheduler.schedule_one()

    assert [pod.name for pod in world.scheduler.cluster.assumed_pods()] == ["held"]
    assert world.scheduler.waiting_pods.get("default/held") is not None
    assert world.where(make_pod("large")) == "unschedulable"
    for work in world.spawned:
        work.close()


def test_without_any_node_no_pod_fits():
    """The random worlds asked this after the last node was deleted, and got a ZeroDivisionError."""
    world = World()

    assert not world.scheduler.fits(make_pod())
