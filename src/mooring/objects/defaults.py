"""The defaults of the API server, as far as scheduling depends on them.

When an object is created, the API server completes it: a limit becomes a request, a class name a
priority, `matchLabelKeys` become requirements of a selector. Manifests are completed here in the
same way. Defaulting an object that an API server has stored, or that was defaulted here, does not
change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from mooring.objects.claims import BIND_COMPLETED, CLASS_ANNOTATION
from mooring.objects.devices import (
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from mooring.objects.kinds import Namespace, PriorityClass
from mooring.objects.meta import KubeObject, ResourceList
from mooring.objects.node import Node
from mooring.objects.pod import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.objects.pod_groups import DISRUPT_POD, PodGroup, PodGroupSpec
from mooring.objects.priority_classes import PREEMPT, PriorityClasses
from mooring.objects.requests import CPU, MEMORY, container_requests
from mooring.objects.selectors import LabelSelector, SelectorRequirement
from mooring.objects.shared_parts import have_same_parts
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from mooring.objects.taints import Toleration
from mooring.objects.well_known import POD_SCHEDULED

DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
NAME_LABEL = "kubernetes.io/metadata.name"
GRACE_PERIOD_S = 30

#: How long a pod stays on a node in trouble, unless it says otherwise.
TROUBLE_TOLERATIONS = tuple(
    Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)

_GATED = PodCondition(
    type=POD_SCHEDULED,
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)
_HUGE_PAGES = "hugepages-"

S = TypeVar("S", bound=msgspec.Struct)
E = TypeVar("E")
W = TypeVar("W", ExactDeviceRequest, DeviceSubRequest)


class Defaults:
    """The defaults of one cluster: they depend on its priority classes and storage classes."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        objects = list(objects)
        self.priority_classes = PriorityClasses(o for o in objects if isinstance(o, PriorityClass))
        self.storage_class = _default_storage_class(
            [o for o in objects if isinstance(o, StorageClass)]
        )
        #: The last argument and result of `spec`. Pods of one template come one after another and
        #: share the result.
        self._given: PodSpec | None = None
        self._latest: PodSpec | None = None
        #: The last argument and result of `pod`, and the result's derived values.
        self._given_pod: Pod | None = None
        self._latest_pod: Pod | None = None
        self._derived: dict[str, object] | None = None

    def of(self, obj: KubeObject) -> KubeObject:
        """The object as the API server would store it; the same object if nothing is missing."""
        match obj:
            case Pod():
                return self.pod(obj)
            case Node():
                return _node(obj)
            case Namespace():
                labels = {**obj.labels, NAME_LABEL: obj.name}
                return obj if labels == obj.labels else _labelled(obj, labels)
            case PersistentVolumeClaim():
                return self._claim(obj)
            case PersistentVolume():
                return _volume(obj)
            case StorageClass():
                return _changed(obj, volume_binding_mode=obj.volume_binding_mode or "Immediate")
            case ResourceClaim():
                return _changed(obj, spec=_claim_spec(obj.spec))
            case ResourceClaimTemplate():
                spec = _changed(obj.spec, spec=_claim_spec(obj.spec.spec))
                return _changed(obj, spec=spec)
            case PriorityClass():
                return _changed(obj, preemption_policy=obj.preemption_policy or PREEMPT)
            case PodGroup():
                return _changed(obj, spec=self._group(obj.spec))
        return obj

    def pod(self, pod: Pod) -> Pod:
        given, latest = self._given_pod, self._latest_pod
        if given is not None and latest is not None and _is_like(pod, given):
            if self._derived is None:
                self._derived = latest.derived()
            done = replace(pod, spec=latest.spec, status=latest.status)
            done.__dict__.update(self._derived)
            return done
        self._given_pod, self._derived = pod, None
        return self._completed(pod)

    def _completed(self, pod: Pod) -> Pod:
        spec = _merged_label_keys(self.spec(pod.spec), pod.labels)
        status = pod.status
        conditions = status.conditions
        if spec.scheduling_gates and pod.condition(POD_SCHEDULED) is None:
            conditions = [*conditions, _GATED]
        status = _changed(status, phase=status.phase or "Pending", conditions=conditions)
        done = _changed(pod, spec=spec, status=status)
        previous, self._latest_pod = self._latest_pod, done
        if (
            previous is not None
            and previous.namespace == done.namespace
            and have_same_parts(previous.spec, done.spec)
        ):
            done.take_derived_from(previous)
        return done

    def spec(self, spec: PodSpec) -> PodSpec:
        """Apply the defaults that do not depend on labels; the pods of a template share them."""
        if self._latest is None or spec is not self._latest:
            if self._latest is not None and self._given is not None:
                if have_same_parts(self._given, spec):
                    # The spec of a pod that was created already is complete.
                    if self._latest is self._given:
                        return spec
                    return _changed(self._latest, node_name=spec.node_name)
            self._given, self._latest = spec, self._complete(spec)
        return self._latest

    def _complete(self, spec: PodSpec) -> PodSpec:
        spec = _changed(
            spec,
            containers=_each(spec.containers, _requests_from_limits),
            init_containers=_each(spec.init_containers, _requests_from_limits),
        )
        spec = _changed(spec, resources=_pod_level(spec))
        container = _host_network_container if spec.host_network else _container
        return _changed(
            self._prioritised(spec),
            containers=_each(spec.containers, container),
            init_containers=_each(spec.init_containers, container),
            resources=_rounded_resources(spec.resources) if spec.resources else spec.resources,
            overhead=_rounded(spec.overhead),
            volumes=_each(spec.volumes, _pod_volume),
            tolerations=_tolerations(spec.tolerations),
            scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
            termination_grace_period_seconds=(
                GRACE_PERIOD_S
                if spec.termination_grace_period_seconds is None
                else spec.termination_grace_period_seconds
            ),
        )

    def _prioritised(self, spec: PodSpec) -> PodSpec:
        """Resolve the priority class. A priority that is set stays."""
        found = self.priority_classes.of(spec)
        if spec.priority is not None or found is None:
            return spec
        return _changed(
            spec,
            priority=found.value,
            priority_class_name=spec.priority_class_name or found.name,
            preemption_policy=spec.preemption_policy or found.preemption_policy or PREEMPT,
        )

    def _group(self, spec: PodGroupSpec) -> PodGroupSpec:
        spec = _changed(spec, disruption_mode=spec.disruption_mode or DISRUPT_POD)
        found = self.priority_classes.of(spec)
        if spec.priority is not None or found is None:
            return spec
        name = spec.priority_class_name or found.name
        return _changed(spec, priority=found.value, priority_class_name=name)

    def _claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        spec = claim.spec
        requests = _rounded(spec.resources.requests)
        return _changed(
            claim,
            spec=_changed(
                spec,
                resources=_changed(spec.resources, requests=requests),
                volume_mode=spec.volume_mode or "Filesystem",
                storage_class_name=(
                    self.storage_class if _wants_class(claim) else spec.storage_class_name
                ),
            ),
            status=_changed(claim.status, phase=claim.status.phase or "Pending"),
        )


def _default_storage_class(classes: Sequence[StorageClass]) -> str | None:
    """The newest of several default classes; among equally new ones, the first by name."""
    defaults = [
        each
        for each in classes
        if any(each.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS_ANNOTATIONS)
    ]
    defaults.sort(key=lambda each: each.name)
    defaults.sort(key=_created, reverse=True)
    return defaults[0].name if defaults else None


def _created(obj: KubeObject) -> float:
    created = obj.metadata.creation_timestamp
    return created.timestamp() if created else 0.0


def _wants_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim gets the default class: it is not bound and names no class, not even ""."""
    annotations = claim.metadata.annotations
    return (
        claim.spec.storage_class_name is None
        and CLASS_ANNOTATION not in annotations
        and BIND_COMPLETED not in annotations
        and claim.status.phase != "Bound"
    )


def _node(node: Node) -> Node:
    status = node.status
    capacity = _rounded(status.capacity)
    allocatable = _rounded(status.allocatable) if status.allocatable else capacity
    return _changed(node, status=_changed(status, capacity=capacity, allocatable=allocatable))


def _volume(volume: PersistentVolume) -> PersistentVolume:
    """Apply the defaults. A volume without a phase is Bound if it names a claim's UID."""
    spec = volume.spec
    taken = spec.claim_ref is not None and spec.claim_ref.uid
    return _changed(
        volume,
        spec=_changed(
            spec,
            capacity=_rounded(spec.capacity),
            volume_mode=spec.volume_mode or "Filesystem",
        ),
        status=_changed(
            volume.status, phase=volume.status.phase or ("Bound" if taken else "Available")
        ),
    )


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    devices = _changed(spec.devices, requests=_each(spec.devices.requests, _device_request))
    return _changed(spec, devices=devices)


def _device_request(request: DeviceRequest) -> DeviceRequest:
    return _changed(
        request,
        exactly=None if request.exactly is None else _wanted_devices(request.exactly),
        first_available=_each(request.first_available, _wanted_devices),
    )


def _wanted_devices(wanted: W) -> W:
    mode = wanted.allocation_mode or "ExactCount"
    return _changed(
        wanted,
        allocation_mode=mode,
        count=wanted.count or (1 if mode == "ExactCount" else 0),
        tolerations=_each(wanted.tolerations, _device_toleration),
    )


def _device_toleration(toleration: DeviceToleration) -> DeviceToleration:
    return _changed(toleration, operator=toleration.operator or "Equal")


def _requests_from_limits(container: Container) -> Container:
    asked, limits = container.resources.requests, container.resources.limits
    if all(name in asked for name in limits):
        return container
    return replace(container, resources=replace(container.resources, requests={**limits, **asked}))


def _pod_level(spec: PodSpec) -> ResourceRequirements | None:
    """Complete the pod-level resources from the containers and the limits."""
    resources = spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return resources
    asked, limits = dict(resources.requests), dict(resources.limits)
    for name, quantity in container_limits(spec).items():
        if name.startswith(_HUGE_PAGES) and name not in asked:
            limits.setdefault(name, quantity)
    if limits:
        for name, quantity in container_requests(Pod(spec=spec)).items():
            if name in (CPU, MEMORY):
                asked.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES):
                asked.setdefault(name, quantity)
    if asked == resources.requests and limits == resources.limits:
        return resources
    return replace(resources, requests=asked, limits=limits)


def container_limits(spec: PodSpec) -> ResourceList:
    """The sum of the containers' limits, computed like that of requests."""
    containers, init_containers = (
        [
            replace(each, resources=ResourceRequirements(requests=each.resources.limits))
            for each in containers
        ]
        for containers in (spec.containers, spec.init_containers)
    )
    as_requests = PodSpec(containers=containers, init_containers=init_containers)
    return container_requests(Pod(spec=as_requests))


def _container(container: Container) -> Container:
    return _changed(
        container,
        ports=_each(container.ports, _port),
        resources=_rounded_resources(container.resources),
    )


def _host_network_container(container: Container) -> Container:
    return _container(_changed(container, ports=_each(container.ports, _host_network_port)))


def _port(port: ContainerPort) -> ContainerPort:
    return _changed(port, protocol=port.protocol or "TCP")


def _host_network_port(port: ContainerPort) -> ContainerPort:
    return _changed(port, host_port=port.host_port or port.container_port)


def _rounded_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return _changed(
        resources, requests=_rounded(resources.requests), limits=_rounded(resources.limits)
    )


def _rounded(resources: ResourceList) -> ResourceList:
    """The API rounds quantities to thousandths."""
    for quantity in resources.values():
        if quantity.rounded_up() != quantity:
            return {name: each.rounded_up() for name, each in resources.items()}
    return resources


def _pod_volume(volume: Volume) -> Volume:
    if volume.rbd is not None:
        return _changed(volume, rbd=_changed(volume.rbd, pool=volume.rbd.pool or "rbd"))
    if volume.azure_disk is not None:
        disk = volume.azure_disk
        return _changed(volume, azure_disk=_changed(disk, kind=disk.kind or "Shared"))
    return volume


def _tolerations(tolerations: list[Toleration]) -> list[Toleration]:
    missing = [
        trouble
        for trouble in TROUBLE_TOLERATIONS
        if not any(
            t.key in ("", trouble.key) and t.effect in ("", "NoExecute") for t in tolerations
        )
    ]
    return [*tolerations, *missing] if missing else tolerations


def _merged_label_keys(spec: PodSpec, labels: Mapping[str, str]) -> PodSpec:
    """Add `matchLabelKeys` to the selectors as requirements."""

    def spread(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        selector = _merged(constraint.label_selector, labels, constraint.match_label_keys, "In")
        return _changed(constraint, label_selector=selector)

    def term(term: PodAffinityTerm) -> PodAffinityTerm:
        selector = _merged(term.label_selector, labels, term.match_label_keys, "In")
        selector = _merged(selector, labels, term.mismatch_label_keys, "NotIn")
        return _changed(term, label_selector=selector)

    def weighted(each: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        return _changed(each, pod_affinity_term=term(each.pod_affinity_term))

    def pod_affinity(affinity: PodAffinity | None) -> PodAffinity | None:
        if affinity is None:
            return None
        return _changed(
            affinity,
            required=_each(affinity.required, term),
            preferred=_each(affinity.preferred, weighted),
        )

    affinity: Affinity | None = spec.affinity
    if affinity is not None:
        affinity = _changed(
            affinity,
            pod_affinity=pod_affinity(affinity.pod_affinity),
            pod_anti_affinity=pod_affinity(affinity.pod_anti_affinity),
        )
    constraints = _each(spec.topology_spread_constraints, spread)
    return _changed(spec, affinity=affinity, topology_spread_constraints=constraints)


def _merged(
    selector: LabelSelector | None, labels: Mapping[str, str], keys: Sequence[str], operator: str
) -> LabelSelector | None:
    """Add the requirements that the selector lacks; the others were merged before."""
    if selector is None:
        return None
    wanted = [
        SelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key in keys
        if key in labels
    ]
    missing = [each for each in wanted if each not in selector.match_expressions]
    if not missing:
        return selector
    return replace(selector, match_expressions=[*selector.match_expressions, *missing])


def _is_like(pod: Pod, other: Pod) -> bool:
    """Whether two pods come from one template: they share everything but their names."""
    return (
        pod.spec is other.spec
        and pod.status is other.status
        and pod.metadata.labels is other.metadata.labels
        and pod.metadata.namespace == other.metadata.namespace
    )


def _labelled(obj: KubeObject, labels: dict[str, str]) -> KubeObject:
    return replace(obj, metadata=replace(obj.metadata, labels=labels))


def _changed(struct: S, **fields: object) -> S:
    """The struct with these fields; the same struct if nothing changes."""
    for name, value in fields.items():
        if getattr(struct, name) is not value:
            return replace(struct, **fields)
    return struct


def _each(entries: list[E], change: Callable[[E], E]) -> list[E]:
    """The changed entries; the same list if no entry changes."""
    if not entries:
        return entries
    changed = [change(entry) for entry in entries]
    for before, after in zip(entries, changed, strict=True):
        if before is not after:
            return changed
    return entries
