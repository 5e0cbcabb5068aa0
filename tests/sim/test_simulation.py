"""Running a cluster in virtual time, until nothing can change any more."""

from __future__ import annotations

import asyncio

import pytest

from mooring.config import load_config
from mooring.errors import ConfigError, InputError
from mooring.framework.status import unschedulable, wait
from mooring.objects.pod import Pod
from mooring.scheduler.journal import EVERYTHING
from mooring.sim.api import RUN_SECONDS
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import registry_with
from tests.makers import make_node, make_pod
from tests.sim.books import assert_at_rest
from tests.volume_world import make_claim, make_class, make_volume


def simulation(*plugins: type, **options) -> Simulation:
    enabled = [{"name": plugin.__name__} for plugin in plugins]
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        }
    )
    registry = registry_with({plugin.__name__: plugin for plugin in plugins})
    return Simulation(SimOptions(config=config, registry=registry, **options))


def node_of(sim: Simulation, name: str = "p") -> str:
    return sim.api.get(Pod, f"default/{name}").node_name


# When a run ends


def test_a_cluster_settles_without_waiting_for_pods_to_run_to_their_end():
    runs = {RUN_SECONDS: "3600"}
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_pod("p", cpu=1, annotations=runs)])
        sim.load([make_pod("q", cpu=1)])
        sim.settle()

        assert (node_of(sim), node_of(sim, "q")) == ("n", "")
        assert sim.clock.elapsed_s == 0.0

        sim.run(until_s=3601)
        assert node_of(sim, "q") == "n"


def test_a_cluster_is_not_settled_while_a_victim_has_still_to_go():
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_pod("p", cpu=1, node="n", priority=0)])
        sim.load([make_pod("q", cpu=1, priority=10)])
        sim.settle()

        assert node_of(sim, "q") == "n"
        assert sim.api.get(Pod, "default/p") is None
        # 30 s of grace, and the pod's backoff.
        assert 30 <= sim.clock.elapsed_s < 60


def test_a_run_stops_where_it_is_told_to_before_time_passes():
    runs = {RUN_SECONDS: "10"}
    with simulation() as sim:
        sim.load([make_node("n"), make_pod("p", annotations=runs)])
        sim.run(until_s=100, stops_when=lambda: bool(sim.api.finished))
        assert sim.clock.elapsed_s == 10

        # The end that was not reached does not end a later run.
        sim.run(until_s=500)
        assert sim.clock.elapsed_s == 500


def test_a_run_ends_when_every_pod_is_placed():
    with simulation() as sim:
        sim.load([make_node("n"), make_pod("p"), make_pod("q")])
        sim.run()

        assert (node_of(sim), node_of(sim, "q")) == ("n", "n")
        assert sim.clock.elapsed_s == 0.0
        assert_at_rest(sim)


def test_a_run_ends_when_the_last_pod_has_finished():
    runs = {RUN_SECONDS: "3600"}
    with simulation() as sim:
        sim.load([make_node("n", cpu=1)])
        sim.load(make_pod(f"p{i}", cpu=1, annotations=runs) for i in range(3))
        sim.run()

        assert sim.clock.elapsed_s == 3 * 3600
        assert len(sim.api.finished) == 3
        assert_at_rest(sim)


def test_a_pod_that_fits_nowhere_does_not_keep_a_run_going():
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_pod(cpu=2)])
        sim.run()

        assert sim.clock.elapsed_s < 60
        assert sim.scheduler.queue.counts().unschedulable == 1
        assert_at_rest(sim)


def test_a_pod_that_fails_by_error_is_tried_a_few_times():
    class Breaks:
        tries = 0

        def reserve(self, state, pod, node_name):
            type(self).tries += 1
            raise ValueError("boom")

    with simulation(Breaks) as sim:
        sim.load([make_node("n"), make_pod()])
        sim.run()

        assert 5 <= Breaks.tries <= 20
        assert_at_rest(sim)


def test_pods_that_only_ever_keep_each_other_trying_do_not_run_for_ever():
    """Each one that waits in vain makes room, which wakes the others."""

    class Waits:
        def permit(self, state, pod, node_name):
            return wait(), 30.0

    with simulation(Waits) as sim:
        sim.load([make_node("n", cpu=2), *(make_pod(f"p{i}", cpu=1) for i in range(4))])
        sim.run()

        assert sim.clock.elapsed_s < 3600
        assert not any(node_of(sim, f"p{i}") for i in range(4))


def test_a_run_ends_at_the_time_it_is_given_and_goes_on_from_there():
    with simulation() as sim:
        sim.load([make_node("n"), make_pod(annotations={RUN_SECONDS: "100"})])

        sim.run(until_s=40)
        assert sim.clock.elapsed_s == 40
        assert sim.api.finished == []

        sim.run(until_s=200)
        assert sim.clock.elapsed_s == 200
        assert [pod.name for pod in sim.api.finished] == ["p"]


def test_something_put_in_between_two_runs_is_seen_by_the_second():
    with simulation() as sim:
        sim.load([make_node("n1", cpu=1), make_pod(cpu=2)])
        sim.run()
        assert node_of(sim) == ""

        sim.load([make_node("n2", cpu=2)])
        sim.run()

        assert node_of(sim) == "n2"


def test_a_pod_that_nothing_wakes_is_tried_again_after_five_minutes_of_a_given_time():
    class Moody:
        tries = 0

        def filter(self, state, pod, node):
            type(self).tries += 1
            return unschedulable("not in the mood") if type(self).tries == 1 else None

        def events_to_register(self):
            return []

    with simulation(Moody) as sim:
        sim.load([make_node("n"), make_pod()])
        sim.run(until_s=299)
        assert node_of(sim) == ""

        sim.run(until_s=400)

        assert node_of(sim) == "n"
        assert sim.summary.placements["default/p"].bound.at_s == 330, "looked for every 30 seconds"


def test_a_run_does_not_end_before_a_pod_that_fits_by_now_is_tried_again():
    """Without a given time it ended at once: the pod was pending, though nothing kept it from the node."""

    class AfterFirst:
        def filter(self, state, pod, node):
            free = pod.name == "first" or "first" in {each.name for each in node.pods.values()}
            return None if free else unschedulable("the first one is not here")

        def events_to_register(self):
            return []

    with simulation(AfterFirst) as sim:
        sim.load([make_node("n"), make_pod("p", priority=1), make_pod("first")])
        sim.run()

        assert (node_of(sim, "first"), node_of(sim, "p")) == ("n", "n")
        assert sim.summary.placements["default/p"].bound.at_s == 330


def test_a_pod_that_is_refused_after_the_choice_does_not_keep_a_run_going():
    class NoMoney:
        tries = 0

        def reserve(self, state, pod, node_name):
            type(self).tries += 1
            return unschedulable("too expensive")

        def events_to_register(self):
            return []

    with simulation(NoMoney) as sim:
        sim.load([make_node("n"), make_pod()])
        sim.run()

        assert node_of(sim) == ""
        assert NoMoney.tries == 1


# What plugins may do


def test_a_plugin_may_await_anything_in_virtual_time():
    class Slow:
        async def pre_bind(self, state, pod, node_name):
            await asyncio.sleep(3600)

    with simulation(Slow) as sim:
        sim.load([make_node("n"), make_pod()])
        sim.run()

        assert sim.summary.placements["default/p"].bound.at_s == 3600
        assert_at_rest(sim)


def test_a_waiting_pod_does_not_keep_others_from_being_placed():
    class Holds:
        def permit(self, state, pod, node_name):
            return (wait(), 50.0) if pod.name == "held" else None

    with simulation(Holds) as sim:
        sim.load([make_node("n"), make_pod("held", priority=9), make_pod("p")])
        sim.run(until_s=10)

        assert (node_of(sim), node_of(sim, "held")) == ("n", "")


# Loading


def test_pods_come_after_whatever_they_refer_to():
    objects = [
        make_pod("p", namespace="ns", claims=["c"]),
        make_claim("c"),
        make_volume("v", node="n"),
        make_class(),
        make_node("n"),
    ]
    with simulation() as sim:
        sim.load(objects)
        sim.run()

        assert sim.api.get(Pod, "ns/p").node_name == "n"
        assert_at_rest(sim)


def test_finished_pods_are_left_out():
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_pod("done", node="n", cpu=1, phase="Succeeded")])
        sim.load([make_pod("p", cpu=1)])
        sim.run()

        assert node_of(sim) == "n"


def test_run_times_that_are_none_are_all_told_and_nothing_is_loaded():
    pods = [make_pod(name, annotations={RUN_SECONDS: "soon"}) for name in "pq"]
    with simulation() as sim:
        with pytest.raises(InputError) as caught:
            sim.load([make_node("n"), *pods])

        assert [problem.split(":")[0] for problem in caught.value.problems] == [
            "pod default/p",
            "pod default/q",
        ]
        assert list(sim.api.all(Pod)) == []


# Closing


def test_a_simulation_can_be_closed_while_pods_wait_and_work_is_under_way():
    class Slow:
        async def pre_bind(self, state, pod, node_name):
            await asyncio.sleep(3600)

        def permit(self, state, pod, node_name):
            return wait() if pod.name == "held" else None

    with simulation(Slow) as sim:
        sim.load([make_node("n"), make_pod("held"), make_pod("p"), make_pod("q", cpu=100)])
        sim.run(until_s=10)

    assert sim.errors == []
    assert sim.loop.is_closed()


def test_a_configuration_that_cannot_be_built_leaves_nothing_open():
    class Fails:
        def __init__(self, args, handle):
            raise ValueError("boom")

        def filter(self, state, pod, node): ...

    with pytest.raises(ConfigError, match="boom"):
        simulation(Fails)


# The same every time


def facts(seed: int | None) -> list:
    with simulation(seed=seed, keeps=EVERYTHING) as sim:
        sim.load(make_node(f"n{i}", cpu=2) for i in range(4))
        sim.load(make_pod(f"p{i}", cpu="500m", priority=i % 3) for i in range(20))
        sim.run()
        return sim.journal.facts


def test_a_seed_gives_the_same_run_every_time_and_another_seed_another_one():
    assert facts(1) == facts(1)
    assert facts(None) == facts(None)
    assert facts(1) != facts(2)


def test_two_simulations_do_not_know_of_each_other():
    with simulation() as one, simulation() as other:
        one.load([make_node("n"), make_pod()])
        other.load([make_pod()])
        one.run()
        other.run()

        assert (node_of(one), node_of(other)) == ("n", "")


def test_a_plugin_may_begin_work_while_it_is_built():
    """The first thing that a plugin did in its constructor, reading measurements, was an AttributeError."""
    read = []

    class Reads:
        name = "Reads"

        def __init__(self, args, handle):
            handle.spawn(self._read())

        async def _read(self):
            read.append("measurements")

        def filter(self, state, pod, node):
            return None if read else unschedulable("nothing was read")

    with simulation(Reads) as sim:
        sim.load([make_node("n"), make_pod("p")])
        sim.run()

        assert node_of(sim) == "n"
