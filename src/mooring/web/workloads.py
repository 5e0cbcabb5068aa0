"""The workload of a pod, by the name that its users gave it."""

from __future__ import annotations

from mooring.objects.controllers import TEMPLATE_HASH
from mooring.objects.pod import Pod


def workload_name(pod: Pod) -> str:
    """`Deployment shop/web`; "" for a pod without a controller.

    A Deployment's pods belong to a ReplicaSet whose name ends in the hash of the template.
    """
    owner = pod.metadata.controller
    if owner is None:
        return ""
    suffix = f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return f"Deployment {pod.namespace}/{owner.name.removesuffix(suffix)}"
    return f"{owner.kind} {pod.namespace}/{owner.name}"
