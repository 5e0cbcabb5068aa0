"""Read the questions of `mooring capacity`: the pods to add, and the nodes to add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from msgspec.structs import replace as changed

from mooring.cli.main import print_warnings
from mooring.cli.output import counted
from mooring.config.gates import FeatureGates
from mooring.errors import InputError
from mooring.explain.gang_room import GangTemplates, gang_templates
from mooring.explain.room import Template, own_claims
from mooring.explain.settled import Settled
from mooring.objects.gangs import with_gangs
from mooring.objects.kinds import PriorityClass
from mooring.objects.manifests import DEFAULT_NAMESPACE, Manifests, read_manifests
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.node_groups import node_documents, parse_node_group
from mooring.objects.pod import Pod
from mooring.objects.policies import LimitRange, RuntimeClass
from mooring.objects.scheduler_names import asking_for
from mooring.objects.storage import PersistentVolumeClaim

_SPREADING = frozenset(
    ("Service", "ReplicaSet", "ReplicationController", "StatefulSet", "Deployment", "DaemonSet")
)


@dataclass(frozen=True, slots=True)
class Mix:
    """What one `--pod` adds in a round."""

    name: str
    #: The number after the file name.
    count: int
    #: Whether a round adds all pods of the file; otherwise it adds single pods of one workload.
    whole: bool
    templates: tuple[Template, ...]
    #: The other objects of the file.
    others: tuple[KubeObject, ...] = ()
    #: All pods of the file.
    pods: tuple[Pod, ...] = ()

    def gangs(self, gates: FeatureGates) -> GangTemplates | None:
        """The pods in their groups, which are added whole; None if no pod is in one. Raises InputError."""
        if not gates.enabled("GenericWorkload"):
            return None
        jobs = gates.enabled("WorkloadWithJob")
        grouped, _ = with_gangs([*self.others, *self.pods], jobs=jobs)
        pods = [obj for obj in grouped if isinstance(obj, Pod)]
        templates = (Template(pod, 1, tuple(own_claims(pod, self.others))) for pod in pods)
        return gang_templates(grouped, templates, self.count)

    def alone(self) -> GangTemplates:
        """The same for pods in no group: the copies of a round."""
        pods = tuple(replace(each, count=1) for each in self.templates for _ in range(each.count))
        return GangTemplates(pods, ())

    def as_whole(self, gangs: GangTemplates) -> Mix:
        """What a round adds, if it adds whole gangs."""
        if not gangs.groups:
            return self
        name = ", ".join(group.key for group in gangs.groups)
        templates = tuple(replace(each, count=self.count) for each in gangs.pods)
        return replace(
            self,
            name=f"{name} ({counted(len(gangs.pods), 'pod')})",
            whole=True,
            templates=templates,
        )

    @property
    def title(self) -> str:
        return f"{self.count} × {self.name}"


def read_mix(
    text: str, cluster: Manifests, namespace: str | None, scheduler_name: str | None
) -> Mix:
    path, colon, count = text.rpartition(":")
    if not colon or not (count.isascii() and count.isdigit()):
        path, count = text, "1"
    if not path:
        raise click.BadParameter(f"{text!r} names no file", param_hint="--pod")
    if not int(count):
        raise click.BadParameter(f"{text!r}: the number must be 1 or more", param_hint="--pod")
    read = _read_beside(path, cluster, namespace).objects
    if scheduler_name is not None:
        read = asking_for(read, scheduler_name)
    pods = [obj for obj in read if isinstance(obj, Pod) and not obj.finished]
    if not pods:
        raise InputError([f"{path}: contains no pod and no workload that creates pods"])
    others = tuple(obj for obj in read if not isinstance(obj, Pod | Node))
    controllers = {pod.metadata.controller for pod in pods}
    of_daemons = any(owner is not None and owner.kind == "DaemonSet" for owner in controllers)
    one_workload = len(controllers) == 1 and (None not in controllers or len(pods) == 1)
    if one_workload and not of_daemons:
        template = Template(pods[0], int(count), tuple(own_claims(pods[0], others)))
        return Mix(pods[0].name, int(count), False, (template,), others, tuple(pods))
    templates = tuple(_templates(pods, others, times=int(count)))
    return Mix(path, int(count), True, templates, others, tuple(pods))


def _templates(
    pods: Sequence[Pod], others: Sequence[KubeObject], *, times: int
) -> Iterator[Template]:
    """The pods of a round; pods that share their parts are one template."""
    alike: dict[tuple[object, ...], list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller
        key = (owner.uid, id(pod.spec)) if owner is not None else (pod.key,)
        alike.setdefault(key, []).append(pod)
    for same in alike.values():
        claims = tuple(own_claims(same[0], others))
        if claims:
            # Every one of them has claims of its own.
            yield from (Template(pod, times, tuple(own_claims(pod, others))) for pod in same)
        else:
            yield Template(same[0], times * len(same))


def new_objects(settled: Settled, mixes: Sequence[Mix]) -> list[KubeObject]:
    """What the files bring along that the cluster does not have.

    Without Services and workloads: they change only how evenly the copies spread, and that costs much.
    """
    known = {(type(obj), obj.key) for obj in settled.objects}
    own = {claim.key for mix in mixes for each in mix.templates for claim in each.claims}
    found: dict[tuple[type, str], KubeObject] = {}
    for mix in mixes:
        for obj in mix.others:
            is_copied = isinstance(obj, PersistentVolumeClaim) and obj.key in own
            if (type(obj), obj.key) not in known and obj.kind not in _SPREADING and not is_copied:
                found[type(obj), obj.key] = obj
    return list(found.values())


def _read_beside(path: str, cluster: Manifests, namespace: str | None) -> Manifests:
    """Files whose pods are shaped by the cluster's classes and limit ranges; quotas do not count."""
    shaping = PriorityClass | RuntimeClass | LimitRange | Node
    known = [obj for obj in cluster.objects if isinstance(obj, shaping)]
    read = read_manifests([path], among=known, namespace=namespace or DEFAULT_NAMESPACE)
    if read.refused:
        raise InputError([f"{path}: {line}" for line in read.refusals])
    print_warnings(read.warnings)
    return read


def read_node(text: str, cluster: Manifests) -> Node:
    known = {node.name: node for node in cluster.nodes}
    if text in known:
        return known[text]
    if not Path(text).exists():
        return _described_node(text, known)
    found: list[KubeObject] = [
        obj for obj in read_manifests([text]).objects if isinstance(obj, Node)
    ]
    if len(found) != 1 or not isinstance(found[0], Node):
        raise InputError([f"{text}: contains {counted(len(found), 'node')}; give a file with one"])
    return found[0]


def _described_node(text: str, known: Iterable[str]) -> Node:
    """A node of a machine type. Raises InputError."""
    try:
        group = parse_node_group(text)
    except ValueError as error:
        some = ", ".join(sorted(known)[:10]) or "none"
        raise InputError(
            [f"no node and no file is called {text!r} (the cluster's nodes: {some}), and {error}"]
        ) from error
    if group.count != 1:
        raise InputError([f"--add-node {text}: leave out the number; the answer is the number"])
    node = read_manifests([], documents=node_documents([group])).nodes[0]
    return changed(node, metadata=changed(node.metadata, name=group.name))
