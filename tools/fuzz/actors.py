"""Everybody else in the cluster: users, nodes that come and go, other schedulers, a descheduler.

They read and write the store directly: what goes wrong on their way to the API server is not ours to test.
Kubelets are those of the simulation, and so are the controllers of volumes and claims.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from mooring.errors import ApiError
from mooring.objects.devices import (
    DeviceClaim,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourceSlice,
)
from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodResourceClaim
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.sim.api import RUN_SECONDS
from mooring.sim.volume_controller import PROVISION_SECONDS
from tests import makers, volume_world
from tests.devices import device_makers
from tools.fuzz.store import Store
from tools.fuzz.swarm import Swarm

_APPS = ("web", "db", "job")
#: The pods of another scheduler.
OTHERS = "somebody-else"


class Actors:
    """Makes the first objects, and changes them at random."""

    def __init__(self, swarm: Swarm, store: Store) -> None:
        self._swarm = swarm
        self._store = store
        self._rng: random.Random = swarm.stream("actors")
        self._count = 0
        self._claims: list[str] = []
        self._node_names = [f"node-{n}" for n in range(self._rng.randint(1, 5))]

    def begin(self) -> None:
        for name in self._node_names:
            self._create(self._node(name))
        if self._swarm.has("volumes"):
            self._make_storage()
        if self._swarm.has("devices"):
            self._make_devices()
        if self._swarm.has("budgets"):
            for app in _APPS[:2]:
                allowed = self._rng.randint(0, 1)
                self._create(makers.make_pdb(app, labels={"app": app}, allowed=allowed))
        for _ in range(self._rng.randint(1, 10)):
            self._create_pods()

    def act(self) -> None:
        """Something happens."""
        self._rng.choice(self._choices())()

    def _choices(self) -> list[Callable[[], None]]:
        has = self._swarm.has
        choices: list[Callable[[], None]] = [self._create_pods] * 4 + [self._delete_pod] * 2
        if has("recreate pods"):
            choices += [self._recreate_pod] * 3
        if has("node churn"):
            choices += [self._delete_node, self._return_node, self._return_node, self._cordon]
            choices += [self._recreate_node]
        if has("node resize"):
            choices += [self._resize_node]
        if has("other scheduler"):
            choices += [self._bind_as_other] * 2
        if has("descheduler"):
            choices += [self._evict]
        if has("volumes"):
            choices += [self._delete_volume_claim]
        if has("gates"):
            choices += [self._open_gate] * 2
        if has("budgets"):
            choices += [self._change_budget]
        if has("devices"):
            choices += [self._change_slice]
        return choices

    # What is made

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def _uid(self) -> str:
        return self._name("uid")

    def _create(self, obj: KubeObject) -> None:
        # Another one may have the name.
        with suppress(ApiError):
            self._store.create(obj)

    def _node(self, name: str) -> Node:
        return makers.make_node(
            name,
            cpu=self._rng.choice([1, 2, 4]),
            memory=self._rng.choice(["1Gi", "4Gi"]),
            pods=self._rng.choice([2, 4, 110]),
            zone=self._rng.choice(["a", "b"]),
            uid=self._uid(),
        )

    def _create_pods(self) -> None:
        if self._swarm.has("gangs") and self._rng.random() < 0.3:
            self._create_gang()
        else:
            self._create(self._pod())

    def _create_gang(self) -> None:
        size = self._rng.randint(2, 4)
        group = makers.make_group(self._name("gang"), min_count=self._rng.randint(2, size))
        members = [self._pod(group=group.name) for _ in range(size)]
        objects: list[KubeObject] = [group, *members]
        if self._rng.random() < 0.3:
            self._rng.shuffle(objects)
        for obj in objects:
            self._create(obj)

    def _pod(self, name: str = "", group: str | None = None) -> Pod:
        rng, has = self._rng, self._swarm.has
        app = rng.choice(_APPS)
        affinity, spread = None, []
        if has("constraints") and rng.random() < 0.4:
            term = makers.make_affinity_term(
                {"app": app}, rng.choice([makers.HOSTNAME, makers.ZONE])
            )
            affinity = makers.make_pod_affinity(anti=[term])
            if rng.random() < 0.3:
                affinity = makers.make_pod_affinity(term)
        if has("constraints") and rng.random() < 0.3:
            spread = [makers.make_spread(makers.ZONE, hard=True, labels={"app": app})]
        claims: list[str] = []
        if self._claims and rng.random() < 0.4:
            claims = [rng.choice(self._claims)]
        entries = []
        if has("devices") and rng.random() < 0.4:
            template = {"resource_claim_template_name": "t"}
            shared = {"resource_claim_name": "shared"}
            entries = [PodResourceClaim(name="dev", **(template if rng.random() < 0.7 else shared))]
        permit = {}
        # Not members of gangs: a plugin that holds one of them up can tear its gang apart.
        if has("permit") and group is None and rng.random() < 0.4:
            permit["permit"] = rng.choice(["refused", "waits", "let-go", "let-go"])
        priority = rng.choice([0, 0, 10, 100]) if has("priorities") else 0
        if permit.get("permit") in ("refused", "waits"):
            # A pod that Permit refuses for ever would preempt for ever, here as in the reference.
            priority = 0
        annotations = {}
        if has("finishing pods") and rng.random() < 0.5:
            annotations[RUN_SECONDS] = rng.choice(["0", "1", "10", "45"])
        others = has("other scheduler") and rng.random() < 0.2 and group is None
        return makers.make_pod(
            name or self._name("pod"),
            namespace="ns" if entries or claims else "default",
            uid=self._uid(),
            labels={"app": app, **permit},
            annotations=annotations,
            cpu=rng.choice([None, "100m", "500m", 1, 2]),
            memory=rng.choice([None, "128Mi", "1Gi"]),
            ports=[80] if rng.random() < 0.1 else [],
            priority=priority,
            grace_period_s=rng.choice([0, 1, 30]),
            scheduler=OTHERS if others else "default-scheduler",
            affinity=affinity,
            spread=spread,
            claims=claims,
            resource_claims=entries,
            gates=["wait"] if has("gates") and rng.random() < 0.2 else [],
            group=group,
        )

    def _make_storage(self) -> None:
        rng = self._rng
        seconds = {PROVISION_SECONDS: rng.choice(["0", "3", "20"])}
        made = volume_world.make_class("made", provisioner="example.com/disk")
        self._create(volume_world.with_annotations(made, seconds))
        self._create(volume_world.make_class("wait"))
        self._create(volume_world.make_class("now", mode="Immediate"))
        for _ in range(rng.randint(0, 3)):
            self._create(
                volume_world.make_volume(
                    self._name("volume"),
                    node=rng.choice(self._node_names) if rng.random() < 0.7 else None,
                    storage_class=rng.choice(["wait", "wait", "now"]),
                    modes=("ReadWriteOnce", "ReadWriteOncePod"),
                )
            )
        for _ in range(rng.randint(1, 4)):
            self._create(self._volume_claim(self._name("claim")))

    def _volume_claim(self, name: str) -> PersistentVolumeClaim:
        if name not in self._claims:
            self._claims.append(name)
        claim = volume_world.make_claim(
            name,
            storage_class=self._rng.choice(["wait", "made", "now"]),
            modes=[self._rng.choice(["ReadWriteOnce", "ReadWriteOncePod"])],
        )
        return replace(claim, metadata=replace(claim.metadata, uid=self._uid()))

    def _make_devices(self) -> None:
        self._create(device_makers.make_class("gpu"))
        for name in self._node_names:
            self._create(self._slice(name))
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=[device_makers.make_request()]))
        self._create(
            ResourceClaimTemplate(
                metadata=ObjectMeta(name="t", namespace="ns", uid=self._uid()),
                spec=ResourceClaimTemplateSpec(spec=spec),
            )
        )
        shared = ObjectMeta(name="shared", namespace="ns", uid=self._uid())
        self._create(ResourceClaim(metadata=shared, spec=spec))

    def _slice(self, node: str) -> ResourceSlice:
        devices = [device_makers.make_device(f"d{n}") for n in range(self._rng.randint(1, 3))]
        return device_makers.make_slice(*devices, name=f"slice-{node}", pool=node, node=node)

    # What happens

    def _any(self, kind: type[KubeObject]) -> KubeObject | None:
        found = list(self._store.all(kind))
        return self._rng.choice(found) if found else None

    def _delete_pod(self) -> None:
        pod = self._any(Pod)
        if isinstance(pod, Pod):
            self._store.terminate(pod)

    def _recreate_pod(self) -> None:
        """Gone at once, and another one under its name, at once or soon."""
        pod = self._any(Pod)
        if isinstance(pod, Pod):
            self._store.delete(pod)
            again = self._pod(pod.name)
            metadata = replace(again.metadata, namespace=pod.namespace)
            again = replace(again, metadata=metadata)
            self._store.later(self._rng.choice([0.0, 0.0, 0.02, 3.0]), lambda: self._create(again))

    def _delete_node(self) -> None:
        """The garbage collector removes its pods after a while."""
        node = self._any(Node)
        if isinstance(node, Node):
            self._store.delete(node)
            self._store.later(self._rng.choice([0.0, 5.0, 40.0]), lambda: self.collect(node.name))

    def collect(self, node_name: str) -> None:
        if self._store.get(Node, node_name) is None:
            for pod in list(self._store.all(Pod)):
                if pod.node_name == node_name:
                    self._store.delete(pod)

    def collect_all(self) -> None:
        """What the garbage collector does in the end: no pod stays on a node that is gone."""
        for pod in list(self._store.all(Pod)):
            if pod.node_name and self._store.get(Node, pod.node_name) is None:
                self._store.delete(pod)

    def _return_node(self) -> None:
        self._create(self._node(self._rng.choice(self._node_names)))

    def _recreate_node(self) -> None:
        """Under the same name, at once: its pods were never there."""
        node = self._any(Node)
        if isinstance(node, Node):
            self._store.delete(node)
            self._create(self._node(node.name))

    def _cordon(self) -> None:
        node = self._any(Node)
        if isinstance(node, Node):
            spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
            self._store.update(replace(node, spec=spec))

    def _resize_node(self) -> None:
        node = self._any(Node)
        if isinstance(node, Node):
            other = self._node(node.name)
            self._store.update(replace(node, status=other.status))

    def _bind_as_other(self) -> None:
        """A scheduler that looks at nothing; sometimes it takes our pods."""
        node = self._any(Node)
        pods = [
            pod
            for pod in self._store.all(Pod)
            if not pod.node_name
            and not pod.spec.scheduling_gates
            and not pod.terminating
            and (pod.scheduler_name == OTHERS or self._rng.random() < 0.1)
        ]
        if isinstance(node, Node) and pods:
            with suppress(StopIteration):
                self._store.bind(self._rng.choice(pods), node.name).send(None)

    def _evict(self) -> None:
        """As a descheduler does: its pod comes again under another name."""
        pods = [pod for pod in self._store.all(Pod) if pod.node_name and not pod.terminating]
        if pods:
            self._store.terminate(self._rng.choice(pods))
            self._create_pods()

    def _delete_volume_claim(self) -> None:
        claim = self._any(PersistentVolumeClaim)
        if isinstance(claim, PersistentVolumeClaim):
            self._store.delete(claim)
            for volume in list(self._store.all(PersistentVolume)):
                reference = volume.spec.claim_ref
                if reference is not None and reference.uid == claim.uid:
                    self._store.delete(volume)
            again = self._volume_claim(claim.name)
            self._store.later(self._rng.choice([0.0, 4.0]), lambda: self._create(again))

    def _open_gate(self) -> None:
        for pod in list(self._store.all(Pod)):
            if pod.spec.scheduling_gates and self._rng.random() < 0.5:
                self._store.update(replace(pod, spec=replace(pod.spec, scheduling_gates=[])))

    def _change_budget(self) -> None:
        budget = self._any(PodDisruptionBudget)
        if isinstance(budget, PodDisruptionBudget):
            status = replace(budget.status, disruptions_allowed=self._rng.randint(0, 2))
            self._store.update(replace(budget, status=status))

    def _change_slice(self) -> None:
        known = self._any(ResourceSlice)
        if isinstance(known, ResourceSlice):
            if self._rng.random() < 0.5:
                self._store.delete(known)
                return
        self._create(self._slice(self._rng.choice(self._node_names)))
