"""The PodGroup of scheduler-plugins, and the label by which pods name it."""

from __future__ import annotations

from mooring.objects.kinds import custom_kind
from mooring.objects.meta import KubeObject, Part, ResourceList
from mooring.objects.pod import Pod

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


class PodGroupSpec(Part, frozen=True):
    min_member: int = 0
    #: None and an empty list differ: only None means that resources are not looked at.
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()


POD_GROUPS = custom_kind(PodGroup, "scheduling.x-k8s.io", "podgroups", version="v1alpha1")


def group_key(pod: Pod) -> str:
    """`namespace/name` of the group that a pod names; "" if it names none."""
    name = pod.labels.get(POD_GROUP_LABEL, "")
    return f"{pod.namespace}/{name}" if name else ""
