"""The claim controller of a simulated cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.objects.devices import CLAIM_FINALIZER, ResourceClaim
from mooring.objects.pod import Pod
from mooring.sim.api import SimApi
from mooring.sim.claim_controller import ClaimController
from mooring.sim.clock import VirtualClock, VirtualLoop
from tests.device_world import NS, claim, pod_with, template

TEMPLATE_POD = pod_with(templates={"gpu": ""}, uid="u-pod")


class World:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.api = SimApi(self.loop, VirtualClock(self.loop, 1_767_225_600.0))
        self.api.watch(ClaimController(self.api))

    def create(self, *objects) -> None:
        for obj in objects:
            self.api.create(obj)
        self.loop.run_forever()

    def claims(self) -> list[ResourceClaim]:
        return list(self.api.all(ResourceClaim))

    def pod(self) -> Pod:
        return next(self.api.all(Pod))

    def update(self, obj) -> None:
        self.api.update(obj)
        self.loop.run_forever()

    def delete(self, obj) -> None:
        self.api.delete(obj)
        self.loop.run_forever()


@pytest.fixture
def world():
    world = World()
    yield world
    world.loop.close()


def used_by(world: World, pod: Pod) -> ResourceClaim:
    """The pod's claim, as a scheduler leaves it."""
    (made,) = world.claims()
    held = claim("any", holds=["x"], reserved_for=[pod], finalizers=[CLAIM_FINALIZER])
    done = replace(
        made,
        metadata=replace(made.metadata, finalizers=[CLAIM_FINALIZER]),
        status=held.status,
    )
    world.update(done)
    return done


def test_a_pod_gets_a_claim_from_its_template(world):
    world.create(template(), TEMPLATE_POD)

    (made,) = world.claims()
    assert made.name.startswith("pod-gpu-")
    assert made.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    owner = made.metadata.controller
    assert (owner.kind, owner.name, owner.uid) == ("Pod", "pod", "u-pod")
    assert made.spec == template().spec.spec
    (status,) = world.pod().status.resource_claim_statuses
    assert (status.name, status.resource_claim_name) == ("gpu", made.name)


def test_a_pod_waits_for_its_template(world):
    world.create(TEMPLATE_POD)
    assert world.claims() == []

    world.create(template())

    assert len(world.claims()) == 1


def test_no_second_claim_is_created(world):
    world.create(template(), TEMPLATE_POD)

    world.update(world.pod().with_status(phase="Running"))

    assert len(world.claims()) == 1


def test_a_claim_that_was_created_for_a_pod_goes_with_it(world):
    world.create(template(), TEMPLATE_POD)
    used_by(world, TEMPLATE_POD)

    world.delete(world.pod())

    assert world.claims() == []


def test_a_finished_pod_gives_its_claim_back(world):
    world.create(template(), TEMPLATE_POD)
    used_by(world, TEMPLATE_POD)

    world.update(world.pod().with_status(phase="Succeeded"))

    assert world.claims() == []


def test_a_claim_of_its_own_is_deallocated_when_its_last_user_goes(world):
    one, two = (pod_with("c", name=name) for name in ("one", "two"))
    shared = claim("c", holds=["x"], reserved_for=[one, two], finalizers=[CLAIM_FINALIZER])
    world.create(shared, one, two)

    world.delete(one)
    (left,) = world.claims()
    assert [user.name for user in left.status.reserved_for] == ["two"]
    assert left.status.allocation is not None

    world.delete(two)
    (left,) = world.claims()
    assert left.status.allocation is None
    assert left.status.reserved_for == []
    assert left.metadata.finalizers == []


def test_a_deleted_claim_stays_until_nobody_uses_it(world):
    user = pod_with("c", name="one")
    held = claim("c", holds=["x"], reserved_for=[user], finalizers=[CLAIM_FINALIZER])
    world.create(held, user)

    world.delete(held)
    assert [each.terminating for each in world.claims()] == [True]

    world.delete(user)
    assert world.claims() == []


def test_a_pod_that_came_without_a_scheduler_reserves_its_allocated_claim(world):
    world.create(claim("c", holds=["x"]), pod_with("c", name="static", node="n1"))

    (held,) = world.claims()
    assert [user.name for user in held.status.reserved_for] == ["static"]


def test_long_names_are_cut_in_proportion(world):
    pod = replace(TEMPLATE_POD, metadata=replace(TEMPLATE_POD.metadata, name="p" * 100))

    world.create(template(), pod)

    (made,) = world.claims()
    assert len(made.name) <= 63
    assert made.namespace == NS
