import asyncio

import pytest

from mooring.framework.api import PodStatusPatch
from mooring.framework.interface import Nomination
from mooring.framework.status import SUCCESS, Code, unresolvable
from mooring.objects.pod import PodCondition
from tests.makers import make_node, make_pod
from tests.plugins.preemption_world import EPOCH, World, at

WAITING = unresolvable("waiting for the preemption for this pod to be finished")
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
CONDITION = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=MESSAGE
)

HIGH = make_pod("high", uid="high-uid", cpu="4", priority=1000)


def victim(name, *, cpu="4", **fields):
    return make_pod(name, node="n1", cpu=cpu, started=at(0), **fields)


def world_of(*pods):
    """One node, full of these pods."""
    return World([make_node("n1", cpu="4")], pods)


async def preempt(world):
    result, status = world.post_filter(HIGH)
    await world.run_started()
    return result, status


# Through the API


async def test_a_victim_is_told_why_then_deleted_and_its_users_hear_of_it():
    world = world_of(victim("a"))

    result, status = await preempt(world)

    assert status.ok
    assert result.nomination == Nomination("n1")
    assert world.writer.calls == [("patch", "default/a"), ("delete", "default/a")]
    assert world.writer.patches == {"default/a": PodStatusPatch(CONDITION)}
    (event,) = world.writer.events
    assert (event.regarding.name, event.related.name) == ("a", "high")
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.note == "Preempted by pod high-uid on node n1"
    assert event.reporting_controller == "default-scheduler"


async def test_nothing_is_written_before_post_filter_returns():
    world = world_of(victim("a"))

    world.post_filter(HIGH)

    assert world.writer.calls == []
    assert len(world.started) == 1
    await world.run_started()


async def test_a_victim_that_says_so_already_is_not_told_again():
    world = world_of(victim("a", conditions=[CONDITION]))

    await preempt(world)

    assert world.writer.calls == [("delete", "default/a")]


@pytest.mark.parametrize("call", ["patch", "delete"])
async def test_a_victim_that_is_gone_is_as_good_as_evicted(call):
    world = world_of(victim("a", cpu="2"), victim("b", cpu="2"))
    world.writer.gone.add((call, "default/a"))

    await preempt(world)

    assert ("delete", "default/b") in world.writer.calls
    assert [event.regarding.name for event in world.writer.events] == ["b"]
    assert queued(world) == []


async def test_the_last_victim_leaves_after_all_the_others():
    world = world_of(*(victim(name, cpu="1") for name in "abcd"))

    await preempt(world)

    calls = world.writer.calls
    assert sorted(calls[:6]) == sorted(
        (w, f"default/{n}") for w in ("patch", "delete") for n in "abc"
    )
    assert calls[6:] == [("patch", "default/d"), ("delete", "default/d")]


async def test_victims_that_are_leaving_already_are_left_alone():
    """Then there is nothing to wait for either."""
    world = world_of(victim("a", deleting=EPOCH))

    result, status = world.post_filter(HIGH)

    assert status.ok
    assert result.nomination == Nomination("n1")
    assert world.started == []
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS


async def test_of_several_victims_only_those_that_stay_are_evicted():
    world = world_of(victim("a", cpu="2", deleting=EPOCH), victim("b", cpu="2"))

    await preempt(world)

    assert world.writer.calls == [("patch", "default/b"), ("delete", "default/b")]


# Failures


@pytest.mark.parametrize("call", ["patch", "delete"])
async def test_when_a_victim_cannot_be_evicted_the_last_one_is_spared(call):
    world = waiting_world(victim("a", cpu="2"), victim("b", cpu="2"))
    world.writer.failing.add((call, "default/a"))

    await preempt(world)

    assert ("delete", "default/b") not in world.writer.calls
    assert ("patch", "default/b") not in world.writer.calls
    assert world.writer.events == []
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS
    assert queued(world) == ["default/high"], "the preemptor is to be tried again at once"


async def test_when_the_last_victim_cannot_be_evicted_the_preemptor_is_tried_again():
    world = waiting_world(victim("a"))
    world.writer.failing.add(("delete", "default/a"))

    await preempt(world)

    assert queued(world) == ["default/high"]


async def test_a_bug_in_the_writer_does_not_leave_the_preemptor_waiting_for_ever():
    world = waiting_world(victim("a"))

    async def broken(pod):
        raise ZeroDivisionError

    world.writer.delete_pod = broken
    await preempt(world)

    assert world.plugin.pre_enqueue(HIGH) == SUCCESS
    assert queued(world) == ["default/high"]


async def test_when_all_goes_well_the_preemptor_waits_for_the_pods_to_be_gone():
    world = waiting_world(victim("a"))

    await preempt(world)

    assert queued(world) == []
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS


def waiting_world(*pods):
    """The preemptor is unschedulable, until somebody activates it."""
    world = world_of(*pods)
    world.handlers.added(HIGH)
    queue = world.scheduler.queue
    queued_pod = queue.pop()
    queued_pod.unschedulable_plugins = {"NodeResourcesFit"}
    queue.add_unschedulable_if_not_present(queued_pod)
    assert queued(world) == []
    return world


def queued(world):
    """The pods to be tried at once."""
    return [entry.pod.key for entry in world.scheduler.queue.active_pods()]


# Victims that are not bound yet


async def test_a_victim_that_waits_on_permit_is_stopped_in_memory():
    world = world_of()
    world.scheduler.cluster.assume_pod(victim("a"))
    waiting = world.scheduler.waiting_pods.add(victim("a"), "n1", {"Gang": 60})

    await preempt(world)

    assert world.writer.calls == []
    (event,) = world.writer.events
    assert event.note == "Preempted by pod high-uid on node n1 (in kube-scheduler memory)."
    assert waiting.decided
    status = await world.framework.wait_on_permit(victim("a"))
    assert (status.code, status.message) == (
        Code.ERROR,
        "waiting on permit for pod: preempted",
    )
    assert status.plugin == "DefaultPreemption"


async def test_a_victim_whose_wait_is_over_is_deleted():
    world = world_of()
    world.scheduler.cluster.assume_pod(victim("a"))
    world.scheduler.waiting_pods.add(victim("a"), "n1", {"Gang": 60}).allow("Gang")

    await preempt(world)

    assert world.writer.calls == [("patch", "default/a"), ("delete", "default/a")]
    assert world.writer.events[0].note == "Preempted by pod high-uid on node n1"


async def test_the_preemptor_of_a_victim_that_never_was_bound_is_tried_again():
    """A preemptor waited for the flush after five minutes.

    1. A pod is assumed, and chosen as a victim. 2. Its binding fails, and it gives its place back while the
    preemptor is held back. 3. It is deleted without a node, which wakes nobody.
    """
    world = waiting_world()
    world.scheduler.cluster.assume_pod(victim("a"))
    world.scheduler.observed_pods["default/a"] = make_pod("a", cpu="4")

    await preempt(world)

    assert ("delete", "default/a") in world.writer.calls
    assert queued(world) == ["default/high"]


async def test_a_victim_in_pre_bind_is_stopped_in_memory():
    world = world_of()
    world.scheduler.cluster.assume_pod(victim("a"))
    never = asyncio.get_running_loop().create_future()

    async def pre_bind():
        await never

    binding = asyncio.ensure_future(
        world.scheduler.parts.pods_in_pre_bind.run("default/a", pre_bind())
    )
    await asyncio.sleep(0)
    await preempt(world)

    status = await binding
    assert (status.code, status.message) == (Code.ERROR, "preempted by DefaultPreemption")
    assert world.writer.calls == []
    assert world.writer.events[0].note.endswith("(in kube-scheduler memory).")


async def test_a_victim_past_pre_bind_is_deleted():
    world = world_of()
    world.scheduler.cluster.assume_pod(victim("a"))

    async def pre_bind():
        return SUCCESS

    assert (await world.scheduler.parts.pods_in_pre_bind.run("default/a", pre_bind())).ok
    await preempt(world)

    assert world.writer.calls == [("patch", "default/a"), ("delete", "default/a")]


async def test_a_victim_stopped_in_pre_bind_goes_through_the_whole_way_back():
    """The scheduler itself: reserved, in PreBind, preempted, undone, and to be retried later."""
    undone = []
    in_pre_bind = asyncio.Event()

    class SlowVolumes:
        name = "SlowVolumes"

        def reserve(self, state, pod, node_name):
            return None

        def unreserve(self, state, pod, node_name):
            undone.append(pod.name)

        async def pre_bind(self, state, pod, node_name):
            in_pre_bind.set()
            await asyncio.Event().wait()

    world = World([make_node("n1", cpu="4")], extra={"SlowVolumes": SlowVolumes})
    world.handlers.added(make_pod("a", cpu="4"))
    assert world.scheduler.schedule_one()
    binding = asyncio.ensure_future(world.started.pop())
    await in_pre_bind.wait()

    await preempt(world)
    await binding

    assert undone == ["a"]
    assert world.scheduler.cluster.pods == {}
    assert [entry.pod.key for entry in world.scheduler.queue.backoff_pods()] == ["default/a"]
    preempted, failed = world.writer.events
    assert (preempted.reason, failed.reason) == ("Preempted", "FailedScheduling")
    assert "preempted by DefaultPreemption" in failed.note
    assert len(world.scheduler.parts.pods_in_pre_bind) == 0
    await world.run_started()


# Nominations


def nominated(name, priority, node="n1"):
    return make_pod(name, priority=priority, nominated=node)


async def test_less_important_pods_lose_the_node_they_counted_on():
    world = world_of(victim("a"), nominated("lower", 999), nominated("equal", 1000))
    world.add(nominated("elsewhere", 0, "n2"))
    world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get

    await preempt(world)

    assert world.writer.calls[0] == ("patch", "default/lower")
    assert world.writer.patches["default/lower"] == PodStatusPatch(nominated_node_name="")
    assert "default/equal" not in world.writer.patches
    assert "default/elsewhere" not in world.writer.patches


async def test_a_nomination_that_only_the_scheduler_knows_of_needs_no_write():
    world = world_of(victim("a"))
    other = make_pod("other", cpu="1")
    world.add(other)
    world.scheduler.nominator.add(other, Nomination("n1"))
    world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get

    await preempt(world)

    assert "default/other" not in world.writer.patches


async def test_a_nomination_that_cannot_be_cleared_does_not_spare_the_victims():
    world = waiting_world(victim("a"), nominated("lower", 0))
    world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get
    world.writer.failing.add(("patch", "default/lower"))

    await preempt(world)

    assert ("delete", "default/a") in world.writer.calls
    assert queued(world) == ["default/high"]


# Waiting


async def test_the_preemptor_waits_until_its_last_victim_is_seen_leaving():
    world = world_of(victim("a", cpu="2"), victim("b", cpu="2"))
    turn_of_b, gate = asyncio.Event(), asyncio.Event()
    delete = world.writer.delete_pod

    async def slow_delete(pod):
        if pod.name == "b":
            turn_of_b.set()
            await gate.wait()
        await delete(pod)

    world.writer.delete_pod = slow_delete
    world.post_filter(HIGH)
    assert world.plugin.pre_enqueue(HIGH) == WAITING

    running = asyncio.ensure_future(world.run_started())
    await turn_of_b.wait()
    assert world.plugin.pre_enqueue(HIGH) == WAITING, "b is still there"

    world.scheduler.observed_pods["default/b"] = victim("b", cpu="2", deleting=EPOCH)
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS, "b is seen leaving before the call returns"

    del world.scheduler.observed_pods["default/b"]
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS, "b is gone before the call returns"

    gate.set()
    await running
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS


async def test_a_preemptor_does_not_preempt_again_before_its_victim_is_seen_leaving():
    """1. The victim is deleted, and the watch has yet to show it. 2. Another pod leaves, and the preemptor
    is tried again. A storm of 500 preemptors at 50 requests a second evicted 60 pods in vain.
    """
    world = World(
        [make_node("n1", cpu="4"), make_node("n2", cpu="4")],
        [victim("a"), make_pod("b", node="n2", cpu="4", priority=10)],
    )
    await preempt(world)
    assert ("delete", "default/a") in world.writer.calls
    assert not world.scheduler.may_save(), "another engine would not know that it is deleted"

    result, status = await preempt(world)
    assert result is None
    assert "not eligible due to a terminating pod on the nominated node." in status.message
    assert ("delete", "default/b") not in world.writer.calls

    world.scheduler.cluster.remove_pod(world.scheduler.observed_pods.pop("default/a"))
    assert world.scheduler.may_save()
    world.add(make_pod("came-first", node="n1", cpu="4", priority=2000))
    await preempt(world)
    assert ("delete", "default/b") in world.writer.calls


async def test_other_pods_do_not_wait():
    world = world_of(victim("a"))
    world.post_filter(HIGH)

    assert world.plugin.pre_enqueue(make_pod("other")) == SUCCESS
    await world.run_started()


def test_work_that_is_closed_instead_of_run_holds_nobody_back():
    world = world_of(victim("a"))
    world.post_filter(HIGH)

    world.started.pop().close()

    assert world.plugin.pre_enqueue(HIGH) == SUCCESS


async def test_a_second_eviction_is_not_forgotten_when_the_first_one_ends():
    """1. The preemptor's last victim is seen leaving, so it is tried again before the call returns.
    2. It preempts once more. 3. The first call returns: the second eviction is still under way.
    """
    world = world_of(victim("a"))
    world.post_filter(HIGH)
    world.post_filter(HIGH)

    await world.started.pop(0)

    assert world.plugin.pre_enqueue(HIGH) == WAITING
    await world.run_started()
    assert world.plugin.pre_enqueue(HIGH) == SUCCESS
