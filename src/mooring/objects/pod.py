"""Pod: the fields that a scheduler reads, and values derived from them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mooring.objects import requests
from mooring.objects.affinity import PodTerms, compile_pod_terms
from mooring.objects.cached_property import cached_property
from mooring.objects.empties import NO_ITEMS, NO_KEYS
from mooring.objects.meta import KubeObject, Part, ResourceList
from mooring.objects.quantity import ZERO
from mooring.objects.requests import Amounts
from mooring.objects.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from mooring.objects.storage import Volume
from mooring.objects.taints import Toleration

DEFAULT_SCHEDULER = "default-scheduler"


class ContainerPort(Part, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""
    name: str = ""


class ResourceClaimName(Part, frozen=True):
    name: str = ""
    request: str = ""


class ResourceRequirements(Part, frozen=True):
    requests: ResourceList = NO_KEYS
    limits: ResourceList = NO_KEYS
    claims: list[ResourceClaimName] = NO_ITEMS


class RestartRule(Part, frozen=True):
    action: str = ""


class Container(Part, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = NO_ITEMS
    restart_policy: str = ""
    restart_policy_rules: list[RestartRule] = NO_ITEMS

    @property
    def restartable(self) -> bool:
        """Whether this init container is a sidecar: it keeps running beside the others."""
        return self.restart_policy == "Always"


class PodAffinityTerm(Part, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = NO_ITEMS
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] = NO_ITEMS
    mismatch_label_keys: list[str] = NO_ITEMS


class WeightedPodAffinityTerm(Part, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Part, frozen=True):
    """The value of podAffinity and of podAntiAffinity."""

    required: list[PodAffinityTerm] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PreferredSchedulingTerm(Part, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Part, frozen=True):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    #: None and an empty list differ: only a missing list lets the plugin skip scoring.
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Part, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Part, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = NO_ITEMS


class SchedulingGate(Part, frozen=True):
    name: str = ""


class PodResourceClaim(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Part, frozen=True):
    #: A PodGroup in the pod's namespace.
    pod_group_name: str = ""


class PodSpec(Part, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] = NO_ITEMS
    init_containers: list[Container] = NO_ITEMS
    #: None and an empty map differ: only a missing selector lets NodeAffinity skip.
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = NO_ITEMS
    topology_spread_constraints: list[TopologySpreadConstraint] = NO_ITEMS
    scheduling_gates: list[SchedulingGate] = NO_ITEMS
    resources: ResourceRequirements | None = None
    overhead: ResourceList = NO_KEYS
    volumes: list[Volume] = NO_ITEMS
    host_network: bool = False
    host_users: bool | None = None
    resource_claims: list[PodResourceClaim] = NO_ITEMS
    runtime_class_name: str | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None

    def __post_init__(self) -> None:
        """Drop volumes that no plugin reads.

        Each pod has a token volume with its own name, so otherwise no two specs would be equal.
        """
        if self.volumes:
            volumes = [volume for volume in self.volumes if volume.matters]
            if len(volumes) < len(self.volumes):
                msgspec.structs.force_setattr(self, "volumes", volumes)


class PodCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class ContainerStatus(Part, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = NO_KEYS


class PodResourceClaimStatus(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Part, frozen=True):
    """Which request of the claim serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Part, frozen=True):
    """The claim that the scheduler created for the pod's extended resources."""

    request_mappings: list[ContainerExtendedResourceRequest] = NO_ITEMS
    resource_claim_name: str = ""


class PodStatus(Part, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: list[PodCondition] = NO_ITEMS
    container_statuses: list[ContainerStatus] = NO_ITEMS
    init_container_statuses: list[ContainerStatus] = NO_ITEMS
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = NO_KEYS
    resource_claim_statuses: list[PodResourceClaimStatus] = NO_ITEMS
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


#: A pod's namespace and its labels.
SelectorKey = tuple[str, frozenset[tuple[str, str]]]


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def node_name(self) -> str:
        return self.spec.node_name

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or DEFAULT_SCHEDULER

    @property
    def finished(self) -> bool:
        """Whether the pod has run to its end. It then holds nothing on its node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def belongs_to_node(self) -> bool:
        """Whether this is a DaemonSet's pod or a static pod: a drain leaves it on its node."""
        controller = self.metadata.controller
        return controller is not None and controller.kind in ("DaemonSet", "Node")

    @property
    def group_name(self) -> str:
        """The name of the pod's PodGroup; "" if it is in none."""
        group = self.spec.scheduling_group
        return "" if group is None else group.pod_group_name

    @property
    def group_key(self) -> str:
        """`namespace/name` of the pod's PodGroup; "" if it is in none."""
        group = self.spec.scheduling_group
        return "" if group is None else f"{self.metadata.namespace}/{group.pod_group_name}"

    @cached_property
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """The (address, protocol, port) of every host port of the pod."""
        sidecars = (c for c in self.spec.init_containers if c.restartable)
        return tuple(
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
            for container in (*sidecars, *self.spec.containers)
            for port in container.ports
            if port.host_port > 0
        )

    @cached_property
    def affinity_terms(self) -> PodTerms:
        affinity = self.spec.affinity or Affinity()
        return compile_pod_terms(self.namespace, affinity.pod_affinity, affinity.pod_anti_affinity)

    @property
    def label_items(self) -> frozenset[tuple[str, str]]:
        """The labels as a value that can be a dictionary key."""
        return self.selector_key[1]

    @cached_property
    def selector_key(self) -> SelectorKey:
        """What label selectors read: equal for pods that no selector can distinguish."""
        return self.metadata.namespace, frozenset(self.metadata.labels.items())

    @cached_property
    def requests(self) -> Amounts:
        """What the pod requests from a node."""
        if _has_run(self):
            return requests.amounts(requests.spec_requests(self))
        return requests.amounts(self.held_resources)

    @cached_property
    def scoring_requests(self) -> Amounts:
        """What scoring by free resources assumes that the pod requests."""
        if requests.needs_no_defaults(self):
            return self.requests
        return requests.amounts(requests.scoring_requests(self))

    @cached_property
    def held(self) -> Amounts:
        """What the pod holds on the node it is on. Before it runs there that is what it requests."""
        return requests.amounts(self.held_resources) if _has_run(self) else self.requests

    @cached_property
    def held_resources(self) -> ResourceList:
        """As `held`, with exact quantities and every requested resource."""
        return requests.held_requests(self) if _has_run(self) else requests.spec_requests(self)

    @cached_property
    def held_non_zero(self) -> tuple[int, int]:
        """The cpu (milli) and memory (bytes) that scoring assumes the pod holds."""
        if not _has_run(self) and requests.needs_no_defaults(self):
            return self.held.get(requests.CPU, 0), self.held.get(requests.MEMORY, 0)
        resources = requests.held_non_zero(self, self.held_resources)
        return (
            resources.get(requests.CPU, ZERO).milli_value,
            resources.get(requests.MEMORY, ZERO).value,
        )

    def placed_on(self, node_name: str) -> Pod:
        """This pod as it is once bound to the node."""
        placed = msgspec.structs.replace(
            self, spec=msgspec.structs.replace(self.spec, node_name=node_name)
        )
        # No derived value depends on the node.
        placed.__dict__.update(self.__dict__)
        return placed

    def with_status(self, **changes: object) -> Pod:
        changed = msgspec.structs.replace(
            self, status=msgspec.structs.replace(self.status, **changes)
        )
        changed.__dict__.update(self.__dict__)
        if not _hold_the_same(self, changed):
            for name in _FROM_STATUS:
                changed.__dict__.pop(name, None)
        return changed

    def take_derived_from(self, other: Pod) -> None:
        """Copy the derived values of another pod with the same namespace and an equal spec."""
        mine = self.__dict__
        if _hold_the_same(self, other):
            values = mine["_from_spec_and_status"] = other._from_spec_and_status
            mine.update(values)
        else:
            for name in _FROM_SPEC:
                mine[name] = getattr(other, name)
        if self.metadata.labels is other.metadata.labels:
            mine.setdefault("selector_key", other.selector_key)

    @cached_property
    def _from_spec_and_status(self) -> dict[str, object]:
        """Pods that are alike have one of these: with it, ten values are cached, the most that fit."""
        return {name: getattr(self, name) for name in _FROM_SPEC_AND_STATUS}

    def derived(self) -> dict[str, object]:
        """What another pod of the same template can take over: all derived values but the key."""
        names = (*_FROM_SPEC_AND_STATUS, "selector_key")
        return {name: getattr(self, name) for name in names}

    def condition(self, kind: str) -> PodCondition | None:
        return next((c for c in self.status.conditions if c.type == kind), None)


def _hold_the_same(one: Pod, other: Pod) -> bool:
    """Whether the statuses of two pods agree on what the pods hold."""
    if not _has_run(one) and not _has_run(other):
        return True
    a, b = one.status, other.status
    return (
        a.container_statuses == b.container_statuses
        and a.init_container_statuses == b.init_container_statuses
        and a.resources == b.resources
        and a.allocated_resources == b.allocated_resources
        and one.condition(requests.RESIZE_PENDING) == other.condition(requests.RESIZE_PENDING)
    )


def _has_run(pod: Pod) -> bool:
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources)


#: The values derived from namespace and spec alone, and those that also depend on the status.
_FROM_SPEC = ("affinity_terms", "host_ports", "requests", "scoring_requests")
_FROM_SPEC_AND_STATUS = (*_FROM_SPEC, "held", "held_non_zero", "held_resources")
_FROM_STATUS = ("held", "held_non_zero", "held_resources", "_from_spec_and_status")
