"""Changes of a pod that could make it fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from msgspec.structs import replace

from mooring.framework.changes import Change, spelled
from mooring.objects.meta import ResourceList
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
from mooring.objects.requests import CPU, amount_of, is_extended
from mooring.objects.selectors import NodeSelectorTerm
from mooring.objects.taints import Toleration

#: The weight of a required term once it is preferred: the largest possible one.
_HEAVIEST = 100

T = TypeVar("T")


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
