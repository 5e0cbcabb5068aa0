"""Another engine goes on with what one knows."""

from __future__ import annotations

from mooring.config import load_config
from mooring.framework.status import Status, unresolvable
from mooring.objects.pod import Pod
from tests.engine import Engine
from tests.makers import make_node, make_pod

CONFIG = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Closed"}]}}}],
    }
)


class Closed:
    """A gate that lets nobody pass."""

    name = "Closed"

    def pre_enqueue(self, pod: Pod) -> Status:
        return unresolvable("closed")


def test_a_pod_that_was_refused_and_is_gated_now_waits_in_its_place():
    """Seed 108 of the random faults: what it had behind it was noted after it had got its place.

    1. A pod is refused.
    2. The scheduler gets another configuration. A PreEnqueue plugin of the new one holds the pod back, so
       it waits in the order of its backoff.
    3. How often it had been refused was noted after that, and its backoff was another one.
    """
    first = Engine(make_node("n", cpu="1"), make_pod("p", cpu="2"))
    assert first.scheduler.schedule_one()
    second = Engine(config=CONFIG, plugins={"Closed": Closed})

    second.scheduler.take_over(first.scheduler)

    second.scheduler.validate()
    queued = second.scheduler.queue.get("default/p")
    assert queued is not None
    assert (queued.gated, queued.attempts, queued.unschedulable_count) == (True, 1, 1)
