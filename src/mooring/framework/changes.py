"""Changes that could make a pod fit, as values: changes of the pod, of a node, of the cluster.

A change has a text, a size (to rank answers), and methods that apply it to objects. Sizes are a matter of
judgement; `docs/explain.md` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from msgspec.structs import replace

from mooring.objects.devices import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from mooring.objects.meta import KubeObject, ResourceList
from mooring.objects.node import Node
from mooring.objects.node_devices import slices_like
from mooring.objects.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodSpec,
    WeightedPodAffinityTerm,
)
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, amount_of, is_extended
from mooring.objects.selectors import NodeSelectorTerm, SelectorRequirement
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.taints import Taint, Toleration
from mooring.objects.well_known import HOSTNAME, UNSCHEDULABLE_TAINT

#: Taints with this prefix describe the state of a node; a new node does not have them.
_STATE_TAINTS = "node.kubernetes.io/"
#: The weight of a required term once it is preferred: the largest possible one.
_HEAVIEST = 100
_BINARY = (("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """One change. The base class changes nothing."""

    #: A word for programs.
    kind: ClassVar[str] = ""

    @property
    def size(self) -> float:
        """How large the change is; smaller is better."""
        return 1.0

    @property
    def text(self) -> str:
        """What to do; it continues "would fit if you …"."""
        return ""

    @property
    def node_name(self) -> str:
        """The node that it changes; "" if none."""
        return ""

    @property
    def removed_pods(self) -> tuple[str, ...]:
        """The pods that leave, as `namespace/name`."""
        return ()

    def on_pod(self, pod: Pod) -> Pod:
        return pod

    def on_node(self, node: Node) -> Node:
        """For the node that it names."""
        return node

    @property
    def changed_claims(self) -> tuple[str, ...]:
        """The claims that it changes, as `namespace/name`."""
        return ()

    def on_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return claim

    @property
    def resource_claims(self) -> tuple[str, ...]:
        """The claims for devices that it changes, as `namespace/name`."""
        return ()

    def on_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return claim

    def on_claim_template(self, template: ResourceClaimTemplate) -> ResourceClaimTemplate:
        return template

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        """The objects to add. `pods` has the pods of each node, by its name."""
        return []

    def to_data(self) -> dict[str, Any]:
        details = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"kind": self.kind, "text": self.text, "size": round(self.size, 4), **details}


# Changes of the pod


@dataclass(frozen=True, slots=True)
class LowerRequest(Change):
    """Request less of a resource; amounts are integers in the scheduler's units."""

    kind: ClassVar[str] = "lower-request"
    resource: str
    old: int
    new: int

    @property
    def size(self) -> float:
        return (self.old - self.new) / self.old

    @property
    def text(self) -> str:
        old = spelled(self.resource, self.old)
        if not self.new:
            return f"request no {self.resource} (instead of {old})"
        return f"lower the {self.resource} request from {old} to {spelled(self.resource, self.new)}"

    def on_pod(self, pod: Pod) -> Pod:
        return with_request(pod, self.resource, self.new)


@dataclass(frozen=True, slots=True)
class Tolerate(Change):
    """Tolerate taints."""

    kind: ClassVar[str] = "tolerate"
    #: As `key=value:Effect`.
    taints: tuple[str, ...]

    @property
    def size(self) -> float:
        return 0.5 * len(self.taints)

    @property
    def text(self) -> str:
        return f"tolerate {_taint_word(self.taints)} {' and '.join(self.taints)}"

    def on_pod(self, pod: Pod) -> Pod:
        more = [_toleration(taint) for taint in self.taints]
        return _with_spec(pod, tolerations=[*pod.spec.tolerations, *more])


@dataclass(frozen=True, slots=True)
class RaiseMaxSkew(Change):
    """Let a spread constraint be less even."""

    kind: ClassVar[str] = "raise-max-skew"
    index: int
    topology_key: str
    old: int
    new: int

    @property
    def size(self) -> float:
        return 0.25 * (self.new - self.old)

    @property
    def text(self) -> str:
        return f"raise maxSkew over {self.topology_key} from {self.old} to {self.new}"

    def on_pod(self, pod: Pod) -> Pod:
        constraints = pod.spec.topology_spread_constraints
        changed = replace(constraints[self.index], max_skew=self.new)
        return _with_spec(pod, topology_spread_constraints=_put(constraints, self.index, [changed]))


@dataclass(frozen=True, slots=True)
class SoftenSpread(Change):
    """Prefer a spread instead of requiring it."""

    kind: ClassVar[str] = "soften-spread"
    index: int
    topology_key: str

    @property
    def text(self) -> str:
        return (
            f"make the spread over {self.topology_key} preferred instead of required"
            " (whenUnsatisfiable: ScheduleAnyway)"
        )

    def on_pod(self, pod: Pod) -> Pod:
        constraints = pod.spec.topology_spread_constraints
        changed = replace(constraints[self.index], when_unsatisfiable="ScheduleAnyway")
        return _with_spec(pod, topology_spread_constraints=_put(constraints, self.index, [changed]))


@dataclass(frozen=True, slots=True)
class SoftenPodAffinity(Change):
    """Prefer a pod affinity or anti-affinity term instead of requiring it."""

    kind: ClassVar[str] = "soften-pod-affinity"
    index: int
    topology_key: str
    #: What the term selects, for people.
    selects: str
    anti: bool = False

    @property
    def text(self) -> str:
        name = "anti-affinity to" if self.anti else "affinity to"
        pods = f"pods with {self.selects} in one {self.topology_key}"
        return f"make the {name} {pods} preferred instead of required"

    def on_pod(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity or Affinity()
        rules = (
            affinity.pod_anti_affinity if self.anti else affinity.pod_affinity
        ) or PodAffinity()
        preferred = WeightedPodAffinityTerm(
            weight=_HEAVIEST, pod_affinity_term=rules.required[self.index]
        )
        softened = replace(
            rules,
            required=_put(rules.required, self.index, []),
            preferred=[*rules.preferred, preferred],
        )
        changed = (
            replace(affinity, pod_anti_affinity=softened)
            if self.anti
            else replace(affinity, pod_affinity=softened)
        )
        return _with_spec(pod, affinity=changed)


@dataclass(frozen=True, slots=True)
class DropNodeSelector(Change):
    """Drop one label of the nodeSelector."""

    kind: ClassVar[str] = "drop-node-selector"
    key: str
    value: str

    @property
    def text(self) -> str:
        return f"drop {self.key}={self.value} from the nodeSelector"

    def on_pod(self, pod: Pod) -> Pod:
        selector = dict(pod.spec.node_selector or {})
        selector.pop(self.key, None)
        return _with_spec(pod, node_selector=selector or None)


@dataclass(frozen=True, slots=True)
class DropNodeAffinity(Change):
    """Drop one requirement of a required node affinity term."""

    kind: ClassVar[str] = "drop-node-affinity"
    term: int
    #: Its index among the term's expressions; the term's fields follow them.
    line: int
    requirement: str

    @property
    def text(self) -> str:
        return f"drop “{self.requirement}” from the required node affinity"

    def on_pod(self, pod: Pod) -> Pod:
        """A term without requirements matches nothing, so drop the whole affinity instead."""
        affinity = pod.spec.affinity
        assert affinity is not None
        node_affinity = affinity.node_affinity or NodeAffinity()
        required = node_affinity.required
        assert required is not None
        term = _without_line(required.node_selector_terms[self.term], self.line)
        if term.match_expressions or term.match_fields:
            terms = _put(required.node_selector_terms, self.term, [term])
            required = replace(required, node_selector_terms=terms)
        else:
            required = None
        changed = replace(affinity, node_affinity=replace(node_affinity, required=required))
        return _with_spec(pod, affinity=changed)


@dataclass(frozen=True, slots=True)
class DropHostPort(Change):
    """Drop a host port."""

    kind: ClassVar[str] = "drop-host-port"
    port: int
    protocol: str

    @property
    def text(self) -> str:
        return f"drop hostPort {self.port}/{self.protocol}"

    def on_pod(self, pod: Pod) -> Pod:
        spec = pod.spec
        return _with_spec(
            pod,
            containers=[self._without(each) for each in spec.containers],
            init_containers=[self._without(each) for each in spec.init_containers],
        )

    def _without(self, container: Container) -> Container:
        ports = [
            replace(port, host_port=0)
            if port.host_port == self.port and (port.protocol or "TCP") == self.protocol
            else port
            for port in container.ports
        ]
        return replace(container, ports=ports)


@dataclass(frozen=True, slots=True)
class RemoveGates(Change):
    """Remove the scheduling gates of the pod."""

    kind: ClassVar[str] = "remove-gates"
    gates: tuple[str, ...]

    @property
    def size(self) -> float:
        return 0.25 * len(self.gates)

    @property
    def text(self) -> str:
        word = "gate" if len(self.gates) == 1 else "gates"
        return f"remove the scheduling {word} {', '.join(self.gates)}"

    def on_pod(self, pod: Pod) -> Pod:
        return _with_spec(pod, scheduling_gates=[])


# Changes of a node, and of the cluster


@dataclass(frozen=True, slots=True)
class LabelNode(Change):
    """Give a node the labels that the pod asks for."""

    kind: ClassVar[str] = "label-node"
    node: str
    labels: tuple[tuple[str, str], ...]
    removed: tuple[str, ...] = ()

    @property
    def size(self) -> float:
        return 0.5 * (len(self.labels) + len(self.removed))

    @property
    def text(self) -> str:
        parts = [f"{key}={value}" for key, value in self.labels]
        parts += [f"{key}-" for key in self.removed]
        return f"label node {self.node} {' '.join(parts)}"

    @property
    def node_name(self) -> str:
        return self.node

    def on_node(self, node: Node) -> Node:
        labels = {k: v for k, v in node.metadata.labels.items() if k not in self.removed}
        return replace(
            node, metadata=replace(node.metadata, labels={**labels, **dict(self.labels)})
        )


@dataclass(frozen=True, slots=True)
class Uncordon(Change):
    """Make a node schedulable again."""

    kind: ClassVar[str] = "uncordon"
    node: str

    @property
    def size(self) -> float:
        return 0.5

    @property
    def text(self) -> str:
        return f"uncordon node {self.node}"

    @property
    def node_name(self) -> str:
        return self.node

    def on_node(self, node: Node) -> Node:
        taints = [taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key]
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


@dataclass(frozen=True, slots=True)
class DeclareFeatures(Change):
    """Have the kubelet of a node declare features that the pod needs."""

    kind: ClassVar[str] = "declare-features"
    node: str
    features: tuple[str, ...]

    @property
    def size(self) -> float:
        return 0.5 * len(self.features)

    @property
    def text(self) -> str:
        word = "feature" if len(self.features) == 1 else "features"
        names = " and ".join(self.features)
        return f"enable the {word} {names} on node {self.node}, whose kubelet does not declare it"

    @property
    def node_name(self) -> str:
        return self.node

    def on_node(self, node: Node) -> Node:
        declared = [*node.status.declared_features, *self.features]
        return replace(node, status=replace(node.status, declared_features=declared))


@dataclass(frozen=True, slots=True)
class FreeRoom(Change):
    """Evict pods from a node."""

    kind: ClassVar[str] = "free-room"
    node: str
    #: `namespace/name`, from most to least important.
    victims: tuple[str, ...]
    #: The missing resources, as (resource, amount); empty if the pod needs something else.
    lacking: tuple[tuple[str, int], ...] = ()
    #: The number of victims that a disruption budget protects.
    violations: int = 0

    @property
    def size(self) -> float:
        return 1.0 * len(self.victims) + self.violations

    @property
    def text(self) -> str:
        what = " and ".join(f"{spelled(name, amount)} {name}" for name, amount in self.lacking)
        room = f"free {what} on node {self.node}" if what else f"make room on node {self.node}"
        return f"{room}: evict {', '.join(self.victims)}"

    @property
    def node_name(self) -> str:
        return self.node

    @property
    def removed_pods(self) -> tuple[str, ...]:
        return self.victims


@dataclass(frozen=True, slots=True)
class AddNodes(Change):
    """Add empty nodes like an existing one, with its DaemonSet and static pods."""

    kind: ClassVar[str] = "add-node"
    like: str
    count: int = 1

    @property
    def size(self) -> float:
        return 2.0 * self.count

    @property
    def text(self) -> str:
        return f"add {'a node' if self.count == 1 else f'{self.count} nodes'} like {self.like}"

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        template = nodes[self.like]
        names = _free_names(self.like, nodes, self.count)
        copies: list[KubeObject] = []
        for name in names:
            copies.append(_copy_of(template, name))
            of_template = pods.get(self.like, ())
            copies += [_pod_copy(pod, name) for pod in of_template if pod.belongs_to_node]
        return copies


def apply_changes(
    objects: Iterable[KubeObject], pod: str, changes: Sequence[Change]
) -> list[KubeObject]:
    """The objects of the cluster after the changes for the pod `namespace/name`."""
    known = list(objects)
    nodes = {obj.name: obj for obj in known if isinstance(obj, Node)}
    pods: dict[str, list[Pod]] = {}
    for obj in known:
        if isinstance(obj, Pod):
            pods.setdefault(obj.node_name, []).append(obj)
    for change in changes:
        gone = set(change.removed_pods)
        known = [
            _applied(change, obj, pod)
            for obj in known
            if not (isinstance(obj, Pod) and obj.key in gone)
        ]
        slices = [obj for obj in known if isinstance(obj, ResourceSlice)]
        known += with_devices(change, change.added(nodes, pods), slices)
    return known


def with_devices(
    change: Change, added: list[KubeObject], slices: Iterable[ResourceSlice]
) -> list[KubeObject]:
    """The objects that a change adds, with the devices of the nodes among them."""
    if not isinstance(change, AddNodes):
        return added
    known = list(slices)
    nodes = [obj.name for obj in added if isinstance(obj, Node)]
    return [*added, *(each for name in nodes for each in slices_like(known, change.like, name))]


def with_request(pod: Pod, resource: str, amount: int) -> Pod:
    """The pod with this total request, but at least its overhead.

    If several containers request the resource, the largest request is lowered first.
    """
    spec = pod.spec
    left = max(amount - amount_of(resource, spec.overhead.get(resource, ZERO)), 0)
    sidecars = [each for each in spec.init_containers if each.restartable]
    running = [*spec.containers, *sidecars]
    asked = [_asks(each, resource) for each in running]
    excess = sum(asked) - left
    for place in sorted(range(len(asked)), key=lambda i: -asked[i]):
        cut = min(max(excess, 0), asked[place])
        asked[place] -= cut
        excess -= cut
    lowered = dict(zip(map(id, running), asked, strict=True))
    beside = 0
    for each in spec.init_containers:
        if each.restartable:
            beside += lowered[id(each)]
        else:
            lowered[id(each)] = min(_asks(each, resource), max(left - beside, 0))
    changes: dict[str, Any] = {
        "containers": [_asking(each, resource, lowered[id(each)]) for each in spec.containers],
        "init_containers": [
            _asking(each, resource, lowered[id(each)]) for each in spec.init_containers
        ],
    }
    if spec.resources is not None and resource in spec.resources.requests:
        whole = {**spec.resources.requests, resource: _quantity(resource, left)}
        changes["resources"] = replace(spec.resources, requests=whole)
    return _with_spec(pod, **changes)


def spelled(resource: str, amount: int) -> str:
    """The amount as people write it in YAML, exactly: 350m and 9.35 of cpu, 3Gi of memory."""
    if resource == CPU:
        cores, milli = divmod(amount, 1000)
        if not cores:
            return f"{milli}m" if milli else "0"
        return f"{cores}.{milli:03}".rstrip("0").rstrip(".")
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, bits in _BINARY:
            if amount and amount % 2**bits == 0:
                return f"{amount >> bits}{suffix}"
    return str(amount)


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def requirement_text(line: SelectorRequirement) -> str:
    """A line of a selector, for people."""
    values = f" ({', '.join(line.values)})" if line.values else ""
    return f"{line.key} {line.operator}{values}"


def _taint_word(taints: Sequence[str]) -> str:
    return "the taint" if len(taints) == 1 else "the taints"


def _toleration(text: str) -> Toleration:
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return Toleration(key=key, operator="Equal", value=value, effect=effect)


def _asks(container: Container, resource: str) -> int:
    return amount_of(resource, container.resources.requests.get(resource, ZERO))


def _asking(container: Container, resource: str, amount: int) -> Container:
    if _asks(container, resource) == amount:
        return container
    resources = container.resources
    requests: ResourceList = {**resources.requests, resource: _quantity(resource, amount)}
    limits = resources.limits
    if is_extended(resource) and resource in limits:
        # The API requires that both are equal.
        limits = {**limits, resource: _quantity(resource, amount)}
    return replace(container, resources=replace(resources, requests=requests, limits=limits))


def _quantity(resource: str, amount: int) -> Quantity:
    return Quantity(amount, -3) if resource == CPU else Quantity(amount)


def _with_spec(pod: Pod, **changes: Any) -> Pod:
    spec: PodSpec = replace(pod.spec, **changes)
    return replace(pod, spec=spec)


def _put(items: Sequence[T], index: int, instead: Sequence[T]) -> list[T]:
    return [*items[:index], *instead, *items[index + 1 :]]


def _without_line(term: NodeSelectorTerm, line: int) -> NodeSelectorTerm:
    expressions = len(term.match_expressions)
    if line < expressions:
        return replace(term, match_expressions=_put(term.match_expressions, line, []))
    return replace(term, match_fields=_put(term.match_fields, line - expressions, []))


def _free_names(like: str, nodes: Mapping[str, Node], count: int) -> list[str]:
    names: list[str] = []
    number = 1
    while len(names) < count:
        name = f"{like}-copy-{number}"
        if name not in nodes:
            names.append(name)
        number += 1
    return names


def _copy_of(node: Node, name: str) -> Node:
    labels = {
        key: name if value == node.name else value for key, value in node.metadata.labels.items()
    }
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = [taint for taint in node.spec.taints if not taint.key.startswith(_STATE_TAINTS)]
    return replace(
        node,
        metadata=replace(node.metadata, name=name, uid=name, labels=labels),
        spec=replace(node.spec, unschedulable=False, taints=taints),
    )


def _pod_copy(pod: Pod, node_name: str) -> Pod:
    name = f"{pod.name}-{node_name}"
    metadata = replace(pod.metadata, name=name, uid=f"{pod.uid}-{node_name}")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node_name))


def _applied(change: Change, obj: KubeObject, pod: str) -> KubeObject:
    if isinstance(obj, Pod) and obj.key == pod:
        return change.on_pod(obj)
    if isinstance(obj, Node) and obj.name == change.node_name:
        return change.on_node(obj)
    if isinstance(obj, ResourceClaim):
        return change.on_resource_claim(obj)
    if isinstance(obj, ResourceClaimTemplate):
        return change.on_claim_template(obj)
    return change.on_claim(obj) if isinstance(obj, PersistentVolumeClaim) else obj


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
