"""The other kinds a scheduler reads, and the table of every kind mooring knows."""

from __future__ import annotations

from datetime import datetime

from mooring.objects import storage
from mooring.objects.meta import KubeObject, ObjectMeta, Part
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodSpec
from mooring.objects.selectors import LabelSelector


class Namespace(KubeObject, frozen=True):
    pass


class ServiceSpec(Part, frozen=True):
    #: None and an empty map differ: only a selector that is there can stand for pods.
    selector: dict[str, str] | None = None


class Service(KubeObject, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class PodTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicationControllerSpec(Part, frozen=True):
    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class ReplicationController(KubeObject, frozen=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Part, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class ReplicaSet(KubeObject, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetOrdinals(Part, frozen=True):
    start: int = 0


class StatefulSetSpec(ReplicaSetSpec, frozen=True):
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    volume_claim_templates: list[storage.ClaimTemplate] = []


class StatefulSet(KubeObject, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class Deployment(KubeObject, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class DaemonSet(KubeObject, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class JobSpec(Part, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    manual_selector: bool = False
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class JobCondition(Part, frozen=True):
    type: str = ""
    status: str = ""


class JobStatus(Part, frozen=True):
    succeeded: int = 0
    #: Of an indexed Job, as `1-3,7`.
    completed_indexes: str = ""
    conditions: list[JobCondition] = []


class Job(KubeObject, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def finished(self) -> bool:
        return any(
            c.type in ("Complete", "Failed") and c.status == "True" for c in self.status.conditions
        )


class JobTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Part, frozen=True):
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()


class CronJob(KubeObject, frozen=True):
    spec: CronJobSpec = CronJobSpec()


class PodDisruptionBudgetSpec(Part, frozen=True):
    selector: LabelSelector | None = None
    #: A number of pods, or a percentage as `30%`.
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Part, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, datetime] = {}


class PodDisruptionBudget(KubeObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(KubeObject, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class DeviceClassSpec(Part, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


#: Every kind mooring reads, by API group and kind.
KINDS: dict[tuple[str, str], type[KubeObject]] = {
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "Namespace"): Namespace,
    ("", "Service"): Service,
    ("", "ReplicationController"): ReplicationController,
    ("", "PersistentVolume"): storage.PersistentVolume,
    ("", "PersistentVolumeClaim"): storage.PersistentVolumeClaim,
    ("apps", "ReplicaSet"): ReplicaSet,
    ("apps", "StatefulSet"): StatefulSet,
    ("apps", "Deployment"): Deployment,
    ("apps", "DaemonSet"): DaemonSet,
    ("batch", "Job"): Job,
    ("batch", "CronJob"): CronJob,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
    ("scheduling.k8s.io", "PriorityClass"): PriorityClass,
    ("storage.k8s.io", "StorageClass"): storage.StorageClass,
    ("storage.k8s.io", "CSINode"): storage.CSINode,
    ("storage.k8s.io", "CSIDriver"): storage.CSIDriver,
    ("storage.k8s.io", "CSIStorageCapacity"): storage.CSIStorageCapacity,
    ("storage.k8s.io", "VolumeAttachment"): storage.VolumeAttachment,
    ("resource.k8s.io", "DeviceClass"): DeviceClass,
}

#: Kinds whose objects have no namespace.
CLUSTER_SCOPED = frozenset(
    (
        "Node",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "DeviceClass",
    )
)
