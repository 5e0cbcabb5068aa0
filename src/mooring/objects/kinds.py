"""The other kinds that a scheduler reads, and the table of all kinds that mooring knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mooring.objects.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.objects.meta import KubeObject, ObjectMeta, Part
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodSpec
from mooring.objects.pod_groups import PodGroup, Workload
from mooring.objects.policies import (
    HorizontalPodAutoscaler,
    LimitRange,
    ResourceQuota,
    RuntimeClass,
)
from mooring.objects.selectors import LabelSelector
from mooring.objects.storage import (
    ClaimTemplate,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


class Namespace(KubeObject, frozen=True):
    pass


class ServiceSpec(Part, frozen=True):
    #: None and an empty map differ: a missing selector selects no pods.
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
    volume_claim_templates: list[ClaimTemplate] = []


class StatefulSet(KubeObject, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class DeploymentSpec(ReplicaSetSpec, frozen=True):
    paused: bool = False


class Deployment(KubeObject, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()


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
    #: For an indexed Job: `1-3,7`.
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
    #: A number of pods, or a percentage such as `30%`.
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


#: A finished pod holds no resources, so it is not watched. A pod that finishes counts as deleted.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class Kind:
    """What mooring does with a kind, and where the API serves it."""

    struct: type[KubeObject]
    #: Empty for the core group.
    group: str
    plural: str
    #: The short name in kubectl.
    short: str = ""
    version: str = "v1"
    namespaced: bool = True
    #: Whether `cluster.listers` keeps the objects. `cluster.cache` keeps nodes and pods; a
    #: Deployment matters only through its pods.
    listed: bool = True
    #: Whether a scheduler always watches the kind, whatever its plugins.
    always_watched: bool = False
    #: Whether a change of an object may make a pod schedulable. Plugins register for these events;
    #: a scheduler watches the kind if a plugin registers for it.
    events: bool = False
    #: Whether a scheduler may change objects with `ApiWriter.update_object`.
    writable: bool = False
    #: Which objects are read from the API; all if it is empty.
    field_selector: str = ""
    #: The feature gate without which a scheduler does not read the kind; "" if it always does.
    gate: str = ""
    #: Whether the API server's admission reads the kind when it creates pods and claims.
    admits: bool = False
    #: Whether a plugin declares the kind, in its attribute `kinds`; its row is not in `KINDS`.
    custom: bool = False
    #: After how long the objects are listed again, if the API cannot be watched; 0 watches it.
    poll_s: float = 0.0

    @property
    def name(self) -> str:
        return self.struct.__name__

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def event_resource(self) -> str:
        """The name in cluster events.

        `Node`, `storage.k8s.io/CSINode`, or
        `podgroups.v1alpha1.scheduling.x-k8s.io` for a kind that a plugin declares.
        """
        if self.custom:
            return f"{self.plural}.{self.version}.{self.group}"
        return f"{self.group}/{self.name}" if self.group else self.name

    @property
    def path(self) -> str:
        """The URL path of all objects, in every namespace."""
        return f"{self._root}/{self.plural}"

    def path_of(self, namespace: str, name: str) -> str:
        """The URL path of one object. For a cluster-scoped kind, the namespace is empty."""
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{self._root}{inside}/{self.plural}/{name}"

    @property
    def _root(self) -> str:
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"


#: Every kind that mooring reads. Listers, events, watches, snapshots and the names in scenarios are
#: derived from this table; a test compares the rules in deploy/base/rbac.yaml with it. To add a
#: kind, add its row and, if it has events, a member of `framework.events.EventResource`. Watches
#: and snapshots keep the order.
KINDS: tuple[Kind, ...] = (
    Kind(Node, "", "nodes", "no", namespaced=False, listed=False, always_watched=True, events=True),
    Kind(
        Pod,
        "",
        "pods",
        "po",
        listed=False,
        always_watched=True,
        events=True,
        writable=True,
        field_selector=UNFINISHED,
    ),
    Kind(Namespace, "", "namespaces", "ns", namespaced=False, always_watched=True),
    Kind(Service, "", "services", "svc", always_watched=True),
    Kind(ReplicationController, "", "replicationcontrollers", "rc", always_watched=True),
    Kind(ReplicaSet, "apps", "replicasets", "rs", always_watched=True),
    Kind(StatefulSet, "apps", "statefulsets", "sts", always_watched=True),
    Kind(PodDisruptionBudget, "policy", "poddisruptionbudgets", "pdb", always_watched=True),
    Kind(PriorityClass, "scheduling.k8s.io", "priorityclasses", "pc", namespaced=False),
    Kind(
        PersistentVolume,
        "",
        "persistentvolumes",
        "pv",
        namespaced=False,
        events=True,
        writable=True,
    ),
    Kind(PersistentVolumeClaim, "", "persistentvolumeclaims", "pvc", events=True, writable=True),
    Kind(StorageClass, "storage.k8s.io", "storageclasses", "sc", namespaced=False, events=True),
    Kind(CSINode, "storage.k8s.io", "csinodes", namespaced=False, events=True),
    Kind(CSIDriver, "storage.k8s.io", "csidrivers", namespaced=False, events=True),
    Kind(CSIStorageCapacity, "storage.k8s.io", "csistoragecapacities", events=True),
    Kind(VolumeAttachment, "storage.k8s.io", "volumeattachments", namespaced=False, events=True),
    Kind(DeviceClass, "resource.k8s.io", "deviceclasses", namespaced=False, events=True),
    Kind(ResourceClaim, "resource.k8s.io", "resourceclaims", events=True),
    Kind(ResourceClaimTemplate, "resource.k8s.io", "resourceclaimtemplates", listed=False),
    Kind(ResourceSlice, "resource.k8s.io", "resourceslices", namespaced=False, events=True),
    Kind(
        DeviceTaintRule,
        "resource.k8s.io",
        "devicetaintrules",
        version="v1beta2",
        namespaced=False,
        gate="DRADeviceTaintRules",
    ),
    Kind(
        PodGroup,
        "scheduling.k8s.io",
        "podgroups",
        version="v1alpha2",
        events=True,
        gate="GenericWorkload",
    ),
    Kind(
        Workload,
        "scheduling.k8s.io",
        "workloads",
        version="v1alpha2",
        listed=False,
        gate="GenericWorkload",
    ),
    Kind(Deployment, "apps", "deployments", "deploy", listed=False),
    Kind(DaemonSet, "apps", "daemonsets", "ds", listed=False),
    Kind(Job, "batch", "jobs", listed=False),
    Kind(CronJob, "batch", "cronjobs", "cj", listed=False),
    # These shape pods when pods are created (`objects.admission`); a scheduler does not read them.
    Kind(
        RuntimeClass, "node.k8s.io", "runtimeclasses", namespaced=False, listed=False, admits=True
    ),
    Kind(LimitRange, "", "limitranges", "limits", listed=False, admits=True),
    Kind(ResourceQuota, "", "resourcequotas", "quota", listed=False, admits=True),
    Kind(HorizontalPodAutoscaler, "autoscaling", "horizontalpodautoscalers", "hpa", listed=False),
)


def custom_kind(
    struct: type[KubeObject],
    group: str,
    plural: str,
    *,
    version: str,
    namespaced: bool = True,
    poll_s: float = 0.0,
) -> Kind:
    """A kind that a plugin declares in its attribute `kinds`, and reads with a struct of its own.

    If the plugin is enabled, objects of the kind are read from files, watched in a real cluster, kept in
    the listers under their struct, and their changes are events under `Kind.event_resource`.

    With `poll_s`, objects are listed again after that time instead of watched: for measurements and other
    APIs without watches. Their changes are no events, and a scheduler starts without them if it must.
    """
    return Kind(
        struct,
        group,
        plural,
        version=version,
        namespaced=namespaced,
        events=not poll_s,
        custom=True,
        poll_s=poll_s,
    )


#: The table row for each struct.
KIND_OF: dict[type[KubeObject], Kind] = {kind.struct: kind for kind in KINDS}

#: The names of the cluster-scoped kinds.
CLUSTER_SCOPED = frozenset(kind.name for kind in KINDS if not kind.namespaced)
