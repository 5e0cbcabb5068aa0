"""What becomes of a pod whose attempt failed, and of the scheduler when a plugin is broken."""

from __future__ import annotations

import asyncio

import pytest

from mooring.config import load_config
from mooring.errors import ConfigError, MooringError
from mooring.framework.api import PodStatusPatch
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import CLEAR_NOMINATION, Depends, Nomination
from mooring.framework.status import SKIP, Code, Status, failure, unresolvable
from mooring.objects.pod import Pod, PodCondition
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.failure import cut_note
from mooring.scheduler.pod_conditions import status_patch
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import registry_with
from tests.makers import make_node, make_pod
from tests.scheduler.world import World
from tests.sim.books import assert_at_rest

# A plugin that raises

#: Of a pod named so, every method raises.
BAD = "bad"


def raising(method: str) -> type:
    """A plugin that raises in one method, for one pod."""

    def call(self, *args):
        pod = args[0] if method in ("pre_enqueue", "sign", "depends_on") else args[1]
        if isinstance(pod, Pod) and pod.name == BAD:
            raise ValueError("boom")
        return {"sign": {}, "depends_on": Depends.NODE, "score": 0, "bind": SKIP}.get(method)

    methods = {method: call}
    match method:
        case "normalize_scores":
            methods["score"] = lambda *_: 0
        case "pre_bind_pre_flight":
            methods["pre_bind"] = lambda *_: None
        case "add_pod":
            methods["pre_filter"] = lambda *_: None
        case "sign":
            methods["depends_on"] = lambda *_: Depends.NODE
            methods["filter"] = lambda *_: None
        case "depends_on":
            # Without it, answers are not kept whatever they depend on, and nobody asks.
            methods["sign"] = lambda *_: {}
            methods["filter"] = lambda *_: None
        case "post_filter":
            methods["post_filter"] = lambda self, *args: (
                None,
                unresolvable(call(self, *args) or ""),
            )
    return type("Raises", (), methods)


def simulation_of(plugin: type) -> Simulation:
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins_with(plugin)}],
        }
    )
    return Simulation(SimOptions(config=config, registry=registry_with({"Raises": plugin})))


def plugins_with(plugin: type) -> dict:
    """Everywhere; among the Bind plugins before the one that binds all pods."""
    plugins = {"multiPoint": {"enabled": [{"name": "Raises"}]}}
    if hasattr(plugin, "bind"):
        names = [{"name": "Raises"}, {"name": "DefaultBinder"}]
        plugins["bind"] = {"enabled": names, "disabled": [{"name": "*"}]}
    return plugins


FAILS = [
    ("pre_filter", 'running PreFilter plugin "Raises": ValueError: boom'),
    ("add_pod", 'running AddPod on PreFilter plugin "Raises": ValueError: boom'),
    ("filter", 'running "Raises" filter plugin: ValueError: boom'),
    ("pre_score", 'running PreScore plugin "Raises": ValueError: boom'),
    ("score", 'running Score plugins: plugin "Raises" failed with: ValueError: boom'),
    (
        "normalize_scores",
        'running Normalize on Score plugins: plugin "Raises" failed with: ValueError: boom',
    ),
    ("reserve", 'running Reserve plugin "Raises": ValueError: boom'),
    ("permit", 'running Permit plugin "Raises": ValueError: boom'),
    ("pre_bind_pre_flight", 'running PreBindPreFlight "Raises": ValueError: boom'),
    ("pre_bind", 'running PreBind plugin "Raises": ValueError: boom'),
    ("bind", 'running Bind plugin "Raises": ValueError: boom'),
]

NODES = [make_node("n1"), make_node("n2")]
#: A node is held for it, so AddPod is called for every other pod; it fits nowhere and takes no room.
NOMINATED = make_pod(
    "nominated",
    nominated="n1",
    priority=5,
    preemption_policy="Never",
    node_selector={"disk": "none has this"},
)


@pytest.mark.parametrize(("method", "message"), FAILS, ids=[method for method, _ in FAILS])
def test_a_plugin_that_raises_fails_its_pod_and_no_other(method, message):
    with simulation_of(raising(method)) as sim:
        sim.load([*NODES, NOMINATED, make_pod(BAD, cpu=1), make_pod("good", cpu=1)])
        sim.run(until_s=60)

        bad = sim.api.get(Pod, "default/bad")
        assert bad.node_name == ""
        assert bad.condition("PodScheduled").reason == "SchedulerError"
        assert sim.summary.records[bad.uid].last_failure == message
        assert sim.api.get(Pod, "default/good").node_name
        (queued,) = [q for q in in_queue(sim) if q.pod.name == BAD]
        assert queued.consecutive_errors_count > 1, "it is tried again and again, after a backoff"
        assert_at_rest(sim)


def in_queue(sim: Simulation) -> list:
    queue = sim.scheduler.queue
    return [*queue.active_pods(), *queue.backoff_pods(), *queue.unschedulable_pods()]


@pytest.mark.parametrize("method", ["unreserve", "post_bind", "sign", "depends_on"])
def test_a_plugin_that_raises_where_nothing_hangs_on_it_is_only_logged(method, caplog):
    with simulation_of(raising(method)) as sim:
        sim.load([*NODES, make_pod("good", cpu=1), make_pod(BAD, cpu=2)])
        sim.run(until_s=60)

        assert sim.api.get(Pod, "default/bad").node_name
        assert sim.api.get(Pod, "default/good").node_name
        assert_at_rest(sim)
    assert method == "unreserve" or "boom" in caplog.text


def test_a_pod_whose_unreserve_raises_is_undone_all_the_same(caplog):
    class Raises:
        def reserve(self, state, pod, node_name):
            raise ValueError("first")

        def unreserve(self, state, pod, node_name):
            raise ValueError("second")

    with simulation_of(Raises) as sim:
        sim.load([make_node("n"), make_pod()])
        sim.run(until_s=10)

        assert sim.summary.records["default/p"].last_failure.endswith("first")
        assert 'running Unreserve plugin "Raises": ValueError: second' in caplog.text
        assert_at_rest(sim)


def test_a_pod_whose_post_filter_raises_is_unschedulable_and_the_message_says_so():
    with simulation_of(raising("post_filter")) as sim:
        sim.load([make_node("n"), make_pod(BAD, cpu=100), make_pod("good")])
        sim.run(until_s=60)

        message = sim.summary.records["default/bad"].last_failure
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert message.endswith('running PostFilter plugin "Raises": ValueError: boom')
        assert sim.api.get(Pod, "default/good").node_name
        assert_at_rest(sim)


def test_a_pod_whose_pre_enqueue_raises_is_held_back():
    with simulation_of(raising("pre_enqueue")) as sim:
        sim.load([make_node("n"), make_pod(BAD), make_pod("good")])
        sim.run(until_s=60)

        assert sim.scheduler.queue.counts().gated == 1
        assert sim.api.get(Pod, "default/good").node_name
        assert_at_rest(sim)


def test_a_plugin_that_cannot_name_its_events_stops_the_scheduler_from_starting():
    class Raises:
        def filter(self, state, pod, node): ...

        def events_to_register(self):
            raise ValueError("boom")

    with pytest.raises(ConfigError) as caught:
        World(Raises)

    assert caught.value.problems == (
        "creating profile for scheduler name default-scheduler:"
        ' registering the events of plugin "Raises": ValueError: boom',
    )


def test_events_that_are_none_stop_the_scheduler_from_starting():
    class Numbers:
        def filter(self, state, pod, node): ...

        def events_to_register(self):
            return [1, 2]

    with pytest.raises(ConfigError, match="events_to_register must return EventWithHint objects"):
        World(Numbers)


def test_closing_tells_of_every_plugin_that_cannot_be_closed(caplog):
    class Raises:
        def filter(self, state, pod, node): ...

        def close(self):
            raise ValueError("boom")

    World(Raises).scheduler.close()

    assert (
        "framework default-scheduler failed to close: Raises failed to close: ValueError: boom"
        in (caplog.text)
    )


# Where the pod goes


def failed(world: World, pod: Pod, status: Status, *, observed: Pod | None = None) -> QueuedPodInfo:
    """The pod is popped and its attempt fails, while the watch shows it as `observed`."""
    world.handlers.added(pod)
    queued = world.scheduler.queue.pop()
    if observed is not None:
        world.scheduler.observed_pods[pod.key] = observed
    framework = world.scheduler.frameworks["default-scheduler"]
    attempt = Attempt(framework, queued, queued.pod, CycleState(), started=0.0)
    world.scheduler.failures.fail(attempt, status)
    for work in world.spawned:
        asyncio.run(work)
    return queued


ERROR = failure(MooringError("boom"))


def test_a_pod_comes_back_as_the_watch_last_showed_it():
    world, changed = World(), make_pod(labels={"new": "label"})

    queued = failed(world, make_pod(), ERROR, observed=changed)

    assert queued.pod is changed
    assert world.where(changed) == "backoff"


def test_a_pod_that_has_a_node_by_now_does_not_come_back_but_is_told():
    world = World()

    failed(world, make_pod(), ERROR, observed=make_pod(node="n"))

    assert world.where(make_pod()) == "nowhere"
    assert world.scheduler.queue.in_flight_pods() == []
    assert [event.reason for event in world.writer.events] == ["FailedScheduling"]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (failure(MooringError("why")), "SchedulerError"),
        (Status(Code.UNSCHEDULABLE, ("why",)), "Unschedulable"),
        (Status(Code.UNRESOLVABLE, ("why",)), "Unschedulable"),
        (Status(Code.PENDING, ("why",)), "Unschedulable"),
    ],
    ids=lambda each: each.code.title if isinstance(each, Status) else "",
)
def test_users_are_told_whether_it_was_a_rule_or_an_error(status, reason):
    world = World()

    failed(world, make_pod(), status)

    (event,) = world.writer.events
    assert (event.type, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert (event.note, event.reporting_controller) == ("why", "default-scheduler")
    assert world.condition == (reason, "why")


# What is written on the pod

CONDITION = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="m")


@pytest.mark.parametrize(
    ("pod", "nominating", "patch"),
    [
        pytest.param(
            make_pod(), None, PodStatusPatch(CONDITION), id="a condition that it does not have"
        ),
        pytest.param(make_pod(conditions=[CONDITION]), None, None, id="nothing new"),
        pytest.param(
            make_pod(
                conditions=[
                    PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
                ]
            ),
            None,
            PodStatusPatch(CONDITION),
            id="another message",
        ),
        pytest.param(
            make_pod(conditions=[CONDITION], nominated="a"),
            Nomination("b"),
            PodStatusPatch(None, "b"),
            id="another node is held",
        ),
        pytest.param(
            make_pod(nominated="a"),
            CLEAR_NOMINATION,
            PodStatusPatch(CONDITION, ""),
            id="no node is held any more",
        ),
        pytest.param(
            make_pod(conditions=[CONDITION], nominated="a"), Nomination("a"), None, id="as it was"
        ),
        pytest.param(
            make_pod(conditions=[CONDITION], nominated="a"), None, None, id="left as it is"
        ),
    ],
)
def test_only_what_changes_is_written(pod, nominating, patch):
    assert status_patch(pod, CONDITION, nominating) == patch


def test_the_note_of_the_event_is_cut_and_the_condition_is_not():
    class Raises:
        def filter(self, state, pod, node):
            raise ValueError("x" * 2000)

    world = World(Raises).with_node()

    world.attempt(make_pod())

    assert len(world.writer.events[-1].note) == 1024
    assert world.condition[1].endswith("x" * 2000)


def test_a_note_is_cut_between_characters():
    """At most 1024 bytes: 510 of two bytes each, as a 511th would leave no room for the dots."""
    assert cut_note("é" * 600) == "é" * 510 + " ..."
    assert cut_note("x" + "é" * 600) == "x" + "é" * 509 + " ..."
