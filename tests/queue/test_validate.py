"""`SchedulingQueue.validate` compares its indexes with the waiting pods: whatever is spoiled, it notices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.errors import InvariantError
from mooring.framework.interface import Nomination
from mooring.framework.status import SUCCESS, unresolvable
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.queue.unschedulable_pods import Rejection, _Group
from tests.makers import make_pod
from tests.queue.world import FIT, NODE_ADD, NODE_LABEL, World


def lived() -> SchedulingQueue:
    """A queue with pods in every place, one popped, and a representative that waits."""

    def pre_enqueue(pod):
        return unresolvable("not yet") if pod.name == "gated" else SUCCESS

    world = World(
        class_of=lambda pod: 7 if pod.labels.get("app") else None,
        pre_enqueue=[("Gate", pre_enqueue)],
        hints=((NODE_ADD, FIT, None), (NODE_LABEL, "Other", None)),
    )
    for name in ("r1", "r2", "r3"):
        world.reject(name, labels={"app": "web"})
    world.clock.advance(60)
    world.queue.move_all(NODE_ADD)
    for name in ("u1", "u2"):
        world.reject(name, "Other")
    world.add("gated")
    world.reject("b1", times=3)
    world.add("e1")
    world.fail(world.queue.pop_specific(make_pod("e1")))
    world.queue.move_all(NODE_ADD)
    world.add("popped")
    assert world.queue.pop_specific(make_pod("popped")) is not None
    world.queue.move_all(NODE_ADD)
    world.add("popped-later")
    assert world.queue.pop_specific(make_pod("popped-later")) is not None
    for priority, name in enumerate(("a1", "a2", "a3")):
        world.add(name, priority=priority)
    world.queue.nominator.add(make_pod("a1"), Nomination("n"))
    counts = world.queue.counts()
    assert (counts.active, counts.backoff, counts.unschedulable, counts.gated) == (4, 2, 4, 1)
    assert world.queue.unschedulable_of_class(7)
    world.queue.validate()
    return world.queue


def active(queue: SchedulingQueue):
    return queue._queues.active


def backoff(queue: SchedulingQueue):
    return queue._queues.backoff


def unschedulable(queue: SchedulingQueue):
    return queue._queues.unschedulable


def representatives(queue: SchedulingQueue):
    return queue._representatives


def woken(queue: SchedulingQueue):
    ((group, found),) = representatives(queue)._woken[7].items()
    return group, found


def drop_entry(queue: SchedulingQueue) -> None:
    del active(queue)._entries[0]


def twice_in_heap(queue: SchedulingQueue) -> None:
    heap = active(queue)._entries
    heap.append(heap[-1])


def another_order(queue: SchedulingQueue) -> None:
    heap = active(queue)._entries
    _, number, _ = active(queue)._present["default/a1"]
    index = next(i for i, entry in enumerate(heap) if entry[1] == number)
    heap[index] = ((100, 0.0), number, "default/a1")


def other_name(queue: SchedulingQueue) -> None:
    present = active(queue)._present
    present["default/x"] = present.pop("default/a1")


def number_to_come(queue: SchedulingQueue) -> None:
    active(queue)._next_number = 0


def changed_order(queue: SchedulingQueue) -> None:
    queued = queue.get("default/a1")
    queued.pod = replace(queued.pod, spec=replace(queued.pod.spec, priority=1000))


def two_queues(queue: SchedulingQueue) -> None:
    unschedulable(queue).put(queue.get("default/a1"))


def same_number(queue: SchedulingQueue) -> None:
    places = unschedulable(queue)._places
    number = places["default/u2"].number
    places["default/u1"] = places["default/u1"]._replace(number=number)


def number_not_given_out(queue: SchedulingQueue) -> None:
    places = unschedulable(queue)._places
    places["default/u1"] = places["default/u1"]._replace(number=1000)


def empty_group(queue: SchedulingQueue) -> None:
    unschedulable(queue)._groups[Rejection("x", frozenset(), False)] = _Group()


def no_entry(queue: SchedulingQueue) -> None:
    for group in unschedulable(queue)._groups.values():
        group.entries.clear()
        group.over.clear()


def changed_rejectors(queue: SchedulingQueue) -> None:
    queue.get("default/u1").unschedulable_plugins = {"Another"}


def changed_class(queue: SchedulingQueue) -> None:
    queue.get("default/a1").pod_class = 8


def event_for_nobody(queue: SchedulingQueue) -> None:
    queue._in_flight._first -= 1


def forgotten_events(queue: SchedulingQueue) -> None:
    queue._in_flight._events.clear()


def another_uid(queue: SchedulingQueue) -> None:
    pods = queue._in_flight._pods
    pods["x"] = pods.pop(next(reversed(pods)))


def pods_out_of_order(queue: SchedulingQueue) -> None:
    pods = queue._in_flight._pods
    pods.move_to_end(next(iter(pods)))


def nobody_waits(queue: SchedulingQueue) -> None:
    representatives(queue)._waiting.clear()


def waits_elsewhere(queue: SchedulingQueue) -> None:
    active(queue).remove("default/r1")


def not_woken(queue: SchedulingQueue) -> None:
    representatives(queue)._woken.clear()


def woken_for_nothing(queue: SchedulingQueue) -> None:
    representatives(queue)._woken[9] = {}


def woken_for_another_class(queue: SchedulingQueue) -> None:
    group, found = woken(queue)
    representatives(queue)._woken[9] = {group: found}


def popped_twice(queue: SchedulingQueue) -> None:
    representatives(queue)._tried += [woken(queue)[0]] * 2


def stands_for_the_future(queue: SchedulingQueue) -> None:
    woken(queue)[1].before = 1000


def nominated_twice(queue: SchedulingQueue) -> None:
    queue.nominator._node_of["x"] = "n"


SPOILED = {
    "the heap lacks an entry": (drop_entry, "has no entry in the heap"),
    "an entry is in the heap twice": (twice_in_heap, "in the heap twice"),
    "an entry has another order": (another_order, "the entry of default/a1 has another order"),
    "the heap is out of order": (
        lambda q: active(q)._entries.reverse(),
        "is below an entry that it precedes",
    ),
    "a pod is kept under another key": (other_name, "kept under the key default/x"),
    "numbers start again": (number_to_come, "a number that was not assigned yet"),
    "a pod changed its order": (changed_order, "the order of default/a1 changed"),
    "a pod waits in two queues": (two_queues, "default/a1 waits in two queues"),
    "an active pod is gated": (
        lambda q: setattr(q.get("default/a1"), "gating_plugin", "Gate"),
        "default/a1 is gated",
    ),
    "an active pod was never tried": (
        lambda q: setattr(q.get("default/a1"), "initial_attempt_timestamp", None),
        "no time of first attempt",
    ),
    "an error is kept as a rejection": (
        lambda q: q.get("default/e1").unschedulable_plugins.add(FIT),
        "default/e1 is in the wrong backoff heap",
    ),
    "a backoff ends at another time": (
        lambda q: setattr(q.get("default/b1"), "timestamp", 1.0),
        "the end of the backoff of default/b1|the order of default/b1 changed",
    ),
    "a pod is in both backoff heaps": (
        lambda q: backoff(q)._failed.put(q.get("default/b1")),
        "default/b1",
    ),
    "a pod in backoff cannot be found by its name": (
        lambda q: backoff(q)._heap_with.pop("default/b1"),
        "the heaps of pods in backoff differ",
    ),
    "two pods have one number": (same_number, "the same number"),
    "a number is not assigned yet": (number_not_given_out, "not assigned yet"),
    "a pod has no group": (
        lambda q: unschedulable(q)._places.pop("default/u1"),
        "differ from the group of each pod",
    ),
    "a group is empty": (empty_group, "is empty"),
    "a pod is in no order": (no_entry, "has no entry in the order of its group"),
    "an unschedulable pod backs off longer": (
        lambda q: setattr(q.get("default/u1"), "backoff_expiration", 1e9),
        "the backoff of default/u1 changed",
    ),
    "a pod was rejected by others": (changed_rejectors, "default/u1 is kept as"),
    "a pod is of another class": (changed_class, "default/a1 is kept as of class 8"),
    "events are kept for no pod": (event_for_nobody, "no pod in flight needs"),
    "events were forgotten": (forgotten_events, "events were dropped"),
    "a pod is in flight by another UID": (another_uid, "under another UID"),
    "the pods in flight are out of order": (pods_out_of_order, "not in order"),
    "no representative waits": (nobody_waits, "neither waits nor was popped"),
    "a representative is elsewhere": (waits_elsewhere, "not in the queue"),
    "a group is not woken": (not_woken, "a group that is not woken"),
    "no group of a class is woken": (woken_for_nothing, "has no woken group"),
    "a group is woken for another class": (woken_for_another_class, "a group of another class"),
    "a representative is popped twice": (popped_twice, "popped twice"),
    "a representative stands for pods to come": (stands_for_the_future, "have not arrived yet"),
    "a nomination is kept on one side": (nominated_twice, "nominations by node"),
}


@pytest.mark.parametrize(("spoil", "problem"), SPOILED.values(), ids=SPOILED)
def test_whatever_is_spoiled_is_noticed(spoil, problem):
    queue = lived()
    spoil(queue)

    with pytest.raises(InvariantError, match=problem):
        queue.validate()
