"""From the choice of a node to the binding, and back if something fails on the way."""

from __future__ import annotations

import asyncio

import pytest

from mooring.config import load_config
from mooring.errors import ApiError
from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint, Hint
from mooring.framework.interface import PreFlight
from mooring.framework.status import SKIP, failure, unschedulable, wait
from tests.makers import make_pod
from tests.scheduler.world import World


def noting(name: str, notes: list[str], **answers):
    """A plugin that takes down which of its methods are called, and answers as told."""

    def method(point):
        def call(self, *args):
            notes.append(point)
            answer = answers[point]
            return answer(*args) if callable(answer) else answer

        return call

    return type(name, (), {"name": name, **{point: method(point) for point in answers}})


class Cycle(World):
    """Attempts whose binding cycles may wait: they are run as far as they go."""

    def __init__(self, *plugins: type, **options) -> None:
        super().__init__(*plugins, **options)
        self.with_node("n")
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, pod) -> None:
        self.handlers.added(pod)
        assert self.scheduler.schedule_one()

    async def bind(self, pod) -> None:
        self.start(pod)
        await self.go_on()

    async def go_on(self) -> None:
        """Run all that was set going, until it is done or waits."""
        for _ in range(20):
            self._tasks += [asyncio.ensure_future(work) for work in self.spawned]
            self.spawned.clear()
            await asyncio.sleep(0)


def nominations(world: World) -> list[str | None]:
    return [patch.nominated_node_name for _, patch in world.writer.patches]


# On the way


async def test_a_pod_passes_the_points_in_order():
    notes: list[str] = []
    plugin = noting(
        "Notes",
        notes,
        reserve=None,
        permit=None,
        pre_bind_pre_flight=PreFlight(),
        pre_bind=None,
        post_bind=None,
    )
    world = Cycle(plugin)

    await world.bind(make_pod())

    assert notes == ["reserve", "permit", "pre_bind_pre_flight", "pre_bind", "post_bind"]
    assert world.writer.bound == [("default/p", "n")]


async def test_the_pod_names_its_node_while_a_pre_bind_has_something_to_do():
    world = Cycle(noting("Works", [], pre_bind_pre_flight=PreFlight(), pre_bind=None))

    await world.bind(make_pod())

    assert nominations(world) == ["n"]


async def test_nothing_is_written_of_a_pod_that_is_bound_at_once():
    world = Cycle(noting("Idle", [], pre_bind_pre_flight=SKIP, pre_bind=None))

    await world.bind(make_pod())

    assert world.writer.patches == []


async def test_the_pod_names_its_node_while_it_waits_on_permit():
    world = Cycle(noting("Holds", [], permit=wait()))

    await world.bind(make_pod())

    assert nominations(world) == ["n"]
    assert world.writer.bound == []
    world.scheduler.waiting_pods.get("default/p").allow("Holds")
    await world.go_on()
    assert world.writer.bound == [("default/p", "n")]


async def test_a_node_name_that_cannot_be_written_stops_nobody():
    world = Cycle(noting("Works", [], pre_bind_pre_flight=PreFlight(), pre_bind=None))

    async def fail(pod, patch):
        raise ApiError("no answer")

    world.writer.patch_pod_status = fail

    await world.bind(make_pod())

    assert world.writer.bound == [("default/p", "n")]


async def test_the_queue_is_done_with_a_pod_once_it_may_go_and_not_before():
    seen = []

    def pre_bind(state, pod, node_name):
        seen.append(world.scheduler.queue.in_flight_pods())

    world = Cycle(noting("Holds", [], permit=wait()), noting("Looks", [], pre_bind=pre_bind))

    await world.bind(make_pod())
    assert [pod.name for pod in world.scheduler.queue.in_flight_pods()] == ["p"]

    world.scheduler.waiting_pods.get("default/p").allow("Holds")
    await world.go_on()
    assert seen == [[]]


async def test_a_pod_can_be_stopped_while_its_pre_bind_has_something_to_do():
    async def pre_bind(state, pod, node_name):
        await asyncio.Event().wait()

    world = Cycle(noting("Works", [], pre_bind_pre_flight=PreFlight(), pre_bind=pre_bind))
    pod = make_pod()
    await world.bind(pod)

    assert world.scheduler.parts.pods_in_pre_bind.get(pod.uid).cancel("preempted")
    await world.go_on()

    assert world.condition == ("SchedulerError", 'running PreBind plugin "Works": preempted')
    assert world.where(pod) == "backoff"
    assert len(world.scheduler.parts.pods_in_pre_bind) == 0


async def test_pods_to_activate_are_woken_by_a_binding():
    other = make_pod("other", cpu=100)

    def post_bind(state, pod, node_name):
        state.pods_to_activate[other.key] = other

    world = Cycle(noting("Wakes", [], post_bind=post_bind))
    await world.bind(other)
    assert world.where(other) == "unschedulable"

    await world.bind(make_pod())

    assert world.where(other) == "active"


# And back

CLOSED = unschedulable("the pier is closed")


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(
            {"pre_bind_pre_flight": failure(ValueError("broken")), "pre_bind": None},
            id="PreFlight fails",
        ),
        pytest.param({"permit": wait()}, id="the wait ends in vain"),
        pytest.param({"pre_bind": CLOSED}, id="PreBind rejects"),
        pytest.param({"pre_bind": failure(ValueError("broken"))}, id="PreBind fails"),
    ],
)
async def test_whatever_fails_the_reservation_and_the_assumption_are_undone(answers):
    notes: list[str] = []
    world = Cycle(
        noting("Reserves", notes, reserve=None, unreserve=None), noting("Fails", notes, **answers)
    )

    await world.bind(make_pod(cpu=1))
    world.clock.advance(3600)
    await world.go_on()

    assert notes[0] == "reserve"
    assert notes[-1] == "unreserve"
    assert world.scheduler.cluster.pods == {}
    assert world.writer.bound == []
    assert [event.reason for event in world.writer.events] == ["FailedScheduling"]


async def test_a_pre_bind_that_rejects_is_retried_through_the_error_backoff():
    """It carries no fit error, so there is nobody whose event could help; the condition says
    Unschedulable all the same.
    """
    world = Cycle(noting("Closed", [], pre_bind=CLOSED))
    pod = make_pod()

    await world.bind(pod)

    assert world.condition == ("Unschedulable", "the pier is closed")
    assert world.where(pod) == "backoff"
    (queued,) = world.scheduler.queue.backoff_pods()
    assert (queued.consecutive_errors_count, queued.unschedulable_count) == (1, 0)


async def test_a_wait_that_ends_in_vain_is_blamed_on_the_plugin_that_ended_it():
    world = Cycle(noting("Holds", [], permit=(wait(), 5.0)))
    pod = make_pod()
    await world.bind(pod)

    world.clock.advance(5)
    await world.go_on()

    assert world.condition == (
        "Unschedulable",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 5s at plugin Holds.",
    )
    (queued,) = world.scheduler.queue.unschedulable_pods()
    assert queued.unschedulable_plugins == {"Holds"}
    assert queued.unschedulable_count == 1


async def test_a_wait_ended_from_outside_is_blamed_on_nobody_by_name():
    """No hint matches it: only events that concern every pod bring the pod back."""
    world = Cycle(noting("Holds", [], permit=wait()))
    await world.bind(make_pod())

    world.scheduler.waiting_pods.reject("default/p")
    await world.go_on()

    (queued,) = world.scheduler.queue.unschedulable_pods()
    assert queued.unschedulable_plugins == {""}


async def test_a_pod_that_every_bind_plugin_skips_is_retried_and_told_nothing(caplog):
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {"plugins": {"bind": {"enabled": [{"name": "Skips"}], "disabled": [{"name": "*"}]}}}
            ],
        }
    )
    world = Cycle(noting("Skips", [], bind=SKIP), config=config)
    pod = make_pod()

    await world.bind(pod)

    assert world.where(pod) == "backoff"
    assert world.scheduler.cluster.pods == {}
    assert (world.writer.events, world.writer.patches) == ([], [])
    assert "every Bind plugin skipped pod default/p" in caplog.text


# Who else is woken by the place that is free again


class WantsRoom:
    """Rejects the pods named here, until a pod leaves its node."""

    name = "WantsRoom"
    rejected = ("large", "p")

    def permit(self, state, pod, node_name):
        return unschedulable("no room") if pod.name in type(self).rejected else None

    def events_to_register(self):
        left = ClusterEvent(EventResource.POD, Action.DELETE)
        return [EventWithHint(left, lambda pod, old, new: Hint.QUEUE)]


@pytest.mark.parametrize(
    "answer", [failure(ValueError("broken")), CLOSED], ids=["an error", "a rejection"]
)
async def test_a_place_that_is_free_again_wakes_the_others_that_wait_for_one(answer):
    world = Cycle(
        type("WantsRoom", (WantsRoom,), {"rejected": ("large",)}),
        noting("Fails", [], pre_bind=answer),
    )
    large, pod = make_pod("large"), make_pod("p")
    await world.bind(large)
    assert world.where(large) == "unschedulable"

    await world.bind(pod)

    assert world.where(large) == "backoff", "woken, and backing off"
    assert world.where(pod) == "backoff"


async def test_a_pod_rejected_while_it_waited_is_not_woken_by_its_own_leaving():
    """The plugin that ended the wait waits for pods to leave: this one would wake itself for ever."""

    class Holds(WantsRoom):
        name = "Holds"

        def permit(self, state, pod, node_name):
            return wait(), 5.0

    world = Cycle(Holds)
    pod = make_pod()
    await world.bind(pod)

    world.clock.advance(5)
    await world.go_on()

    assert world.where(pod) == "unschedulable"


async def test_a_pod_preempted_while_it_waited_comes_back_through_the_error_backoff():
    world = Cycle(noting("Holds", [], permit=wait()))
    pod = make_pod()
    await world.bind(pod)

    world.scheduler.waiting_pods.get(pod.uid).preempt("Evictor", "preempted")
    await world.go_on()

    assert world.where(pod) == "backoff"
    assert world.condition == ("SchedulerError", "waiting on permit for pod: preempted")


async def test_a_place_that_cannot_be_freed_wakes_nobody(caplog):
    """The watch has shown the pod as bound meanwhile: somebody else bound it."""

    def pre_bind(state, pod, node_name):
        world.handlers.updated(make_pod("p"), make_pod("p", node="n"))
        return failure(ValueError("broken"))

    world = Cycle(
        type("WantsRoom", (WantsRoom,), {"rejected": ("large",)}),
        noting("Fails", [], pre_bind=pre_bind),
    )
    large = make_pod("large")
    await world.bind(large)

    await world.bind(make_pod("p"))

    assert "wasn't assumed so cannot be forgotten" in caplog.text
    assert world.where(large) == "unschedulable"
    assert world.where(make_pod("p")) == "nowhere"
    assert world.scheduler.cluster.pods["default/p"].node_name == "n"


async def test_a_nomination_written_on_the_way_is_taken_back():
    world = Cycle(noting("Fails", [], pre_bind=failure(ValueError("broken"))))
    pod = make_pod()
    world.start(pod)
    # The watch shows what the cycle writes before it goes on.
    world.handlers.updated(pod, pod.with_status(nominated_node_name="n"))

    await world.go_on()

    assert nominations(world) == ["n", ""]
    assert not world.scheduler.nominator.has_any
