"""Gangs by other names: pods that belong together, though they name no PodGroup.

A pod gets a group, and the group is made if there is none, if

- it or its controller has the annotation or label `mooring.dev/gang`: `true` means all of it or nothing, a
  number is the minCount. `mooring.dev/gang-topology-key` keeps it within one value of a node label. What
  a custom resource (JobSet, LeaderWorkerSet, PyTorchJob, RayJob …) asks for, `workload_kinds.expansion` hands
  down to what it makes; the pods that are one gang are known by the labels that these kinds give them;
- its Job is what the Job controller makes a gang of, with the gate WorkloadWithJob;
- it is in a pod group of Coscheduling, Volcano or Kueue, which mean the same by it: all or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects.generated_names import generated_uid
from mooring.objects.kinds import KIND_OF, Job
from mooring.objects.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.pod import Pod, SchedulingGroup
from mooring.objects.pod_groups import (
    ControllerReference,
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupTemplateReference,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
    Workload,
    WorkloadPodGroupTemplate,
    WorkloadSpec,
)

GANG = "mooring.dev/gang"
TOPOLOGY_KEY = "mooring.dev/gang-topology-key"

#: What the pods of these workloads are labelled with: one value is one gang.
_WORKLOAD_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
    "volcano.sh/job-name",
)
#: Each replica of a LeaderWorkerSet is a gang: a leader and its workers.
_LEADER_WORKER_SET = ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index")
#: The second is that of versions before 0.18.
_COSCHEDULING = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_VOLCANO = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
_KUEUE = "kueue.x-k8s.io/pod-group-name"
_KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
#: With this, Kueue places all pods of a workload within one value of a node label, or none.
_KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"

#: The API groups whose PodGroup has a `minMember`, by which it is a gang.
FOREIGN_GROUPS = {
    "scheduling.x-k8s.io": "Coscheduling",
    "scheduling.sigs.k8s.io": "Coscheduling",
    "scheduling.volcano.sh": "Volcano",
}


@dataclass(frozen=True, slots=True)
class _Gang:
    """What is to be known of a group to make it."""

    key: str
    #: Why it is one, for those who did not ask for it; "" for those who did.
    source: str
    #: None for all pods.
    min_count: int | None = None
    topology_key: str = ""
    #: The object that all pods of the group belong to.
    owner: KubeObject | None = None
    priority: int | None = None


def with_gangs(
    objects: Iterable[KubeObject], *, among: Iterable[KubeObject] = (), jobs: bool = False
) -> tuple[list[KubeObject], list[str]]:
    """The objects, with pods in their gangs and the groups that are missing; and notes on what was done.

    `among` are the objects that exist already. `jobs` says that the gate WorkloadWithJob is on. Raises
    InputError if a value cannot be understood.
    """
    given = list(objects)
    finder = _Finder([*given, *among], jobs=jobs)
    result: list[KubeObject] = []
    gangs: dict[str, _Gang] = {}
    sizes: Counter[str] = Counter()
    for obj in given:
        gang = finder.gang_of(obj) if isinstance(obj, Pod) else None
        if gang is not None and isinstance(obj, Pod):
            gangs.setdefault(gang.key, gang)
            sizes[gang.key] += 1
            obj = _in_group(obj, gang.key)
        result.append(obj)
    if finder.problems:
        raise InputError(finder.problems)
    made = [
        each
        for key, gang in gangs.items()
        if key not in finder.groups
        for each in _made(gang, sizes[key])
    ]
    notes = [
        f"{sizes[key]} pod{'s are' if sizes[key] != 1 else ' is'} read as gang {key}: {gang.source}"
        for key, gang in gangs.items()
        if gang.source
    ]
    return [*made, *result], notes


class _Finder:
    def __init__(self, objects: Sequence[KubeObject], *, jobs: bool) -> None:
        self._jobs = jobs
        self._by_name = {(obj.namespace, obj.kind, obj.name): obj for obj in objects}
        self.groups = {obj.key for obj in objects if isinstance(obj, PodGroup)}
        #: Jobs of which a pod was placed or has ended: too late to make them gangs.
        self._begun = {
            (pod.namespace, owner.name)
            for pod in objects
            if isinstance(pod, Pod)
            and (pod.node_name or pod.finished)
            and (owner := pod.metadata.controller) is not None
        }
        self.problems: list[str] = []

    def gang_of(self, pod: Pod) -> _Gang | None:
        if pod.spec.scheduling_group is not None or pod.finished:
            return None
        reference = pod.metadata.controller
        owner = (
            self._by_name.get((pod.namespace, reference.kind, reference.name))
            if reference is not None
            else None
        )
        return (
            self._asked_for(pod, owner)
            or self._of_job(pod, owner)
            or self._of_other_scheduler(pod)
            or self._of_kueue(pod)
        )

    def _asked_for(self, pod: Pod, owner: KubeObject | None) -> _Gang | None:
        settings = {**settings_of(owner), **settings_of(pod)}
        value = settings.get(GANG, "false")
        if value == "false":
            return None
        name = _workload_name(pod)
        if value != "true" and not (value.isascii() and value.isdigit() and int(value)):
            text = f"{value!r} is not true, false or a number of pods"
            self.problems.append(f"Pod {pod.key}: {GANG}: {text}")
        elif not name:
            text = "the pod has no controller, so its gang has no name; set spec.schedulingGroup"
            self.problems.append(f"Pod {pod.key}: {GANG}: {text}")
        else:
            return _Gang(
                f"{pod.namespace}/{name}",
                "",
                None if value == "true" else int(value),
                settings.get(TOPOLOGY_KEY, ""),
                owner,
                pod.priority,
            )
        return None

    def _of_job(self, pod: Pod, owner: KubeObject | None) -> _Gang | None:
        """What the Job controller does: for a Job whose pods all run at once, before it has begun."""
        if not (self._jobs and isinstance(owner, Job)):
            return None
        spec, size = owner.spec, owner.spec.parallelism
        begun = owner.status.succeeded or (owner.namespace, owner.name) in self._begun
        exists = owner.key in self.groups
        if (
            size is None
            or size <= 1
            or spec.completion_mode != "Indexed"
            or spec.completions != size
            or (begun and not exists)
        ):
            return None
        return _Gang(owner.key, "WorkloadWithJob is on", size, owner=owner)

    def _of_other_scheduler(self, pod: Pod) -> _Gang | None:
        """Only with a PodGroup: without one, such a pod is scheduled alone there too."""
        annotations = pod.metadata.annotations
        names = [*map(pod.labels.get, _COSCHEDULING), *map(annotations.get, _VOLCANO)]
        for name in filter(None, names):
            key = f"{pod.namespace}/{name}"
            if key in self.groups:
                return _Gang(key, "a pod group of another scheduler")
        return None

    def _of_kueue(self, pod: Pod) -> _Gang | None:
        """Plain pods that name their group, and workloads that must be within one topology domain."""
        name = pod.labels.get(_KUEUE)
        count = pod.metadata.annotations.get(_KUEUE_COUNT, "")
        topology_key = pod.metadata.annotations.get(_KUEUE_TOPOLOGY, "")
        is_group = bool(name) and count.isascii() and count.isdigit() and bool(int(count))
        name = name if is_group else _workload_name(pod) if topology_key else ""
        if not name:
            return None
        return _Gang(
            f"{pod.namespace}/{name}",
            "Kueue admits it whole",
            int(count) if is_group else None,
            topology_key,
            priority=pod.priority,
        )


def foreign_pod_group(group: str, body: Mapping[str, object]) -> dict[str, object] | None:
    """A PodGroup of Coscheduling or Volcano as ours; None if it is not understood."""
    spec = body.get("spec")
    least = spec.get("minMember") if isinstance(spec, dict) else None
    if group not in FOREIGN_GROUPS or not isinstance(least, int) or least < 1:
        return None
    return {
        **body,
        "apiVersion": KIND_OF[PodGroup].api_version,
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
        "status": {},
    }


def settings_of(obj: KubeObject | None) -> dict[str, str]:
    """What an object asks for, by annotations or labels."""
    return {} if obj is None else settings_in(obj.labels, obj.metadata.annotations)


def settings_in(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """The same of an object that is not decoded."""
    given = {**labels, **annotations}
    return {name: given[name] for name in (GANG, TOPOLOGY_KEY) if name in given}


def asks_to_be_a_gang(obj: KubeObject) -> bool:
    metadata = obj.metadata
    return metadata.annotations.get(GANG, metadata.labels.get(GANG, "false")) != "false"


def _workload_name(pod: Pod) -> str:
    """What all pods of a gang have in common."""
    replica = [pod.labels.get(label, "") for label in _LEADER_WORKER_SET]
    if all(replica):
        return "-".join(replica)
    for label in _WORKLOAD_LABELS:
        if label in pod.labels:
            return pod.labels[label]
    controller = pod.metadata.controller
    return "" if controller is None else controller.name


def _in_group(pod: Pod, key: str) -> Pod:
    group = SchedulingGroup(pod_group_name=key.partition("/")[2])
    return replace(pod, spec=replace(pod.spec, scheduling_group=group))


def _made(gang: _Gang, size: int) -> list[KubeObject]:
    """The PodGroup, and the Workload that it is made from."""
    namespace, _, name = gang.key.partition("/")
    policy = SchedulingPolicy(gang=GangPolicy(min_count=gang.min_count or size))
    constraints = (
        SchedulingConstraints(topology=[TopologyConstraint(key=gang.topology_key)])
        if gang.topology_key
        else None
    )
    template = PodGroupTemplate(
        name=name, scheduling_policy=policy, scheduling_constraints=constraints
    )
    reference = WorkloadPodGroupTemplate(workload_name=name, pod_group_template_name=name)
    workload = Workload(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="Workload",
        metadata=_metadata("Workload", namespace, name, gang.owner),
        spec=WorkloadSpec(controller_ref=_controller(gang.owner), pod_group_templates=[template]),
    )
    group = PodGroup(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        metadata=_metadata("PodGroup", namespace, name, gang.owner),
        spec=PodGroupSpec(
            pod_group_template_ref=PodGroupTemplateReference(workload=reference),
            scheduling_policy=policy,
            scheduling_constraints=constraints,
            disruption_mode="Pod",
            priority=gang.priority,
        ),
    )
    return [workload, group]


def _controller(owner: KubeObject | None) -> ControllerReference | None:
    if owner is None:
        return None
    return ControllerReference(
        api_group=KIND_OF[type(owner)].group, kind=owner.kind, name=owner.name
    )


def _metadata(kind: str, namespace: str, name: str, owner: KubeObject | None) -> ObjectMeta:
    references = []
    if owner is not None:
        version = KIND_OF[type(owner)].api_version
        references.append(
            OwnerReference(
                api_version=version,
                kind=owner.kind,
                name=owner.name,
                uid=owner.uid,
                controller=True,
            )
        )
    uid = generated_uid("scheduling.k8s.io", kind, namespace, name)
    return ObjectMeta(
        name=name, namespace=namespace, uid=uid, generation=1, owner_references=references
    )
