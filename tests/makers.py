"""Objects for tests: a maker fills in whatever a case does not mention.

Quantities are given as text or numbers (`cpu="500m"`, `cpu=2`), labels and selectors as maps, and
host ports as bare numbers; anything typed is taken as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from mooring.objects.kinds import (
    Namespace,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
    Service,
    ServiceSpec,
)
from mooring.objects.meta import ObjectMeta, OwnerReference, ResourceList
from mooring.objects.node import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus
from mooring.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    RestartRule,
    SchedulingGate,
    SchedulingGroup,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.objects.pod_groups import (
    BasicPolicy,
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from mooring.objects.quantity import Quantity, parse_quantity
from mooring.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)
from mooring.objects.storage import ClaimVolumeSource, Volume
from mooring.objects.taints import Taint, Toleration

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

Amount = str | int | float | Quantity
Amounts = Mapping[str, Amount]


def quantity(amount: Amount) -> Quantity:
    return amount if isinstance(amount, Quantity) else parse_quantity(str(amount))


def resources(amounts: Amounts | None = None, **named: Amount | None) -> ResourceList:
    """`resources({"nvidia.com/gpu": 1}, cpu="500m", memory=None)`: what is None is left out."""
    given = {**(amounts or {}), **{name: n for name, n in named.items() if n is not None}}
    return {name: quantity(amount) for name, amount in given.items()}


def make_container(
    name: str = "c",
    *,
    cpu: Amount | None = None,
    memory: Amount | None = None,
    requests: Amounts | None = None,
    limits: Amounts | None = None,
    image: str = "",
    ports: Iterable[int | ContainerPort] = (),
    restart_policy: str = "",
    restart_actions: Iterable[str] = (),
) -> Container:
    """A container; a bare number among `ports` is a host port."""
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(
            requests=resources(requests, cpu=cpu, memory=memory), limits=resources(limits)
        ),
        ports=[
            ContainerPort(container_port=port, host_port=port) if isinstance(port, int) else port
            for port in ports
        ],
        restart_policy=restart_policy,
        restart_policy_rules=[RestartRule(action=action) for action in restart_actions],
    )


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    created: datetime | None = None,
    deleting: datetime | None = None,
    # What it asks for: of one container, unless `containers` are given.
    cpu: Amount | None = None,
    memory: Amount | None = None,
    requests: Amounts | None = None,
    limits: Amounts | None = None,
    image: str = "",
    ports: Iterable[int | ContainerPort] = (),
    containers: Iterable[Container] | None = None,
    init_containers: Iterable[Container] = (),
    overhead: Amounts | None = None,
    pod_level: Amounts | None = None,
    # Where it is, and where it may go.
    node: str | None = None,
    scheduler: str = "",
    priority: int | None = None,
    priority_class: str = "",
    preemption_policy: str | None = None,
    tolerations: Iterable[Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    spread: Iterable[TopologySpreadConstraint] = (),
    gates: Iterable[str] = (),
    group: str | None = None,
    volumes: Iterable[Volume] = (),
    claims: Iterable[str] = (),
    resource_claims: Iterable[PodResourceClaim] = (),
    host_network: bool = False,
    host_users: bool | None = None,
    grace_period_s: int | None = None,
    # Its status.
    phase: str = "",
    nominated: str | None = None,
    started: datetime | None = None,
    conditions: Iterable[PodCondition] = (),
    **status: Any,
) -> Pod:
    """A pod with one container; its uid is `namespace/name` unless given.

    `claims` names PersistentVolumeClaims to mount; further keywords are fields of the status.
    """
    if containers is None:
        containers = [
            make_container(
                cpu=cpu, memory=memory, requests=requests, limits=limits, image=image, ports=ports
            )
        ]
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}" if uid is None else uid,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            owner_references=[owner] if owner else [],
            creation_timestamp=created,
            deletion_timestamp=deleting,
        ),
        spec=PodSpec(
            node_name=node or "",
            scheduler_name=scheduler,
            priority=priority,
            priority_class_name=priority_class,
            preemption_policy=preemption_policy,
            containers=list(containers),
            init_containers=list(init_containers),
            node_selector=None if node_selector is None else dict(node_selector),
            affinity=affinity,
            tolerations=list(tolerations),
            topology_spread_constraints=list(spread),
            scheduling_gates=[SchedulingGate(name=gate) for gate in gates],
            resources=(
                None if pod_level is None else ResourceRequirements(requests=resources(pod_level))
            ),
            overhead=resources(overhead),
            volumes=[*volumes, *(make_claim_volume(claim) for claim in claims)],
            host_network=host_network,
            host_users=host_users,
            resource_claims=list(resource_claims),
            termination_grace_period_seconds=grace_period_s,
            scheduling_group=None if group is None else SchedulingGroup(pod_group_name=group),
        ),
        status=PodStatus(
            phase=phase,
            nominated_node_name=nominated or "",
            start_time=started,
            conditions=list(conditions),
            **status,
        ),
    )


def make_group(
    name: str = "gang",
    *,
    namespace: str = "default",
    min_count: int | None = None,
    rack_key: str | None = None,
    priority: int | None = None,
    evicted_whole: bool = False,
    conditions: Iterable[PodCondition] = (),
    generation: int = 1,
) -> PodGroup:
    """A pod group: a gang if it has a `min_count`."""
    gang = None if min_count is None else GangPolicy(min_count=min_count)
    return PodGroup(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=f"group:{namespace}/{name}", generation=generation
        ),
        spec=PodGroupSpec(
            scheduling_policy=SchedulingPolicy(
                gang=gang, basic=BasicPolicy() if gang is None else None
            ),
            scheduling_constraints=(
                None
                if rack_key is None
                else SchedulingConstraints(topology=[TopologyConstraint(key=rack_key)])
            ),
            disruption_mode="PodGroup" if evicted_whole else "Pod",
            priority=priority,
        ),
        status=PodGroupStatus(conditions=list(conditions)),
    )


def make_claim_volume(claim: str, *, read_only: bool = False) -> Volume:
    return Volume(
        name=claim,
        persistent_volume_claim=ClaimVolumeSource(claim_name=claim, read_only=read_only),
    )


def make_node(
    name: str = "n",
    *,
    cpu: Amount | None = "4",
    memory: Amount | None = "8Gi",
    pods: Amount | None = "110",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Taint | str] = (),
    zone: str | None = None,
    region: str | None = None,
    hostname: bool = True,
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    conditions: Mapping[str, str] | None = None,
    features: Iterable[str] = (),
    uid: str | None = None,
    **extra: Amount,
) -> Node:
    """A node labelled with its own name, as kubelets do (`hostname=False` leaves that out).

    A taint may be written `key=value:Effect`. `images` gives sizes by name. Further resources go in
    `extra`: `make_node(**{"nvidia.com/gpu": 8}, ephemeral_storage="100Gi")`.
    """
    topology = {HOSTNAME: name if hostname else None, ZONE: zone, REGION: region}
    allocatable = resources(
        {
            resource.replace("ephemeral_storage", "ephemeral-storage"): n
            for resource, n in extra.items()
        },
        cpu=cpu,
        memory=memory,
        pods=pods,
    )
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            uid=name if uid is None else uid,
            labels={**{k: v for k, v in topology.items() if v is not None}, **(labels or {})},
            annotations=dict(annotations or {}),
        ),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=[make_taint(taint) if isinstance(taint, str) else taint for taint in taints],
        ),
        status=NodeStatus(
            allocatable=allocatable,
            capacity=dict(allocatable),
            images=[
                ContainerImage(names=[image], size_bytes=size)
                for image, size in (images or {}).items()
            ],
            conditions=[
                NodeCondition(type=kind, status=state) for kind, state in (conditions or {}).items()
            ],
            declared_features=list(features),
        ),
    )


def make_taint(text: str) -> Taint:
    """`gpu=h100:NoSchedule`, or `gpu:NoSchedule` without a value."""
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return Taint(key=key, value=value, effect=effect)


def make_selector(
    labels: Mapping[str, str] | None = None, *expressions: tuple[str, str, Iterable[str]]
) -> LabelSelector:
    """`make_selector({"app": "web"}, ("tier", "In", ["a", "b"]))`."""
    return LabelSelector(match_labels=dict(labels or {}), match_expressions=_lines(expressions))


def make_node_term(
    *expressions: tuple[str, str, Iterable[str]],
    fields: Iterable[tuple[str, str, Iterable[str]]] = (),
) -> NodeSelectorTerm:
    """`make_node_term(("zone", "In", ["a"]), fields=[("metadata.name", "In", ["n"])])`."""
    return NodeSelectorTerm(match_expressions=_lines(expressions), match_fields=_lines(fields))


def _lines(expressions: Iterable[tuple[str, str, Iterable[str]]]) -> list[SelectorRequirement]:
    return [SelectorRequirement(key=k, operator=op, values=list(vs)) for k, op, vs in expressions]


def make_node_affinity(
    *required: NodeSelectorTerm, preferred: Mapping[int, NodeSelectorTerm] | None = None
) -> Affinity:
    """Required terms (any of them will do), and preferred ones by weight."""
    return Affinity(
        node_affinity=NodeAffinity(
            required=NodeSelector(node_selector_terms=list(required)) if required else None,
            preferred=(
                None
                if preferred is None
                else [PreferredSchedulingTerm(weight=w, preference=t) for w, t in preferred.items()]
            ),
        )
    )


def make_affinity_term(
    labels: Mapping[str, str] | LabelSelector | None = None,
    topology_key: str = HOSTNAME,
    *,
    namespaces: Iterable[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term of pod (anti-)affinity; without labels it has no selector at all."""
    selector = (
        labels if labels is None or isinstance(labels, LabelSelector) else make_selector(labels)
    )
    return PodAffinityTerm(
        label_selector=selector,
        topology_key=topology_key,
        namespaces=list(namespaces),
        namespace_selector=namespace_selector,
    )


def make_pod_affinity(
    *required: PodAffinityTerm,
    preferred: Iterable[tuple[int, PodAffinityTerm]] = (),
    anti: Iterable[PodAffinityTerm] | None = None,
    anti_preferred: Iterable[tuple[int, PodAffinityTerm]] | None = None,
) -> Affinity:
    """Pod affinity in the first two, anti-affinity in the last two; what is not given is absent."""
    affinity = _pod_affinity(required, preferred)
    repulsion = _pod_affinity(anti or (), anti_preferred or ())
    has_anti = anti is not None or anti_preferred is not None
    return Affinity(
        pod_affinity=affinity if affinity != PodAffinity() or not has_anti else None,
        pod_anti_affinity=repulsion if has_anti else None,
    )


def _pod_affinity(
    required: Iterable[PodAffinityTerm], preferred: Iterable[tuple[int, PodAffinityTerm]]
) -> PodAffinity:
    return PodAffinity(
        required=list(required),
        preferred=[WeightedPodAffinityTerm(weight=w, pod_affinity_term=t) for w, t in preferred],
    )


def make_spread(
    topology_key: str = ZONE,
    *,
    max_skew: int = 1,
    hard: bool = True,
    labels: Mapping[str, str] | LabelSelector | None = None,
    **fields: Any,
) -> TopologySpreadConstraint:
    """A topology spread constraint; `hard` is DoNotSchedule, else ScheduleAnyway."""
    selector = (
        labels if labels is None or isinstance(labels, LabelSelector) else make_selector(labels)
    )
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=topology_key,
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        label_selector=selector,
        **fields,
    )


def make_owner(kind: str, name: str, *, uid: str | None = None) -> OwnerReference:
    version = {"ReplicationController": "v1", "Node": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    return OwnerReference(
        api_version=version, kind=kind, name=name, uid=uid or f"{kind}/{name}", controller=True
    )


def make_namespace(name: str, labels: Mapping[str, str] | None = None) -> Namespace:
    return Namespace(
        api_version="v1",
        kind="Namespace",
        metadata=ObjectMeta(name=name, uid=name, labels=dict(labels or {})),
    )


def make_service(
    name: str = "s",
    *,
    selector: Mapping[str, str] | None = None,
    namespace: str = "default",
) -> Service:
    return Service(
        api_version="v1",
        kind="Service",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}"),
        spec=ServiceSpec(selector=None if selector is None else dict(selector)),
    )


def make_pdb(
    name: str = "b",
    *,
    labels: Mapping[str, str] | LabelSelector | None = None,
    allowed: int = 0,
    namespace: str = "default",
    disrupted: Mapping[str, datetime] | None = None,
) -> PodDisruptionBudget:
    selector = (
        labels if labels is None or isinstance(labels, LabelSelector) else make_selector(labels)
    )
    return PodDisruptionBudget(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}"),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict(disrupted or {})
        ),
    )


def make_priority_class(
    name: str,
    value: int,
    *,
    global_default: bool = False,
    preemption_policy: str | None = None,
) -> PriorityClass:
    return PriorityClass(
        api_version="scheduling.k8s.io/v1",
        kind="PriorityClass",
        metadata=ObjectMeta(name=name, uid=name),
        value=value,
        global_default=global_default,
        preemption_policy=preemption_policy,
    )
