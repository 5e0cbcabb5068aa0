"""The workload of a pod, by the name that its users gave it."""

from __future__ import annotations

import re

from mooring.objects.controllers import TEMPLATE_HASH
from mooring.objects.pod import Pod

#: Pods without a controller are often numbered.
_NUMBERED = re.compile(r"-\d+$")


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


def folded_name(key: str, workload: str) -> str:
    """What pods are folded under: their workload, or what their names begin with if they are numbered."""
    return workload or _NUMBERED.sub("-*", key)
