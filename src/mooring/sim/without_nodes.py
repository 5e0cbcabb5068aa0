"""A cluster without nodes: pods of one template get one answer.

No pod is tried there, so a pod is only queued, held back by PreEnqueue, or ignored because no profile has the
name of its scheduler. Built-in plugins decide that by the spec alone, except for pods with claims and pods of
gangs. So one pod stands for all that share its spec, and the others are not created in the simulation. To
create and queue all of them took more than half of the time for 20,000 pods of 100 Deployments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.objects.gangs import asks_to_be_a_gang
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_class import is_ordinary
from mooring.objects.pod_groups import PodGroup
from mooring.scheduler.engine import Engine
from mooring.sim.api import RUN_SECONDS

_BUILT_IN = "mooring.plugins."


@dataclass(frozen=True, slots=True)
class Represented:
    """The objects of a cluster without nodes, with one pod for all that get the same answer."""

    #: What is created in the simulation.
    objects: list[KubeObject]
    #: For each pod, in order: its key, and the key of the pod that stands for it.
    pods: list[tuple[str, str]]


def represented(objects: Sequence[KubeObject], scheduler: Engine) -> Represented | None:
    """None if each pod has to be asked about by itself."""
    if scheduler.config.gates.enabled("GenericWorkload") or _has_other_plugins(scheduler):
        return None
    created: list[KubeObject] = []
    pods: list[tuple[str, str]] = []
    #: `id` of a spec → the first pod that has it. The objects keep the specs alive.
    first_with: dict[int, Pod] = {}
    for obj in objects:
        if isinstance(obj, Node | PodGroup) or asks_to_be_a_gang(obj):
            return None
        if not isinstance(obj, Pod):
            created.append(obj)
            continue
        first = first_with.get(id(obj.spec))
        if first is None:
            if obj.spec.scheduling_group is not None:
                return None
            if _may_stand_for_others(obj):
                first_with[id(obj.spec)] = obj
        elif _is_like(obj, first):
            pods.append((obj.key, first.key))
            continue
        created.append(obj)
        pods.append((obj.key, obj.key))
    return Represented(created, pods)


def _has_other_plugins(scheduler: Engine) -> bool:
    return any(
        not type(call.plugin).__module__.startswith(_BUILT_IN)
        for framework in scheduler.frameworks.values()
        for call in framework.plugins.values()
    )


def _may_stand_for_others(pod: Pod) -> bool:
    return (
        is_ordinary(pod)
        and not pod.node_name
        and not pod.finished
        and not pod.terminating
        and RUN_SECONDS not in pod.metadata.annotations
    )


def _is_like(pod: Pod, first: Pod) -> bool:
    """Whether a pod with the same spec gets the same answer."""
    status, metadata = pod.status, pod.metadata
    return (
        not pod.finished
        and not status.nominated_node_name
        and metadata.deletion_timestamp is None
        and metadata.annotations == first.metadata.annotations
    )
