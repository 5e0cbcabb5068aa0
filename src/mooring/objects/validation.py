"""What is wrong with an object on its own, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mooring.objects.device_validation import claim_problems, class_problems, slice_problems
from mooring.objects.devices import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.objects.kinds import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    JobSpec,
    PodDisruptionBudget,
    PodTemplate,
    PriorityClass,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    StatefulSet,
)
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import (
    DISRUPT_POD,
    DISRUPT_POD_GROUP,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    Workload,
)
from mooring.objects.pod_validation import (
    EFFECTS,
    Problem,
    amounts_problems,
    labels_problems,
    node_selector_problems,
    selector_problems,
    spec_problems,
)
from mooring.objects.provisioners import VOLUME_TOPOLOGY, VolumeTopology
from mooring.objects.selectors import LabelSelector, compile_selector, label_key_problem
from mooring.objects.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.objects.taints import Taint

#: More pods than any real controller has.
MOST_REPLICAS = 1_000_000

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME = 253
#: How many pod groups a Workload may have.
_MOST_GROUP_TEMPLATES = 8
_MOST_GROUP_CLAIMS = 4
_HIGHEST_USER_PRIORITY = 1_000_000_000
_NODE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "storage")
_NODE_RESOURCE_PREFIXES = ("hugepages-", "attachable-volumes-")


def problems_of(obj: KubeObject) -> Iterator[Problem]:
    """The path of each field that is wrong, and what is wrong with it."""
    yield from metadata_problems(obj.metadata)
    match obj:
        case Pod():
            yield from spec_problems(obj.spec, "spec")
        case Node():
            yield from _node(obj)
        case ReplicationController():
            yield from _count(obj.spec.replicas, "spec.replicas")
            yield from _template(obj.spec.template, "spec.template")
            yield from _selects(obj.spec.selector, obj.spec.template, "spec.selector")
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from _workload(obj.spec, required=obj.api_version.endswith("/v1"))
        case Job():
            yield from _job(obj.spec, "spec")
        case CronJob():
            yield from _job(obj.spec.job_template.spec, "spec.jobTemplate.spec")
        case PodDisruptionBudget():
            yield from selector_problems(obj.spec.selector, "spec.selector")
        case PriorityClass():
            yield from _priority_class(obj)
        case PersistentVolumeClaim():
            yield from selector_problems(obj.spec.selector, "spec.selector")
            requests = obj.spec.resources.requests
            yield from amounts_problems(requests, "spec.resources.requests", _any_name)
        case PersistentVolume():
            yield from amounts_problems(obj.spec.capacity, "spec.capacity", _any_name)
            affinity = obj.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                yield from node_selector_problems(affinity.required, "spec.nodeAffinity.required")
        case StorageClass():
            if obj.volume_binding_mode not in (None, "Immediate", "WaitForFirstConsumer"):
                yield "volumeBindingMode", "must be Immediate or WaitForFirstConsumer"
            said = obj.metadata.annotations.get(VOLUME_TOPOLOGY)
            if said is not None and said not in list(VolumeTopology):
                yield f"metadata.annotations[{VOLUME_TOPOLOGY}]", "must be zone, node or none"
        case CSIStorageCapacity():
            yield from selector_problems(obj.node_topology, "nodeTopology")
        case ResourceClaim():
            yield from claim_problems(obj.spec.devices, "spec.devices")
        case ResourceClaimTemplate():
            yield from claim_problems(obj.spec.spec.devices, "spec.spec.devices")
        case DeviceClass():
            yield from class_problems(obj.spec, "spec")
        case ResourceSlice():
            yield from slice_problems(obj.spec, "spec")
        case PodGroup():
            yield from _pod_group(obj.spec, "spec")
        case Workload():
            yield from _templates(obj.spec.pod_group_templates, "spec.podGroupTemplates")


def metadata_problems(metadata: ObjectMeta, *, of_labels: bool = True) -> Iterator[Problem]:
    if not metadata.name and not metadata.generate_name:
        yield "metadata.name", "is missing; every object needs a name"
    elif metadata.name and not _is_name(metadata.name):
        yield (
            "metadata.name",
            f"{metadata.name!r} is not a name; use lower-case letters, digits, '-' and '.', "
            "with a letter or digit at both ends",
        )
    if metadata.namespace and not _is_name(metadata.namespace):
        yield (
            "metadata.namespace",
            f"{metadata.namespace!r} is not a name; use lower-case letters, digits and '-'",
        )
    if of_labels:
        yield from labels_problems(metadata.labels, "metadata.labels")


def _pod_group(spec: PodGroupSpec | PodGroupTemplate, path: str) -> Iterator[Problem]:
    policy, constraints = spec.scheduling_policy, spec.scheduling_constraints
    if (policy.basic is None) == (policy.gang is None):
        yield f"{path}.schedulingPolicy", "must have exactly one of basic and gang"
    if policy.gang is not None and policy.gang.min_count < 1:
        yield f"{path}.schedulingPolicy.gang.minCount", "must be 1 or more"
    topology = [] if constraints is None else constraints.topology
    if len(topology) > 1:
        yield f"{path}.schedulingConstraints.topology", "must have at most one entry"
    for index, constraint in enumerate(topology):
        if problem := label_key_problem(constraint.key):
            yield f"{path}.schedulingConstraints.topology[{index}].key", problem
    if len(spec.resource_claims) > _MOST_GROUP_CLAIMS:
        yield f"{path}.resourceClaims", f"must have at most {_MOST_GROUP_CLAIMS} entries"
    if spec.disruption_mode not in (None, DISRUPT_POD, DISRUPT_POD_GROUP):
        yield f"{path}.disruptionMode", f"must be {DISRUPT_POD} or {DISRUPT_POD_GROUP}"


def _templates(templates: Sequence[PodGroupTemplate], path: str) -> Iterator[Problem]:
    if not 1 <= len(templates) <= _MOST_GROUP_TEMPLATES:
        yield path, f"must have between 1 and {_MOST_GROUP_TEMPLATES} entries"
    for index, template in enumerate(templates):
        if not template.name:
            yield f"{path}[{index}].name", "is missing"
        yield from _pod_group(template, f"{path}[{index}]")


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _node(node: Node) -> Iterator[Problem]:
    for field in ("capacity", "allocatable"):
        amounts = getattr(node.status, field)
        yield from amounts_problems(amounts, f"status.{field}", _node_resource)
    yield from _taints(node.spec.taints)


def _node_resource(name: str) -> str | None:
    if "/" in name or name in _NODE_RESOURCES or name.startswith(_NODE_RESOURCE_PREFIXES):
        return None
    return (
        f"{name!r} is not a resource of nodes; use cpu, memory, pods, ephemeral-storage, "
        f"hugepages-… or a vendor's name as example.com/{name}"
    )


def _any_name(name: str) -> str | None:
    return None


def _taints(taints: Sequence[Taint]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"spec.taints[{index}]"
        if problem := label_key_problem(taint.key):
            yield f"{at}.key", f"{taint.key!r} is not a taint's key: {problem}"
        if taint.effect not in EFFECTS:
            yield f"{at}.effect", f"must be {', '.join(EFFECTS[:-1])} or {EFFECTS[-1]}"
        if (taint.key, taint.effect) in seen:
            yield at, "repeats the key and effect of another taint; keep one of them"
        seen.add((taint.key, taint.effect))


def _workload(spec: ReplicaSetSpec, *, required: bool) -> Iterator[Problem]:
    yield from _count(spec.replicas, "spec.replicas")
    yield from _template(spec.template, "spec.template")
    if spec.selector is None:
        if required:
            yield "spec.selector", "is missing; repeat the template's labels under matchLabels"
        return
    yield from selector_problems(spec.selector, "spec.selector")
    yield from _selects(spec.selector, spec.template, "spec.selector")


def _job(spec: JobSpec, path: str) -> Iterator[Problem]:
    yield from _count(spec.parallelism, f"{path}.parallelism")
    yield from _count(spec.completions, f"{path}.completions")
    yield from _template(spec.template, f"{path}.template")
    if spec.completion_mode not in (None, "NonIndexed", "Indexed"):
        yield f"{path}.completionMode", "must be NonIndexed or Indexed"
    # Without either of the two, the API server sets both to 1.
    is_sized = spec.completions is not None or spec.parallelism is None
    if spec.completion_mode == "Indexed" and not is_sized:
        yield f"{path}.completions", "is missing; an Indexed Job needs it"


def _count(count: int | None, path: str) -> Iterator[Problem]:
    if count is None:
        return
    if count < 0:
        yield path, f"{count} is negative; use 0 or more"
    elif count > MOST_REPLICAS:
        yield path, f"{count} pods are too many; use {MOST_REPLICAS:,} or fewer"


def _template(template: PodTemplate | None, path: str) -> Iterator[Problem]:
    if template is None:
        yield path, "is missing; describe the pods to make"
        return
    yield from labels_problems(template.metadata.labels, f"{path}.metadata.labels")
    yield from spec_problems(template.spec, f"{path}.spec")


def _selects(
    selector: LabelSelector | dict[str, str] | None, template: PodTemplate | None, path: str
) -> Iterator[Problem]:
    """A controller must select its own pods, or it would create pods forever."""
    if not selector or template is None:
        return
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    try:
        compiled = compile_selector(selector)
    except ValueError:
        return
    if not compiled.matches(template.metadata.labels):
        yield path, "does not match the labels of the template; make them agree"


def _priority_class(priority_class: PriorityClass) -> Iterator[Problem]:
    value = priority_class.value
    system = priority_class.name.startswith("system-")
    if value >= 2**31 or value < -(2**31) or (value > _HIGHEST_USER_PRIORITY and not system):
        yield "value", f"{value} is out of range; use {_HIGHEST_USER_PRIORITY} or less"
    if priority_class.preemption_policy not in (None, "PreemptLowerPriority", "Never"):
        yield "preemptionPolicy", "must be PreemptLowerPriority or Never"
