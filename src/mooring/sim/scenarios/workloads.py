"""The controllers of a scenario: they create and delete the pods of workloads.

`made_by_controllers` creates missing pods. This module decides when to call it, and which pods to delete if
there are too many. Roughly as upstream:

- A ReplicaSet, a ReplicationController or a Job first deletes pods without a node, then pods with a lower
  `controller.kubernetes.io/pod-deletion-cost`, then pods that share their node with most others of the set,
  then the youngest.
- A StatefulSet deletes the highest ordinals.
- A Deployment sets the replicas of its ReplicaSets. A changed template creates another ReplicaSet and scales
  the others to 0 at once: rollouts are not simulated. StatefulSets and DaemonSets replace all their pods.
- Deleting an object deletes its pods. A replacement never has the name of a deleted pod.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects import daemons
from mooring.objects.admission import Admission, Refused
from mooring.objects.autoscalers import Autoscalers
from mooring.objects.controllers import (
    POD_INDEX,
    REVISION,
    active,
    made_by_controllers,
    revision,
    wanted_pods,
)
from mooring.objects.generated_names import generated_uid
from mooring.objects.kinds import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.policies import (
    HorizontalPodAutoscaler,
    LimitRange,
    ResourceQuota,
    RuntimeClass,
)
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.sim.api import SimApi
from mooring.sim.simulation import Simulation

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job | CronJob
#: What may let a controller create a pod that was refused, or changes its replicas.
_Policy = RuntimeClass | LimitRange | ResourceQuota | HorizontalPodAutoscaler
_SCALABLE = (Deployment, ReplicaSet, ReplicationController, StatefulSet, Job)
#: Kinds that cannot be changed once they exist.
_IMMUTABLE = (PersistentVolume, PersistentVolumeClaim, Job, CronJob)


class Workloads:
    """The controllers of a simulated cluster; they watch its API."""

    def __init__(self, simulation: Simulation) -> None:
        self._api = simulation.api
        self._in_gangs = simulation.in_gangs
        self._loop = simulation.loop
        #: Deleted pods, marked as failed, so that their names are not used again.
        self._gone: list[Pod] = []
        self._uids: set[str] = set()
        self._planned = False
        #: What the API server refused to create the last time that controllers tried.
        self.refused: list[Refused] = []
        self._api.watch(self)

    # Actions of users

    def apply(self, obj: KubeObject) -> None:
        """Create or update the object. Raises InputError if it cannot be changed."""
        old = self._api.get(type(obj), obj.key)
        if old is None:
            self._api.create(self._fresh(obj))
            return
        changed = _changed(old, obj)
        if changed is old:
            return
        self._api.update(changed)
        if _template(old) != _template(changed):
            self._renew(changed)

    def scale(self, obj: KubeObject, replicas: int) -> None:
        """Raises InputError if the object cannot be scaled."""
        if not isinstance(obj, _SCALABLE):
            kinds = ", ".join(kind.__name__ for kind in _SCALABLE)
            raise InputError([f"a {obj.kind} cannot be scaled; {kinds} can"])
        field = "parallelism" if isinstance(obj, Job) else "replicas"
        spec: Any = replace(obj.spec, **{field: replicas})
        self._api.update(replace(obj, spec=spec))

    def delete(self, obj: KubeObject) -> None:
        """Delete the object and everything that it controls; pods get their grace period."""
        if isinstance(obj, Pod):
            self._api.terminate(obj)
            return
        children = _Children(self._api).of(obj)
        self._api.delete(obj)
        for child in children:
            self.delete(child)

    # Changes in the API

    def added(self, obj: KubeObject) -> None:
        if isinstance(obj, Workload | Node | _Policy) or (
            isinstance(obj, Pod) and _has_own_claims(obj)
        ):
            self._plan()
        if isinstance(obj, Pod):
            self._uids.add(obj.uid)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod):
            if active(old) and not active(new) and new.metadata.controller is not None:
                self._plan()
        elif isinstance(new, Workload | _Policy):
            self._plan()
        elif isinstance(old, Node) and isinstance(new, Node):
            if old.labels != new.labels or old.taints != new.taints:
                self._plan()

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            owner = obj.metadata.controller
            # A StatefulSet uses its names again.
            if owner is not None and owner.kind != "StatefulSet":
                self._gone.append(obj.with_status(phase="Failed"))
        if isinstance(obj, Pod | Node | _Policy):
            self._plan()

    # Actions of controllers

    def _plan(self) -> None:
        """Reconcile once for all changes of one moment."""
        if not self._planned:
            self._planned = True
            self._loop.call_soon(self._reconcile)

    def _reconcile(self) -> None:
        self._planned = False
        self._autoscale()
        self._resize_sets()
        children = _Children(self._api)
        nodes = {node.name: node for node in self._api.all(Node)}
        for workload in self._workloads():
            for pod in _surplus(workload, children.pods_of(workload), nodes):
                self._api.terminate(pod)
        self._make_missing()

    def _autoscale(self) -> None:
        autoscalers = Autoscalers(self._api.all(HorizontalPodAutoscaler))
        for workload in self._workloads():
            scaled = autoscalers.scaled(workload)
            if scaled is not workload:
                self._api.update(scaled)

    def _workloads(self) -> Iterator[Workload]:
        for obj in self._api.all(KubeObject):
            if isinstance(obj, Workload):
                yield obj

    def _make_missing(self) -> None:
        existing = list(self._api.all(KubeObject))
        objects = [*existing, *self._gone]
        admission = Admission(objects, stored=existing)
        missing = [
            created
            for made in made_by_controllers(objects, admit=admission.defaults.spec)
            for obj in made
            if (created := admission.create(obj)) is not None
        ]
        for obj in self._in_gangs(missing) if missing else ():
            self._api.create(self._fresh(obj))
        self.refused = admission.refused

    def _fresh(self, obj: KubeObject) -> KubeObject:
        """Give a pod with a name that was used before a new UID."""
        if not isinstance(obj, Pod):
            return obj
        uid, again = obj.uid, 0
        while uid in self._uids:
            again += 1
            uid = generated_uid("", "Pod", obj.namespace, f"{obj.name} {again}")
        return obj if uid == obj.uid else replace(obj, metadata=replace(obj.metadata, uid=uid))

    def _resize_sets(self) -> None:
        """If a Deployment's replicas differ from the sum of its ReplicaSets, the newest gets the rest."""
        children = _Children(self._api)
        for deployment in self._api.all(Deployment):
            sets = sorted(children.sets_of(deployment), key=revision)
            left = 1 if deployment.spec.replicas is None else deployment.spec.replicas
            if not sets or sum(each.spec.replicas or 0 for each in sets) == left:
                continue
            for each in sets[:-1]:
                kept = min(each.spec.replicas or 0, left)
                left -= kept
                self._resize(each, kept)
            self._resize(sets[-1], left)

    def _resize(self, replica_set: ReplicaSet, replicas: int) -> None:
        if replica_set.spec.replicas != replicas:
            spec = replace(replica_set.spec, replicas=replicas)
            self._api.update(replace(replica_set, spec=spec))

    # Templates that change

    def _renew(self, obj: KubeObject) -> None:
        if isinstance(obj, Deployment):
            self._roll_out(obj)
        elif isinstance(obj, StatefulSet | DaemonSet):
            for pod in _Children(self._api).pods_of(obj):
                self._api.terminate(pod)

    def _roll_out(self, deployment: Deployment) -> None:
        sets = _Children(self._api).sets_of(deployment)
        (made,) = (
            obj for obj in made_by_controllers([deployment])[0] if isinstance(obj, ReplicaSet)
        )
        number = 1 + max(map(revision, sets), default=0)
        known = self._api.get(ReplicaSet, made.key) or self._api.create(made)
        annotations = {**known.metadata.annotations, REVISION: str(number)}
        metadata = replace(known.metadata, annotations=annotations)
        spec = replace(known.spec, replicas=made.spec.replicas)
        self._api.update(replace(known, metadata=metadata, spec=spec))
        for each in sets:
            if each.key != made.key:
                self._resize(each, 0)


class _Children:
    """Objects by their controller, at one moment; by name, because files seldom have UIDs."""

    def __init__(self, api: SimApi) -> None:
        self._by_owner: dict[tuple[str, str, str], list[KubeObject]] = defaultdict(list)
        for obj in api.all(KubeObject):
            owner = obj.metadata.controller
            if owner is not None:
                self._by_owner[obj.namespace, owner.kind, owner.name].append(obj)

    def of(self, obj: KubeObject) -> list[KubeObject]:
        return self._by_owner.get((obj.namespace, obj.kind, obj.name), [])

    def pods_of(self, obj: KubeObject) -> list[Pod]:
        """In the order they were made."""
        return [child for child in self.of(obj) if isinstance(child, Pod)]

    def sets_of(self, deployment: Deployment) -> list[ReplicaSet]:
        return [child for child in self.of(deployment) if isinstance(child, ReplicaSet)]


def pods_under(api: SimApi, obj: KubeObject) -> set[str]:
    """The keys of the pods that the object controls, directly or indirectly."""
    children = _Children(api)
    found: set[str] = set()
    waiting = [obj]
    while waiting:
        for child in children.of(waiting.pop()):
            if isinstance(child, Pod):
                found.add(child.key)
            else:
                waiting.append(child)
    return found


# Which pods to delete


def _surplus(workload: Workload, pods: Sequence[Pod], nodes: dict[str, Node]) -> Sequence[Pod]:
    at_work = [pod for pod in pods if active(pod)]
    match workload:
        case ReplicaSet() | ReplicationController():
            wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
            return in_deletion_order(at_work)[: max(len(at_work) - wanted, 0)]
        case Job() if not workload.finished:
            wanted = 0 if workload.spec.suspend else wanted_pods(workload, pods)
            return in_deletion_order(at_work)[: max(len(at_work) - wanted, 0)]
        case StatefulSet():
            wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
            end = workload.spec.ordinals.start + wanted
            return [pod for pod in at_work if ordinal(pod) >= end]
        case DaemonSet() if workload.spec.template is not None:
            spec = daemons.tolerant(workload.spec.template.spec)
            unwanted = {name for name, node in nodes.items() if not daemons.runs_on(spec, node)}
            return [
                pod
                for pod in at_work
                if (target := daemons.target(pod)) in unwanted or (target and target not in nodes)
            ]
    return []


def in_deletion_order(pods: Sequence[Pod]) -> list[Pod]:
    """The pods of a ReplicaSet or Job; the first are given up first."""
    shared = Counter(pod.node_name for pod in pods)
    age = {pod.uid: i for i, pod in enumerate(pods)}

    def rank(pod: Pod) -> tuple[bool, int, int, int]:
        return bool(pod.node_name), _deletion_cost(pod), -shared[pod.node_name], -age[pod.uid]

    return sorted(pods, key=rank)


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST, "")
    return int(text) if text.removeprefix("-").isdecimal() else 0


def ordinal(pod: Pod) -> int:
    """The number of a StatefulSet's pod; -1 if it has none."""
    text = pod.labels.get(POD_INDEX) or pod.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


# Changing existing objects


def _changed(old: KubeObject, new: KubeObject) -> KubeObject:
    """The old object with the new object's fields; the old object itself if nothing changes."""
    metadata = replace(old.metadata, labels=new.labels, annotations=new.metadata.annotations)
    changed: Any = replace(new, metadata=metadata)
    if isinstance(old, Pod) and isinstance(new, Pod):
        if old.node_name and replace(new.spec, node_name=old.node_name) != old.spec:
            raise InputError([f"pod {old.key} is on a node and cannot be changed; delete it first"])
        spec = replace(new.spec, node_name=old.node_name)
        changed = replace(changed, spec=spec, status=old.status)
    elif hasattr(old, "status") and changed.status == type(changed.status)():
        changed = replace(changed, status=old.status)
    if changed == old:
        return old
    if isinstance(old, _IMMUTABLE):
        raise InputError([f"{old.kind} {old.key} cannot be changed; delete it first"])
    return changed  # type: ignore[no-any-return]


def _template(obj: KubeObject) -> object:
    return getattr(getattr(obj, "spec", None), "template", None)


def _has_own_claims(pod: Pod) -> bool:
    return not pod.node_name and any(volume.ephemeral is not None for volume in pod.spec.volumes)
