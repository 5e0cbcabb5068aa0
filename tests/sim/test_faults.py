"""Things go wrong while a pod waits or is being bound: it ends where it must, and nothing stays held.

Every test ends with `at_rest`: no assumption, reservation, nomination or wait is left behind, and the
scheduler's books say what the API says.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from mooring.config import load_config
from mooring.errors import ApiError, Conflict, NotFound
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status, wait
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.sim.api import SimApi
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.volume_controller import PROVISION_FAILS, PROVISION_SECONDS
from tests.engine import registry_with
from tests.makers import make_node, make_pod
from tests.sim.books import assert_at_rest, validate
from tests.volume_world import (
    make_claim,
    make_class,
    make_volume,
    pod_with,
    with_annotations,
)

#: How long `Holds` makes pods wait, and PreBind for volumes.
HOLDS_S = 60
BIND_TIMEOUT_S = 30

HELD = {"held": "yes"}
DELETED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class Holds:
    """A Permit that holds pods labelled `held` back until somebody lets them go."""

    name = "Holds"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float] | None:
        return (wait(), float(HOLDS_S)) if "held" in pod.labels else None


class Writer:
    """Passes writes on to the API, except as it is told."""

    def __init__(self, api: SimApi) -> None:
        self._api = api
        #: By the name of the write: what to do first, call by call; an error is raised.
        self.before: dict[str, list[Exception | Callable[[], object]]] = defaultdict(list)
        #: Errors to answer with although the write was carried out.
        self.after: dict[str, list[Exception]] = defaultdict(list)
        #: How long such an answer takes; the watch shows the write meanwhile.
        self.after_s = 0.0

    async def _write(self, name: str, *args: Any) -> Any:
        if self.before[name]:
            first = self.before[name].pop(0)
            if isinstance(first, Exception):
                raise first
            first()
        result = await getattr(self._api, name)(*args)
        if self.after[name]:
            await asyncio.sleep(self.after_s)
            raise self.after[name].pop(0)
        return result

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self._write("bind", pod, node_name)

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self._write("patch_pod_status", pod, patch)

    async def delete_pod(self, pod: Pod) -> None:
        await self._write("delete_pod", pod)

    async def update_object(self, obj: KubeObject) -> Any:
        return await self._write("update_object", obj)

    def record_event(self, event: Event) -> None:
        self._api.record_event(event)


class World:
    """A simulation whose writes can be made to fail, with a Permit that holds pods back."""

    def __init__(self, *objects: KubeObject) -> None:
        timeout = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": BIND_TIMEOUT_S}}
        config = load_config(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "plugins": {"multiPoint": {"enabled": [{"name": "Holds"}]}},
                        "pluginConfig": [timeout],
                    }
                ],
            }
        )
        registry = registry_with({"Holds": Holds})
        self.sim = Simulation(SimOptions(config=config, registry=registry, writer=self._between))
        self.api = self.sim.api
        self.scheduler = self.sim.scheduler
        self.sim.load(objects)

    def _between(self, api: SimApi) -> Writer:
        self.writer = Writer(api)
        return self.writer

    def run(self, until_s: float | None = None) -> None:
        self.sim.run(until_s=until_s, stops_when=partial(validate, self.sim))

    def at(self, when_s: float, action: Callable[[], object]) -> None:
        self.api.later(when_s - self.sim.clock.elapsed_s, action)

    def pod(self, name: str = "p") -> Pod:
        found = next((pod for pod in self.api.all(Pod) if pod.name == name), None)
        assert found is not None
        return found

    def claim(self) -> PersistentVolumeClaim:
        return next(self.api.all(PersistentVolumeClaim))

    def delete(self, name: str = "p") -> None:
        self.api.delete(self.pod(name))

    def let_go(self) -> None:
        for waiting in self.scheduler.waiting_pods:
            waiting.allow("Holds")

    def failures(self, name: str = "p") -> list[str]:
        return [
            event.note
            for _, event in self.api.events
            if event.reason == "FailedScheduling" and event.regarding.name == name
        ]

    def requested_cpu(self, node: str) -> int:
        info = self.scheduler.cluster.infos.get(node)
        return info.requested.get("cpu", 0) if info is not None else 0

    @property
    def at_rest(self) -> bool:
        assert_at_rest(self.sim)
        return True


@pytest.fixture
def world_of():
    """`world_of(*objects)`, closed when the test ends."""
    worlds = []

    def make(*objects: KubeObject) -> World:
        worlds.append(World(*objects))
        return worlds[-1]

    yield make
    for world in worlds:
        world.sim.close()


def provisioned(seconds: float = 0, *, fails: bool = False) -> StorageClass:
    """A class whose volumes are made when a pod comes, after a while or never."""
    notes = {PROVISION_SECONDS: str(seconds), **({PROVISION_FAILS: "yes"} if fails else {})}
    return with_annotations(make_class("made", provisioner="example.com/disk"), notes)


def cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


CLAIM = make_claim("c", storage_class="made")
POD = pod_with("c", cpu=1)


# Volumes that do not come


def test_a_pod_whose_volume_takes_longer_than_the_timeout_is_undone_and_retried(world_of):
    world = world_of(make_node("n"), provisioned(45), CLAIM, POD)

    world.run(until_s=BIND_TIMEOUT_S + 0.5)

    assert world.failures() == [
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    ]
    assert world.pod().condition("PodScheduled").reason == "SchedulerError"
    assert world.pod().nominated_node_name == ""
    assert world.scheduler.queue.counts().backoff == 1
    assert world.requested_cpu("n") == 0
    assert world.at_rest

    world.run()

    assert world.pod().node_name == "n"
    assert 45 <= world.sim.summary.placements[POD.uid].bound.at_s < 50
    assert world.at_rest


def test_a_pod_whose_volume_never_comes_is_tried_again_and_again_and_holds_nothing(world_of):
    world = world_of(make_node("n"), provisioned(10**9), CLAIM, POD)

    world.run(until_s=5 * BIND_TIMEOUT_S)
    world.delete()
    world.run(until_s=6 * BIND_TIMEOUT_S)

    assert len(world.failures()) >= 4
    assert world.requested_cpu("n") == 0
    assert world.at_rest


def test_a_volume_that_cannot_be_made_is_tried_again_on_the_same_node(world_of):
    world = world_of(make_node("n"), provisioned(5, fails=True), CLAIM, POD)
    world.at(8, lambda: world.api.update(provisioned(5)))

    world.run()

    assert world.failures()[0] == (
        'running PreBind plugin "VolumeBinding": binding volumes:'
        ' selectedNode annotation reset for PVC "c"'
    )
    assert world.pod().node_name == "n"
    assert world.claim().status.phase == "Bound"
    assert world.at_rest


def test_a_volume_that_cannot_be_made_is_tried_on_another_node_if_the_first_is_closed(world_of):
    nodes = [make_node("n1", cpu=8), make_node("n2")]
    world = world_of(*nodes, provisioned(5, fails=True), CLAIM, POD)

    world.at(4, lambda: world.api.update(cordoned(nodes[0])))
    world.at(4, lambda: world.api.update(provisioned(5)))

    world.run()

    assert len(world.failures()) == 1
    assert world.pod().node_name == "n2"
    assert world.requested_cpu("n1") == 0
    assert world.at_rest


def test_a_claim_deleted_while_its_volume_is_made_leaves_the_pod_unschedulable(world_of):
    world = world_of(make_node("n"), provisioned(10), CLAIM, POD)
    world.at(5, lambda: world.api.delete(world.claim()))

    world.run(until_s=20)

    assert world.failures() == [
        'running PreBind plugin "VolumeBinding": binding volumes:'
        ' failed to check provisioning pvc: persistentvolumeclaims "ns/c" not found',
        '0/1 nodes are available: persistentvolumeclaim "c" not found. not found',
    ]
    assert world.requested_cpu("n") == 0
    assert world.at_rest

    world.api.create(CLAIM)
    world.run()

    assert world.pod().node_name == "n"
    assert world.at_rest


def test_a_volume_whose_claim_is_reset_while_it_is_bound_has_the_pod_decided_again(world_of):
    world = world_of(make_node("n"), make_class(), make_volume("v"), make_claim("c"), POD)

    def reset() -> None:
        volume = world.api.get(PersistentVolume, "v")
        world.api.update(replace(volume, spec=replace(volume.spec, claim_ref=None)))

    world.at(0.5, reset)

    world.run()

    assert world.failures() == [
        'running PreBind plugin "VolumeBinding": binding volumes: ClaimRef got reset for pv "v"'
    ]
    assert world.pod().node_name == "n"
    assert world.at_rest


def test_a_volume_deleted_while_it_is_bound_leaves_the_pod_unschedulable(world_of):
    world = world_of(make_node("n"), make_class(), make_volume("v"), make_claim("c"), POD)
    world.at(0.5, lambda: world.api.delete(world.api.get(PersistentVolume, "v")))

    world.run()

    first, second = world.failures()
    assert first.endswith('failed to check binding: persistentvolumes "v" not found')
    assert second == '0/1 nodes are available: persistentvolume "v" not found. not found'
    assert world.scheduler.queue.counts().unschedulable == 1
    assert world.at_rest


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(make_claim("c"), id="the volume is set aside"),
        pytest.param(CLAIM, id="the claim's node is chosen"),
    ],
)
@pytest.mark.parametrize("error", [Conflict("modified"), ApiError("no answer")])
def test_a_volume_decision_that_cannot_be_written_is_taken_back_and_taken_again(
    world_of, claim, error
):
    objects = (make_class(), provisioned(), make_volume("v"))
    world = world_of(make_node("n"), *objects, claim, POD)
    world.writer.before["update_object"] = [error]

    world.run(until_s=0.5)

    assert world.failures() == [f'running PreBind plugin "VolumeBinding": {error}']
    assert world.at_rest

    world.run()

    assert world.pod().node_name == "n"
    assert world.at_rest


# A node that goes away


def test_a_node_deleted_while_a_pod_waits_on_permit_is_left_when_the_wait_ends_in_vain(world_of):
    world = world_of(make_node("n1", cpu=8), make_node("n2"), make_pod(cpu=1, labels=HELD))
    world.at(5, lambda: world.api.delete(world.api.get(Node, "n1")))
    world.at(HOLDS_S + 10, world.let_go)

    world.run()

    assert world.failures() == [
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Holds."
    ]
    assert world.pod().node_name == "n2"
    assert "n1" not in world.scheduler.cluster.infos
    assert world.at_rest


def test_a_pod_let_go_to_a_deleted_node_is_bound_there_and_frees_it_when_collected(world_of):
    """The API server binds to any name; the pod garbage collector removes the pod later."""
    world = world_of(make_node("n1"), make_pod(cpu=1, labels=HELD))
    world.at(5, lambda: world.api.delete(world.api.get(Node, "n1")))
    world.at(6, world.let_go)

    world.run()

    assert world.pod().node_name == "n1"
    assert world.at_rest

    world.delete()
    world.run()

    assert world.scheduler.cluster.infos == {}
    assert world.at_rest


def test_a_node_deleted_while_a_volume_is_made_for_it_is_left_by_the_pod(world_of):
    """The claim keeps its selected node, so the pod waits until provisioning gives that up."""
    nodes = [make_node("n1", cpu=8), make_node("n2")]
    world = world_of(*nodes, provisioned(10, fails=True), CLAIM, POD)
    world.at(5, lambda: world.api.delete(world.api.get(Node, "n1")))
    world.at(6, lambda: world.api.update(provisioned(10)))

    world.run()

    assert world.failures()[0] == (
        'running PreBind plugin "VolumeBinding": binding volumes:'
        ' failed to get node "n1": node "n1" not found'
    )
    assert "didn't find available persistent volumes to bind" in world.failures()[1]
    assert world.pod().node_name == "n2"
    assert world.at_rest


# A pod that goes away


def test_a_pod_deleted_before_its_turn_is_not_tried(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.delete()

    world.run()

    assert world.api.events == []
    assert world.at_rest


def test_a_pod_deleted_while_it_fits_nowhere_is_forgotten(world_of):
    world = world_of(make_node("n", cpu=1), make_pod(cpu=2))
    world.run()
    assert world.scheduler.queue.counts().unschedulable == 1

    world.delete()
    world.run()

    assert sum(world.scheduler.queue.counts()) == 0
    assert world.at_rest


def test_a_pod_deleted_in_backoff_is_forgotten(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.writer.before["bind"] = [ApiError("no answer")]
    world.run(until_s=0.5)
    assert world.scheduler.queue.counts().backoff == 1

    world.delete()
    world.run()

    assert sum(world.scheduler.queue.counts()) == 0
    assert world.at_rest


def test_a_pod_deleted_while_it_waits_on_permit_waits_no_longer(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1, labels=HELD))
    world.at(5, world.delete)

    world.run()

    assert world.sim.clock.elapsed_s < HOLDS_S
    assert world.failures() == ["0/1 nodes are available: 1 removed."]
    assert world.requested_cpu("n") == 0
    assert world.at_rest


def test_a_pod_that_begins_to_terminate_while_it_waits_on_permit_waits_no_longer(world_of):
    """It has a finalizer: it is in the cluster for a while, but nobody will place it any more."""
    world = world_of(make_node("n"), make_pod(cpu=1, labels=HELD))

    def terminate() -> None:
        pod = world.pod()
        metadata = replace(pod.metadata, deletion_timestamp=DELETED_AT)
        world.api.update(replace(pod, metadata=metadata))

    world.at(5, terminate)

    world.run(until_s=10)

    assert world.requested_cpu("n") == 0
    assert world.scheduler.queue.counts().unschedulable == 1
    assert world.at_rest

    world.delete()
    world.run()

    assert sum(world.scheduler.queue.counts()) == 0
    assert world.at_rest


def test_a_pod_deleted_in_pre_bind_frees_its_node_at_once_and_its_volume_soon(world_of):
    world = world_of(make_node("n"), provisioned(10), CLAIM, POD)
    world.at(5, world.delete)

    world.run(until_s=5.001)
    assert world.requested_cpu("n") == 0
    world.run()

    assert world.failures() == [
        'running PreBind plugin "VolumeBinding": binding volumes:'
        ' pod does not exist any more: pod "p" not found'
    ]
    assert world.at_rest


def test_a_pod_deleted_just_before_its_binding_is_written_is_not_bound(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.writer.before["bind"] = [world.delete]

    world.run()

    assert world.failures() == ['running Bind plugin "DefaultBinder": Pod default/p not found']
    assert world.requested_cpu("n") == 0
    assert world.at_rest


def test_a_pod_recreated_just_before_its_binding_is_written_is_placed_by_itself(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    another = make_pod(uid="another", cpu=2)
    world.writer.before["bind"] = [lambda: (world.delete(), world.api.create(another))]

    world.run()

    assert world.pod().uid == "another"
    assert world.pod().node_name == "n"
    assert world.requested_cpu("n") == 2000
    assert world.at_rest


def test_a_pod_deleted_after_its_binding_before_the_watch_shows_either_frees_its_node(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.writer.before["bind"] = [lambda: world.sim.loop.call_soon(world.delete)]

    world.run()

    assert world.failures() == []
    assert world.requested_cpu("n") == 0
    assert world.at_rest


def test_a_bound_pod_that_is_deleted_frees_its_node(world_of):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.at(5, world.delete)

    world.run()

    assert world.requested_cpu("n") == 0
    assert world.at_rest


# Writes that fail


@pytest.mark.parametrize(
    "error", [Conflict("someone wrote first"), NotFound("no such pod"), ApiError("no answer")]
)
def test_a_pod_whose_binding_fails_is_undone_and_bound_after_a_backoff(world_of, error):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.writer.before["bind"] = [error]

    world.run(until_s=0.5)

    assert world.failures() == [f'running Bind plugin "DefaultBinder": {error}']
    assert world.pod().condition("PodScheduled").reason == "SchedulerError"
    assert world.requested_cpu("n") == 0
    assert world.scheduler.queue.counts().backoff == 1
    assert world.at_rest

    world.run()

    assert world.pod().node_name == "n"
    assert world.at_rest


def test_a_pod_that_somebody_else_bound_first_stays_where_it_is(world_of):
    world = world_of(make_node("n1", cpu=8), make_node("n2"), make_pod(cpu=1))
    bound = make_pod(cpu=1, node="n2")
    world.writer.before["bind"] = [lambda: world.api.update(bound)]

    world.run()

    assert len(world.failures()) == 1
    assert world.pod().node_name == "n2"
    assert world.requested_cpu("n1") == 0
    assert world.at_rest


@pytest.mark.parametrize("after_s", [0, 1], ids=["before the watch", "after the watch"])
def test_a_pod_that_was_bound_although_the_answer_is_an_error_stays_bound(world_of, after_s):
    world = world_of(make_node("n"), make_pod(cpu=1))
    world.writer.after_s = after_s
    world.writer.after["bind"] = [ApiError("no answer")]

    world.run()

    assert world.pod().node_name == "n"
    assert world.requested_cpu("n") == 1000
    assert sum(world.scheduler.queue.counts()) == 0
    assert world.at_rest


def test_a_pod_whose_failure_cannot_be_written_is_placed_when_there_is_room(world_of):
    world = world_of(make_node("n1", cpu=1), make_pod(cpu=2))
    world.writer.before["patch_pod_status"] = [ApiError("no answer")]
    world.run()
    assert world.pod().condition("PodScheduled") is None
    assert world.at_rest

    world.api.create(make_node("n2", cpu=2))
    world.run()

    assert world.pod().node_name == "n2"
    assert world.at_rest


def test_a_pod_whose_expected_node_cannot_be_written_is_bound_all_the_same(world_of):
    world = world_of(make_node("n"), provisioned(5), CLAIM, POD)
    world.writer.before["patch_pod_status"] = [ApiError("no answer")]

    world.run()

    assert world.pod().node_name == "n"
    assert world.failures() == []
    assert world.at_rest


# A more important pod comes along


def test_a_pod_preempted_while_it_waits_on_permit_returns_to_the_queue(world_of):
    world = world_of(make_node("n", cpu=1), make_pod(cpu=1, labels=HELD))
    world.at(5, lambda: world.api.create(make_pod("high", cpu=1, priority=10)))

    world.run()

    assert world.pod("high").node_name == "n"
    assert world.pod().node_name == ""
    assert world.failures()[0] == "waiting on permit for pod: preempted"
    assert world.at_rest


def test_a_pod_preempted_in_pre_bind_returns_to_the_queue(world_of):
    world = world_of(make_node("n", cpu=1), provisioned(20), CLAIM, POD)
    world.at(5, lambda: world.api.create(make_pod("high", cpu=1, priority=10)))

    world.run()

    assert world.pod("high").node_name == "n"
    assert world.pod().node_name == ""
    cause = 'running PreBind plugin "VolumeBinding": preempted by DefaultPreemption'
    assert world.failures()[0] == cause
    assert world.at_rest


def test_a_nomination_is_taken_back_when_its_pod_is_deleted(world_of):
    victim = make_pod("low", cpu=1, node="n", grace_period_s=60)
    world = world_of(make_node("n", cpu=1), victim, make_pod("high", cpu=1, priority=10))
    world.run(until_s=5)
    assert world.pod("high").nominated_node_name == "n"

    world.delete("high")
    world.api.create(make_pod("next", cpu=1))
    world.run()

    assert not world.scheduler.nominator.has_any
    assert world.pod("next").node_name == "n"
    assert world.at_rest
