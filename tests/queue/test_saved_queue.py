"""A queue goes on where another one stood: the same pods come out, in the same order."""

from __future__ import annotations

import msgspec
import pytest

from mooring.framework.status import SUCCESS, unresolvable
from mooring.queue.queued_pod import History
from mooring.queue.saved_queue import SavedQueue
from tests.makers import make_pod
from tests.queue.test_validate import lived
from tests.queue.world import FIT, NODE_ADD, NODE_LABEL, World


def _world() -> World:
    return World(
        class_of=lambda pod: 7 if pod.labels.get("app") else None,
        pre_enqueue=[
            ("Gate", lambda pod: unresolvable("not yet") if pod.name == "gated" else SUCCESS)
        ],
        hints=((NODE_ADD, FIT, None), (NODE_LABEL, "Other", None)),
    )


def _order(world: World) -> list[tuple[str, int]]:
    """What is popped until nothing is left, while time passes and things happen."""
    popped = []
    for event in (None, NODE_ADD, NODE_LABEL, None):
        if event is not None:
            world.queue.move_all(event)
        while (queued := world.queue.pop()) is not None:
            popped.append((queued.pod.name, queued.attempts))
            world.queue.done(queued.uid)
        world.clock.advance(400)
        world.queue.flush_backoff_completed()
        world.queue.flush_unschedulable_leftover()
    return popped


@pytest.mark.parametrize("seconds", [0, 1, 2, 30])
def test_another_queue_pops_the_same_pods_in_the_same_order(seconds):
    before = _world()
    for name in ("r1", "r2", "r3"):
        before.reject(name, labels={"app": "web"})
    before.clock.advance(60)
    for name in ("u1", "u2"):
        before.reject(name, "Other")
    before.add("gated")
    before.reject("b1", times=3)
    before.add("e1")
    before.fail(before.queue.pop_specific(make_pod("e1")))
    before.queue.move_all(NODE_ADD)
    before.clock.advance(seconds)
    before.add("a1")
    assert before.queue.may_save
    text = msgspec.json.encode(before.queue.save())
    pods = {pod.key: pod for pod in before.queue.pending_pods()[0]}
    after = _world()
    after.clock.advance(before.clock.now() - after.clock.now())

    after.queue.load(msgspec.json.decode(text, type=SavedQueue), pods.get)

    after.queue.validate()
    assert after.queue.counts() == before.queue.counts()
    assert after.queue.save() == before.queue.save()
    assert _order(after) == _order(before)


def test_while_a_pod_is_in_flight_the_queue_is_not_saved():
    assert not lived().may_save


def test_a_gated_pod_keeps_its_history_in_another_queue():
    """After a reload its failed attempts were counted only when it waited already, in the wrong order."""
    world = _world()

    world.queue.add(make_pod("gated"), History(3, 2, 1000.0))

    world.queue.validate()
    queued = world.queue.get(make_pod("gated").key)
    assert queued is not None
    assert queued.history == (3, 2, 1000.0)
