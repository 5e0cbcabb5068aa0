"""Pattern 9: no decision depends on which handler is told first.

In the reference, the queue once heard of a volume before the cache that decisions read: the pod was tried too
early, refused, and nothing woke it again.
"""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint, Hint
from mooring.framework.status import unschedulable
from mooring.objects.devices import ResourceClaim
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from tests import volume_world
from tests.device_world import claim
from tests.engine import Engine
from tests.makers import make_node, make_pod
from tests.scheduler.world import World

#: What the queue asked about: whether the cache had it already.
SEEN: list[bool] = []
WORLDS: list[World] = []


def look(pod, old, new):
    obj = new or old
    SEEN.append(_is_known(WORLDS[0].scheduler.cluster, obj) is (new is not None))
    return Hint.SKIP


def _is_known(cluster, obj):
    match obj:
        case Node():
            return obj.name in cluster.infos and cluster.infos[obj.name].node is obj
        case Pod():
            return obj.uid in cluster.pods
        case ResourceClaim():
            return cluster.claims.get(obj.key) is obj
    return cluster.listers.get(type(obj), obj.key) is obj


class Looks:
    name = "Looks"

    def filter(self, state, pod, node):
        return unschedulable("no") if pod.name == "waiting" else None

    def events_to_register(self):
        resources = (
            "Node",
            "Pod",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "storage.k8s.io/StorageClass",
        )
        return [
            EventWithHint(ClusterEvent(EventResource(resource), Action.ALL), partial(look))
            for resource in (*resources, "resource.k8s.io/ResourceClaim")
        ]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(make_node("m"), id="node"),
        pytest.param(make_pod("placed", node="n"), id="pod"),
        pytest.param(volume_world.make_volume("v"), id="volume"),
        pytest.param(volume_world.make_claim("c"), id="volume claim"),
        pytest.param(volume_world.make_class("fast"), id="storage class"),
        pytest.param(claim("devices"), id="resource claim"),
    ],
)
def test_the_cache_knows_of_an_object_before_the_queue_asks_whom_it_helps(obj):
    world = World(Looks).with_node("n")
    WORLDS[:] = [world]
    world.attempt(make_pod("waiting"))
    SEEN.clear()

    world.scheduler.added(obj)

    assert SEEN
    assert all(SEEN)


def test_the_order_in_which_objects_come_changes_no_decision():
    objects = [
        make_node("n2"),
        volume_world.make_class("wait"),
        volume_world.make_volume("v", node="n2"),
        volume_world.make_claim("c"),
        make_pod("p", namespace="ns", cpu=1, claims=["c"]),
    ]
    placed = set()
    for order in itertools.permutations(objects):
        engine = Engine(make_node("n1"))
        for obj in order:
            engine.handlers.added(obj)
            engine.scheduler.schedule_one()
        engine.clock.advance(60)
        engine.scheduler.queue.flush_backoff_completed()
        while engine.scheduler.schedule_one():
            pass
        placed.add(engine.placements().get("ns/p"))
        engine.scheduler.validate()

    assert placed == {"n2"}
