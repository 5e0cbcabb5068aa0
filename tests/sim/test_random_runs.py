"""Whatever happens in a cluster, nothing is lost, nothing is placed twice, and nothing stays held.

A life is drawn from a seed: nodes, pods of many kinds, claims and budgets, and what happens to them
while the scheduler works. It runs until nothing can change any more; then the books must add up.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.config import load_config
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status, unschedulable, wait
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.journal import EVERYTHING
from mooring.sim.api import RUN_SECONDS
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.summary import RunSummary
from mooring.sim.volume_controller import PROVISION_FAILS, PROVISION_SECONDS
from tests.engine import registry_with
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_affinity_term,
    make_node,
    make_pdb,
    make_pod,
    make_pod_affinity,
    make_spread,
)
from tests.sim.books import assert_at_rest, assert_no_volume_is_held, validate
from tests.volume_world import make_claim, make_class, make_volume, with_annotations

pytestmark = pytest.mark.long

#: As many lives as other properties have examples; a quarter of them are lived twice.
EXAMPLES = int(os.environ.get("MOORING_EXAMPLES", "100"))

APPS = ("web", "db", "job")
GPU = "example.com/gpu"


class MayHold:
    """A Permit that holds some pods back for a while: some are let go in time, some are not.

    It waits for a pod once: pods that wait in vain again and again would keep each other trying.
    """

    name = "MayHold"

    def __init__(self, args: object, handle) -> None:
        self._handle = handle
        self._waited: set[str] = set()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | tuple[Status, float]:
        match pod.labels.get("permit"):
            case "refused":
                return unschedulable("not here")
            case "waits" if pod.uid in self._waited:
                return unschedulable("waited in vain")
            case "waits":
                self._waited.add(pod.uid)
                return wait(), 20.0
            case "let-go":
                self._handle.clock.call_later(5.0, lambda: self._let_go(pod.uid))
                return wait(), 20.0
        return Status()

    def _let_go(self, uid: str) -> None:
        waiting = self._handle.waiting_pod(uid)
        if waiting is not None:
            waiting.allow(self.name)


CONFIG = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "MayHold"}]}},
                "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 30}}],
            }
        ],
    }
)


class Life:
    """A random cluster and its random fate; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sim = Simulation(
            SimOptions(
                config=CONFIG,
                registry=registry_with({"MayHold": MayHold}),
                seed=seed if self.chance(0.5) else None,
                keeps=EVERYTHING,
            )
        )
        self.api = self.sim.api
        self._count = 0
        self._nodes = [self._node() for _ in range(self.random.randint(1, 4))]
        self._claims: list[str] = []
        self.sim.load([*self._nodes, *self._storage(), *self._budgets()])
        self.sim.load(self._pod() for _ in range(self.random.randint(1, 8)))
        for _ in range(self.random.randint(0, 12)):
            # Some at the same moment as what the scheduler does: its timers go off at whole seconds.
            when_s = self.random.choice([0.0, 1.0, 2.5, 5.0, 7.0, 20.0, 31.0, 40.5, 60.0])
            self.api.later(when_s, self.random.choice(self._fates()))

    def run(self) -> None:
        """To the end, with a look at the books after each moment at which something is done."""
        for until_s in (0.5, 6.0, 33.0):
            self.sim.run(until_s=until_s, stops_when=partial(validate, self.sim))
            assert_nothing_is_used_twice(self.sim)
        self.sim.run(stops_when=partial(validate, self.sim))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # What there is

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def _node(self) -> Node:
        extra = {GPU: 1} if self.chance(0.3) else {}
        return make_node(
            self._name("node"),
            cpu=self.random.choice([1, 2, 4]),
            memory=self.random.choice(["1Gi", "4Gi"]),
            pods=self.random.choice([2, 3, 110]),
            zone=self.random.choice(["a", "b"]),
            taints=["dedicated:NoSchedule"] if self.chance(0.1) else [],
            **extra,
        )

    def _storage(self) -> list:
        slow = {PROVISION_SECONDS: self.random.choice(["0", "3", "50"])}
        made = with_annotations(make_class("made", provisioner="example.com/disk"), slow)
        broken = with_annotations(made, {**slow, PROVISION_FAILS: "yes"})
        # Repaired in the end: pods that fail for ever would keep each other trying.
        self.api.later(70.0, lambda: self.api.update(made))
        volumes = [
            make_volume(
                self._name("volume"),
                node=self.random.choice(self._nodes).name if self.chance(0.7) else None,
                storage_class=self.random.choice(["wait", "wait", "now"]),
                modes=("ReadWriteOnce", "ReadWriteOncePod"),
            )
            for _ in range(self.random.randint(0, 3))
        ]
        claims = [self._claim() for _ in range(self.random.randint(0, 4))]
        known = [make_class("wait"), make_class("now", mode="Immediate")]
        return [*known, broken if self.chance(0.2) else made, *volumes, *claims]

    def _claim(self) -> PersistentVolumeClaim:
        name = self._name("claim")
        self._claims.append(name)
        return make_claim(
            name,
            storage_class=self.random.choice(["wait", "made", "now"]),
            modes=[self.random.choice(["ReadWriteOnce", "ReadWriteOncePod"])],
            namespace="default",
        )

    def _budgets(self) -> list:
        return [
            make_pdb(app, labels={"app": app}, allowed=self.random.randint(0, 1))
            for app in APPS
            if self.chance(0.3)
        ]

    def _pod(self) -> Pod:
        app = self.random.choice(APPS)
        labels = {"app": app}
        if self.chance(0.3):
            labels["permit"] = self.random.choice(["refused", "waits", "let-go"])
        annotations = {}
        if self.chance(0.5):
            annotations[RUN_SECONDS] = self.random.choice(["0", "1", "10", "45"])
        affinity = None
        if self.chance(0.3):
            term = make_affinity_term({"app": app}, self.random.choice([HOSTNAME, ZONE]))
            affinity = (
                make_pod_affinity(anti=[term]) if self.chance(0.6) else make_pod_affinity(term)
            )
        spread = []
        if self.chance(0.3):
            key = self.random.choice([HOSTNAME, ZONE])
            spread = [make_spread(key, hard=self.chance(0.7), labels={"app": app})]
        claims = []
        if self._claims and self.chance(0.4):
            claims = self.random.sample(self._claims, self.random.randint(1, len(self._claims[:2])))
        return make_pod(
            self._name("pod"),
            labels=labels,
            annotations=annotations,
            cpu=self.random.choice([None, "100m", "500m", 1, 2]),
            memory=self.random.choice([None, "128Mi", "1Gi"]),
            requests={GPU: 1} if self.chance(0.15) else {},
            ports=[80] if self.chance(0.1) else [],
            priority=self.random.choice([0, 0, 10, 100]),
            preemption_policy="Never" if self.chance(0.1) else None,
            grace_period_s=self.random.choice([0, 1, 30]),
            affinity=affinity,
            spread=spread,
            claims=claims,
        )

    # What happens

    def _fates(self) -> list[Callable[[], None]]:
        return [
            lambda: self._create(self._pod()),
            lambda: self._create(self._pod()),
            lambda: self._create(self._node()),
            self._delete_pod,
            self._delete_pod,
            self._recreate_pod,
            self._delete_node,
            self._return_node,
            self._cordon_node,
            self._delete_claim,
        ]

    def _create(self, obj: Pod | Node) -> None:
        if isinstance(obj, Node):
            self._nodes.append(obj)
        self.api.create(obj)

    def _any(self, kind: type):
        found = list(self.api.all(kind))
        return self.random.choice(found) if found else None

    def _delete_pod(self) -> None:
        pod = self._any(Pod)
        if pod is not None:
            self.api.delete(pod)

    def _recreate_pod(self) -> None:
        pod = self._any(Pod)
        if pod is not None:
            self.api.delete(pod)
            again = self._pod()
            metadata = replace(again.metadata, name=pod.name, uid=self._name("uid"))
            self.api.create(replace(again, metadata=metadata))

    def _delete_node(self) -> None:
        """Its pods stay, as they do until the garbage collector comes."""
        node = self._any(Node)
        if node is not None:
            self.api.delete(node)

    def _return_node(self) -> None:
        node = self.random.choice(self._nodes)
        if self.api.get(Node, node.name) is None:
            self.api.create(node)

    def _cordon_node(self) -> None:
        node = self._any(Node)
        if node is not None:
            spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
            self.api.update(replace(node, spec=spec))

    def _delete_claim(self) -> None:
        claim = self._any(PersistentVolumeClaim)
        if claim is not None:
            self.api.delete(claim)


def assert_nothing_is_used_twice(sim: Simulation) -> None:
    """By what the API shows, and nothing else."""
    on_nodes = [pod for pod in sim.api.all(Pod) if pod.node_name and not pod.finished]
    for node in sim.api.all(Node):
        mine = [pod for pod in on_nodes if pod.node_name == node.name]
        used = Counter({"pods": len(mine)})
        for pod in mine:
            for container in pod.spec.containers:
                for name, amount in container.resources.requests.items():
                    used[name] += amount.milli_value if name == "cpu" else amount.value
        for name, amount in used.items():
            offered = node.status.allocatable.get(name)
            limit = (
                0 if offered is None else offered.milli_value if name == "cpu" else offered.value
            )
            assert amount <= limit, (node.name, name)
        ports = Counter(port for pod in mine for port in pod.host_ports)
        assert not ports or max(ports.values()) == 1, node.name
    exclusive = {
        claim.key
        for claim in sim.api.all(PersistentVolumeClaim)
        if claim.spec.access_modes == ["ReadWriteOncePod"]
    }
    # A pod whose node is gone holds nothing: the reference looks no further than its nodes either.
    names = {node.name for node in sim.api.all(Node)}
    users = Counter(
        f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        for pod in on_nodes
        if pod.node_name in names
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )
    assert all(users[key] <= 1 for key in exclusive)
    bound = Counter(claim.spec.volume_name for claim in sim.api.all(PersistentVolumeClaim))
    bound.pop("", None)
    assert not bound or max(bound.values()) == 1
    owners = Counter(
        volume.spec.claim_ref.uid
        for volume in sim.api.all(PersistentVolume)
        if volume.spec.claim_ref is not None
    )
    assert not owners or max(owners.values()) == 1


def assert_summary_follows_from_the_journal(sim: Simulation) -> None:
    """The summary is a view: it can be made from the journal at any time."""
    again = RunSummary()
    for fact in sim.journal.facts:
        again.add(fact)
    assert again == sim.summary


def lived(seed: int) -> list:
    """Everything that happened in one life, checked at its end."""
    life = Life(seed)
    with life.sim as sim:
        life.run()
        assert_nothing_is_used_twice(sim)
        assert_no_volume_is_held(sim)
        assert_at_rest(sim)
        assert_summary_follows_from_the_journal(sim)
        return [
            *sim.journal.facts,
            *(
                (at_s, event.reason, event.regarding.key, event.note)
                for at_s, event in sim.api.events
            ),
            *sorted((pod.key, pod.uid, pod.node_name) for pod in sim.api.all(Pod)),
        ]


@given(seed=st.integers(0, 2**32))
def test_after_any_life_nothing_is_lost_double_booked_or_held(seed):
    lived(seed)


@settings(max_examples=max(1, EXAMPLES // 4))
@given(seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_life(seed):
    assert lived(seed) == lived(seed)
