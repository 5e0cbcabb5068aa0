"""What an engine has to write reaches its driver as data, with the attempt that it belongs to."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from mooring.config import default_config
from mooring.errors import ApiError, NotFound
from mooring.framework.api import ApiWriter, Event, PodStatusPatch
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import unschedulable
from mooring.objects.pod import Pod
from mooring.objects.taints import Taint
from mooring.runtime.metrics import Metrics
from mooring.scheduler.attempt import Attempt, Phase
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.writes import PodStatusWrite, Writes, write_status
from tests.clock import FakeClock
from tests.engine import discard, registry_with
from tests.makers import make_node, make_pod
from tests.scheduler.world import World

NO_ROOM = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate,"
    " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def attempts_of(world: World) -> list[tuple[Attempt, Writes]]:
    return [(writes.attempt, writes) for writes in world.writes if writes.attempt is not None]


def test_a_bound_pod_ends_with_one_event():
    world = World().with_node(cpu="1")

    world.attempt(make_pod("p"))

    ((attempt, writes),) = attempts_of(world)
    (event,) = writes.items
    assert isinstance(event, Event)
    assert (event.reason, event.note) == ("Scheduled", "Successfully assigned default/p to n")
    assert writes.status.ok
    assert attempt.phase is Phase.BOUND
    assert attempt.node_name == "n"


def test_a_refused_pod_ends_with_an_event_and_its_condition():
    world = World().with_node(cpu="1")
    pod = make_pod("p", cpu="2")

    world.attempt(pod)

    ((attempt, writes),) = attempts_of(world)
    event, status = writes.items
    assert isinstance(event, Event)
    assert (event.reason, event.note) == ("FailedScheduling", NO_ROOM)
    assert isinstance(status, PodStatusWrite)
    assert status.pod is pod
    assert status.patch.condition is not None
    assert (status.patch.condition.reason, status.patch.condition.message) == (
        "Unschedulable",
        NO_ROOM,
    )
    assert writes.status.rejected
    assert attempt.phase is Phase.FAILED


class SaysNo:
    """Permits nothing."""

    name = "SaysNo"

    def permit(self, state: object, pod: Pod, node_name: str) -> object:
        return unschedulable("not today"), 0.0


def test_when_the_writes_are_made_everything_of_the_attempt_is_undone():
    class Looking(World):
        def _carry_out(self, writes: Writes) -> None:
            super()._carry_out(writes)
            seen.append((len(self.scheduler.cluster.pods), self.where(pod)))

    seen: list[tuple[int, str]] = []
    pod = make_pod("p")
    world = Looking(SaysNo).with_node(cpu="1")

    world.attempt(pod)

    assert seen == [(0, "unschedulable")]


def test_pods_that_another_was_tried_for_are_part_of_its_writes():
    world = World().with_node(cpu="1")
    for name in "abc":
        world.attempt(make_pod(name, cpu="2"))
    world.writes.clear()
    world.with_node("another", cpu="2", taints=[Taint("gpu", "", "NoSchedule")])
    world.clock.advance(60)
    world.scheduler.queue.flush_backoff_completed()

    while world.schedule_one():
        pass

    ((_, writes),) = attempts_of(world)
    told = [write.pod.name for write in writes.items if isinstance(write, PodStatusWrite)]
    assert sorted(told) == ["a", "b", "c"]


def test_a_pod_that_is_being_deleted_is_not_tried_and_its_event_belongs_to_no_attempt():
    world = World().with_node(cpu="1")

    world.attempt(make_pod("p", deleting=datetime(2026, 1, 1, tzinfo=UTC)))

    (writes,) = world.writes
    assert writes.attempt is None
    (event,) = writes.items
    assert isinstance(event, Event)
    assert event.note == "skip schedule deleting pod: default/p"


def test_without_a_driver_that_writes_the_engine_decides_all_the_same():
    engine = Engine(
        default_config(),
        Dependencies(
            clock=FakeClock(),
            writer=Untouchable(),
            spawn=discard,
            registry=registry_with(),
            metrics=Metrics(),
        ),
    )
    engine.load([make_node("n", cpu="1"), make_pod("fits", cpu="1"), make_pod("waits", cpu="1")])

    assert engine.schedule_one()
    assert engine.schedule_one()

    assert [pod.name for pod in engine.cluster.pods.values()] == ["fits"]
    assert [queued.pod.name for queued in engine.queue.unschedulable_pods()] == ["waits"]


class Untouchable(SilentWriter):
    """Nobody may write through it."""

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        raise AssertionError("written by the engine itself")

    def record_event(self, event: Event) -> None:
        raise AssertionError("written by the engine itself")


class Failing(SilentWriter):
    def __init__(self, error: ApiError) -> None:
        super().__init__()
        self.error = error

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        pytest.param(ApiError("no"), ["patching the status of default/p: no"], id="any failure"),
        pytest.param(NotFound("gone"), [], id="the pod is gone"),
    ],
)
def test_a_status_that_cannot_be_written_is_only_logged(error, logged, caplog):
    writer: ApiWriter = Failing(error)
    write = PodStatusWrite(make_pod("p"), PodStatusPatch(nominated_node_name="n"))

    with caplog.at_level(logging.INFO, logger="mooring.scheduler"):
        asyncio.run(write_status(write, writer))

    assert caplog.messages == logged
