"""API versions that Kubernetes no longer serves: their objects are read as those of the version after.

The fields that scheduling depends on have kept their names and places, except those of
`device_versions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from mooring.objects.kinds import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mooring.objects.meta import KubeObject
from mooring.objects.selectors import LabelSelector

#: apiVersion → its kinds, the version to write instead, and the release that removed it.
_REMOVED = {
    "extensions/v1beta1": (("DaemonSet", "Deployment", "ReplicaSet"), "apps/v1", "1.16"),
    "apps/v1beta1": (("Deployment", "StatefulSet"), "apps/v1", "1.16"),
    "apps/v1beta2": (("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps/v1", "1.16"),
    "batch/v2alpha1": (("CronJob",), "batch/v1", "1.21"),
    "batch/v1beta1": (("CronJob",), "batch/v1", "1.25"),
    "policy/v1beta1": (("PodDisruptionBudget",), "policy/v1", "1.25"),
    "resource.k8s.io/v1alpha3": (
        ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
        "resource.k8s.io/v1",
        "1.34",
    ),
    "scheduling.k8s.io/v1alpha1": (("PriorityClass",), "scheduling.k8s.io/v1", "1.22"),
    "scheduling.k8s.io/v1beta1": (("PriorityClass",), "scheduling.k8s.io/v1", "1.22"),
    "storage.k8s.io/v1beta1": (
        ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
        "storage.k8s.io/v1",
        "1.22",
    ),
}


def replaced_by(api_version: str, kind: str) -> str:
    """The version to read an object as; empty if the version is not one of the removed."""
    kinds, current, _ = _REMOVED.get(api_version, ((), "", ""))
    return current if kind in kinds else ""


def with_old_defaults(obj: KubeObject) -> KubeObject:
    """The selector of a workload could be left out: it was that of the template's labels."""
    if not isinstance(obj, Deployment | DaemonSet | ReplicaSet | StatefulSet):
        return obj
    template = obj.spec.template
    if obj.spec.selector is not None or template is None:
        return obj
    selector = LabelSelector(match_labels=template.metadata.labels)
    return replace(obj, spec=replace(obj.spec, selector=selector))


def notes(found: Counter[tuple[str, str]]) -> Iterator[str]:
    """A line for each version and kind that was read."""
    for (api_version, kind), number in sorted(found.items()):
        _, current, removed_in = _REMOVED[api_version]
        objects = f"{number:,} {kind}s" if number > 1 else f"1 {kind}"
        yield (
            f"{objects} of {api_version}, which Kubernetes {removed_in} removed: read as {current}; "
            f"write apiVersion: {current}"
        )
