"""What is kept of the volumes on every node is what looking at each node finds, whatever happens."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.status import SUCCESS
from mooring.objects.storage import AWSElasticBlockStore, Volume
from mooring.plugins.node_volume_limits import TOO_MANY, NodeVolumeLimits
from tests.makers import make_node
from tests.plugins.agreement import assert_filters_agree
from tests.volume_world import (
    World,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_ephemeral,
    make_volume,
    pod_with,
)

NODES = ("n0", "n1", "n2")
CLAIMS = tuple(f"c{i}" for i in range(6))
VOLUMES = tuple(f"v{i}" for i in range(4))
DRIVERS = ("drv", "other", "ebs.csi.aws.com")
EBS = Volume(name="ebs", aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol"))


class Story:
    """Nodes, pods and all that has to do with volumes come, change and go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(
            *(make_node(name) for name in NODES),
            *(make_csi_node(name, dict.fromkeys(DRIVERS, 1)) for name in NODES),
            *(make_claim(name, volume=self.random.choice(VOLUMES), bound=True) for name in CLAIMS),
            *(make_volume(name, driver="drv", handle=f"h-{name}") for name in VOLUMES),
            make_class("made", provisioner="drv"),
        )
        self.plugin = NodeVolumeLimits(None, self.world)
        self.number = 0

    def step(self) -> None:
        pick = self.random.choice
        act = pick((self._place, self._place, self._leave, self._node, self._listed, self._drop))
        act()

    def check(self) -> None:
        self.world.cluster.validate()
        pod = self._pod("asks")
        state, status = self.world.pre_filter(self.plugin, pod)
        if status == SUCCESS:
            assert_filters_agree(self.plugin, state, pod, self.world.cluster.snapshot())

    def _pod(self, name: str, node: str | None = None):
        claims = self.random.sample(CLAIMS, self.random.randrange(3))
        present = [c for c in claims if node or self._has_claim(c)]
        volumes = [EBS] if self.random.random() < 0.3 else []
        return pod_with(*present, name=name, volumes=volumes, node=node)

    def _has_claim(self, name: str) -> bool:
        return any(c.name == name for c in self._claims())

    def _claims(self):
        return [o for o in self._all() if type(o).__name__ == "PersistentVolumeClaim"]

    def _all(self):
        by_kind = self.world.cluster.listers._by_kind
        return [obj for known in by_kind.values() for obj in known.values()]

    def _place(self) -> None:
        self.number += 1
        self.world.show(self._pod(f"p{self.number}", self.random.choice((*NODES, "unseen"))))

    def _leave(self) -> None:
        pods = list(self.world.cluster.pods.values())
        if pods:
            self.world.cluster.remove_pod(self.random.choice(pods))

    def _node(self) -> None:
        cluster, name = self.world.cluster, self.random.choice(NODES)
        info = cluster.infos.get(name)
        if info is not None and info.node is not None and self.random.random() < 0.5:
            cluster.remove_node(name)
        else:
            self.world.show(make_node(name))

    def _listed(self) -> None:
        pick = self.random.choice
        name = pick(CLAIMS)
        volume = pick(VOLUMES)
        obj = pick(
            (
                make_claim(name, volume=volume, bound=True),
                make_claim(name, storage_class="made"),
                make_volume(volume, driver=pick(DRIVERS), handle=f"h-{volume}-{pick('ab')}"),
                make_csi_node(pick(NODES), {name: pick((0, 1, 2, None)) for name in DRIVERS}),
                make_attachment(f"a{pick('xyz')}", pick(NODES), volume, attacher=pick(DRIVERS)),
                make_class("made", provisioner=pick(DRIVERS)),
            )
        )
        self.world.show(obj)

    def _drop(self) -> None:
        listed = self._all()
        if listed:
            self.world.cluster.listers.drop(self.random.choice(listed))


@given(seed=st.integers(0, 2**32))
def test_rows_say_what_each_node_says_after_any_history(seed):
    story = Story(seed)

    for _ in range(30):
        story.step()
        story.check()


def limited(*more):
    """A node that takes one volume of the driver."""
    world = World(make_node("n1"), make_csi_node("n1", {"drv": 1}), *more)
    world.show(make_claim("c1", volume="v1", bound=True), make_volume("v1", driver="drv"))
    return world


def ask(world, plugin, pod):
    state, status = world.pre_filter(plugin, pod)
    assert status == SUCCESS
    snapshot = world.cluster.snapshot()
    return plugin.filter_rows(state, pod, snapshot.columns, snapshot.rows)


def test_a_claim_that_is_bound_after_its_pod_was_counted_counts_from_then_on():
    world = limited(pod_with("late", name="there", node="n1"))
    plugin = NodeVolumeLimits(None, world)
    pod = pod_with("c1")
    assert ask(world, plugin, pod).status(0) == SUCCESS

    world.show(make_volume("v2", driver="drv", handle="h2"))
    world.show(make_claim("late", volume="v2", bound=True))

    assert ask(world, plugin, pod).status(0) == TOO_MANY


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(pod_with("missing"), id="its claim is not there"),
        pytest.param(pod_with(volumes=[make_ephemeral("e")]), id="so is that of its own volume"),
    ],
)
def test_what_goes_wrong_is_left_to_the_form_that_asks_node_by_node(pod):
    world = limited()

    assert ask(world, NodeVolumeLimits(None, world), pod) is None
