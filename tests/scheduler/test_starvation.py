"""Pods that fit nowhere, however many and however important, do not keep others from being tried."""

from __future__ import annotations

from msgspec.structs import replace

from tests.engine import Engine
from tests.makers import make_node, make_pod


def test_hopeless_pods_of_higher_priority_are_not_tried_before_others_again_and_again():
    """300 kinds of pods that fit nowhere, and a cluster in which something happens all the time."""
    node = make_node("n1", cpu=4)
    running = make_pod("running", node="n1", cpu=1)
    engine = Engine(node, running)
    for number in range(300):
        engine.scheduler.added(make_pod(f"hopeless-{number}", cpu=100 + number, priority=1000))
    while engine.scheduler.schedule_one():
        pass
    tried = len(engine.decisions)
    assert tried >= 300

    for number in range(20):
        labels = {**node.metadata.labels, "turn": str(number)}
        changed = replace(node, metadata=replace(node.metadata, labels=labels))
        engine.scheduler.updated(node, changed)
        node = changed
        # Whoever was woken has waited long enough.
        engine.clock.advance(60.0)
        engine.scheduler.queue.flush_backoff_completed()
        engine.scheduler.added(make_pod(f"modest-{number}", cpu="100m"))
        engine.scheduler.schedule_one()

        assert engine.decisions[-1].pod.name == f"modest-{number}"
    assert len(engine.decisions) == tried + 20
