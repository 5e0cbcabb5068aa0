"""Scale a workload in a what-if: copies of its pods, or fewer of them, as its controller would choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace as changed

from mooring.errors import InputError
from mooring.explain.room import Template, own_claims
from mooring.objects.controllers import active
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.scenarios.fields import did_you_mean
from mooring.sim.scenarios.workloads import in_deletion_order, ordinal
from mooring.web.workloads import workload_name

#: A typing error must not use up all memory.
MOST_PODS = 100_000


def scaled(objects: Sequence[KubeObject], workload: str, replicas: int) -> list[KubeObject]:
    """`workload` is called as `workload_name` does. Raises InputError."""
    if not 0 <= replicas <= MOST_PODS:
        raise InputError([f"{replicas} replicas: write a number from 0 to {MOST_PODS:,}"])
    pods = [
        obj
        for obj in objects
        if isinstance(obj, Pod) and active(obj) and workload_name(obj) == workload
    ]
    if not pods:
        known = sorted({workload_name(obj) for obj in objects if isinstance(obj, Pod)} - {""})
        raise InputError([f"no workload {workload!r} has pods here{did_you_mean(workload, known)}"])
    if workload.startswith(("DaemonSet ", "Node ")):
        raise InputError([f"{workload} cannot be scaled: it has one pod on each of its nodes"])
    if replicas <= len(pods):
        surplus = {id(pod) for pod in _given_up_first(pods)[: len(pods) - replicas]}
        return [obj for obj in objects if id(obj) not in surplus]
    return [*objects, *_copies(pods[-1], objects, replicas - len(pods))]


def _given_up_first(pods: list[Pod]) -> list[Pod]:
    controller = pods[0].metadata.controller
    if controller is not None and controller.kind == "StatefulSet":
        return sorted(pods, key=ordinal, reverse=True)
    return in_deletion_order(pods)


def _copies(pod: Pod, objects: Sequence[KubeObject], count: int) -> Iterator[KubeObject]:
    """Each has claims of its own if the pod has; they preempt other pods if the pod may."""
    taken = {obj.key for obj in objects if isinstance(obj, Pod)}
    template = Template(pod, claims=tuple(own_claims(pod, objects)))
    number = 0
    while count:
        copy, claims = template.copied(number)
        number += 1
        if copy.key not in taken:
            count -= 1
            yield from claims
            policy = pod.spec.preemption_policy
            yield changed(copy, spec=changed(copy.spec, preemption_policy=policy))
