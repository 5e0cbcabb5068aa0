"""Pods of one class: one of them is tried for all."""

from __future__ import annotations

import pytest

from mooring.framework.status import SUCCESS, unresolvable
from tests.makers import make_pod
from tests.queue.world import FIT, NODE_ADD, NODE_LABEL, World


def one_class(**options) -> World:
    return World(class_of=lambda pod: 7 if pod.labels.get("app") else None, **options)


def waiting(world: World, *names: str, app: str = "web") -> None:
    """These pods were tried and rejected, one after another, and their backoff is over."""
    for name in names:
        world.add(name, labels={"app": app} if app else {})
        reject(world, world.queue.pop())
    world.clock.advance(60)


def reject(world: World, queued, *plugins: str) -> None:
    queued.unschedulable_plugins = set(plugins or (FIT,))
    world.queue.add_unschedulable_if_not_present(queued, for_class=True)
    world.queue.validate()


def tried(world: World) -> list[str]:
    return [queued.pod.name for queued in world.queue.active_pods()]


def test_an_event_wakes_one_of_them():
    world = one_class()
    waiting(world, "a", "b", "c")

    world.queue.move_all(NODE_ADD)
    world.queue.move_all(NODE_ADD)

    assert tried(world) == ["a"]
    assert world.queue.counts().unschedulable == 2


def test_when_it_is_rejected_the_others_wait_on():
    world = one_class()
    waiting(world, "a", "b", "c")
    world.queue.move_all(NODE_ADD)

    reject(world, world.queue.pop())

    assert world.queue.pop() is None
    assert world.queue.rejected_classes == {7}


def test_when_it_is_placed_the_next_follows_and_each_is_tried_once():
    world = one_class()
    waiting(world, "a", "b", "c")
    world.queue.move_all(NODE_ADD)

    names = []
    while (queued := world.queue.pop()) is not None:
        names.append(queued.pod.name)
        world.queue.done(queued.uid)
        world.queue.validate()

    assert names == ["a", "b", "c"]


def test_pods_that_fail_without_a_rejection_for_all_are_each_tried_once():
    """Permit refused them: that says nothing of the others, and must not go round in a circle."""
    world = one_class()
    waiting(world, "a", "b", "c")
    world.queue.move_all(NODE_ADD)

    names = []
    while (queued := world.queue.pop()) is not None:
        names.append(queued.pod.name)
        queued.unschedulable_plugins = {FIT}
        world.queue.add_unschedulable_if_not_present(queued)

    assert names == ["a", "b", "c"]


def test_the_one_that_was_rejected_stays_the_first():
    """So that it is one pod whose backoff grows, and pods that have just come go before it."""
    world = one_class()
    waiting(world, "a", "b", "c")
    names = []
    for _ in range(3):
        world.queue.move_all(NODE_ADD)
        queued = world.queue.pop()
        names.append(queued.pod.name)
        reject(world, queued)

    assert names == ["a", "a", "a"]


def test_pods_that_another_one_was_tried_for_back_off_as_that_one_does():
    world = one_class()
    waiting(world, "a", "b")
    world.queue.move_all(NODE_ADD)
    reject(world, world.queue.pop())

    # The place that the first one gets was not there a moment ago.
    world.queue.move_all(NODE_ADD)
    world.queue.done(world.queue.pop().uid)
    world.add("new")

    assert [world.queue.pop().pod.name for _ in range(2)] == ["new", "b"]


def test_a_pod_that_was_rejected_once_goes_before_those_that_were_rejected_often():
    """The reference tries it after its own backoff; it waited behind all older ones of its class."""
    world = one_class()
    waiting(world, "old1", "old2")
    for _ in range(3):
        world.queue.move_all(NODE_ADD)
        reject(world, world.queue.pop())
        world.clock.advance(60)
    world.queue.move_all(NODE_ADD)
    reject(world, world.queue.pop())
    world.add("new", labels={"app": "web"})
    reject(world, world.queue.pop())

    world.queue.move_all(NODE_ADD)

    assert placed(world) == ["new", "old1", "old2"]


def test_those_whose_backoff_is_over_go_first_the_one_that_has_waited_longest_before_the_others():
    world = one_class()
    waiting(world, "old1", "old2")
    world.add("new", labels={"app": "web"})
    reject(world, world.queue.pop())

    world.queue.move_all(NODE_ADD)

    assert placed(world) == ["old1", "old2", "new"]


def test_a_rejection_counts_for_the_others_only_if_their_backoff_is_over():
    world = one_class()
    waiting(world, "old")
    for name in ("a", "b"):
        world.add(name, labels={"app": "web"})
        reject(world, world.queue.pop())

    for _ in range(5):
        world.queue.move_all(NODE_ADD)
        reject(world, world.queue.pop())

    counts = {name: world.queue.get(f"default/{name}").unschedulable_count for name in ("a", "b")}
    assert counts == {"a": 1, "b": 1}
    assert world.queue.get("default/old").unschedulable_count == 2


def placed(world: World) -> list[str]:
    """The pods that are tried, in order, if there is a place for each."""
    names = []
    while (queued := world.queue.pop()) is not None:
        names.append(queued.pod.name)
        world.queue.done(queued.uid)
        world.queue.validate()
    return names


def test_the_others_wait_for_what_the_one_that_was_tried_waits_for():
    world = one_class(hints=((NODE_ADD, FIT, None), (NODE_LABEL, "Other", None)))
    waiting(world, "a", "b")
    world.queue.move_all(NODE_ADD)
    reject(world, world.queue.pop(), "Other")
    world.clock.advance(60)

    world.queue.move_all(NODE_ADD)
    assert tried(world) == []
    world.queue.move_all(NODE_LABEL)
    assert tried(world) == ["a"]
    assert world.metrics.unschedulable[(FIT, "default-scheduler")] == 0


def test_a_pod_that_comes_back_under_another_rejection_stands_for_the_pods_of_that_one():
    """The others of that rejection were left untried until something else happened.

    1. "a" is tried for the pods that Fit rejected, and comes back rejected by Other, as "c" does.
    2. Before the next pod is popped an event wakes "a" again, for those that Other rejected.
    3. The next pop ends the first trial, and "b" follows. The second trial must not end with it.
    """
    world = one_class(hints=((NODE_ADD, FIT, None), (NODE_LABEL, "Other", None)))
    waiting(world, "a", "b")
    world.queue.move_all(NODE_ADD)
    world.fail(world.pop(), "Other")
    world.add("c", labels={"app": "web"})
    world.fail(world.queue.pop_specific(make_pod("c")), "Other")
    world.clock.advance(60)
    world.queue.move_all(NODE_LABEL)
    assert tried(world) == ["a"]

    names = set()
    while (queued := world.queue.pop()) is not None:
        names.add(queued.pod.name)
        world.queue.done(queued.uid)
        world.queue.validate()

    assert names == {"a", "b", "c"}


@pytest.mark.parametrize("leaves", ["deleted", "changed"])
def test_another_takes_the_place_of_a_representative_that_is_gone(leaves):
    world = one_class()
    waiting(world, "a", "b")
    world.queue.move_all(NODE_ADD)
    pod = make_pod("a", labels={"app": "web"})

    if leaves == "deleted":
        world.queue.delete(pod)
        expected = ["b"]
    else:
        # It is not like the others any more, and is tried for itself.
        world.queue.update(pod, make_pod("a"))
        expected = ["a", "b"]

    assert sorted(tried(world)) == expected
    world.queue.validate()


def test_one_that_is_held_back_speaks_for_nobody():
    def pre_enqueue(pod):
        return unresolvable("not yet") if pod.name == held else SUCCESS

    held = ""
    world = one_class(pre_enqueue=[("Gate", pre_enqueue)])
    waiting(world, "a", "b")
    held = "a"

    world.queue.move_all(NODE_ADD)

    assert tried(world) == ["b"]
    assert world.where("a") == "gated"
    world.queue.validate()


def test_pods_without_a_class_are_tried_one_by_one():
    world = one_class()
    waiting(world, "a", "b", app="")

    world.queue.move_all(NODE_ADD)

    assert tried(world) == ["a", "b"]
