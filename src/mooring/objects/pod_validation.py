"""What is wrong with a pod's spec, in a pod or in a controller's template.

A spec is refused if the API server refuses it and a placement could depend on the reason. A
container without an image is not checked; a request above its limit is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mooring.objects.meta import ResourceList
from mooring.objects.pod import (
    Affinity,
    Container,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from mooring.objects.quantity import Quantity
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended
from mooring.objects.selectors import (
    LABEL_OPERATORS,
    NAME_FIELD,
    NODE_OPERATORS,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_requirement,
    label_key_problem,
    label_value_problem,
)
from mooring.objects.taints import Toleration

#: The path of a field, and what is wrong with it.
Problem = tuple[str, str]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICIES = ("Honor", "Ignore")

_CONTAINER_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
_LAST_PORT = 65535
_HEAVIEST = 100
_INT32 = range(-(2**31), 2**31)


def spec_problems(spec: PodSpec, path: str) -> Iterator[Problem]:
    yield from _containers(spec, path)
    yield from _pod_resources(spec, path)
    yield from amounts_problems(spec.overhead, f"{path}.overhead", _container_resource)
    yield from labels_problems(spec.node_selector or {}, f"{path}.nodeSelector")
    if spec.affinity is not None:
        yield from _affinity(spec.affinity, f"{path}.affinity")
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    yield from _spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    if spec.priority is not None and spec.priority not in _INT32:
        yield f"{path}.priority", f"{spec.priority} does not fit 32 bits; use a smaller number"
    if spec.preemption_policy not in (None, "PreemptLowerPriority", "Never"):
        yield _choice(f"{path}.preemptionPolicy", "PreemptLowerPriority", "Never")


# Resources


def _containers(spec: PodSpec, path: str) -> Iterator[Problem]:
    if not spec.containers:
        yield f"{path}.containers", "is empty; a pod needs at least one container"
    seen: set[str] = set()
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            at = f"{path}.{field}[{index}]"
            if container.name and container.name in seen:
                yield f"{at}.name", f"{container.name!r} is taken by another container; rename it"
            seen.add(container.name)
            yield from _resources(container.resources, f"{at}.resources", _container_resource)
            yield from _ports(container, at, host_network=spec.host_network)


def _pod_resources(spec: PodSpec, path: str) -> Iterator[Problem]:
    if spec.resources is not None:
        yield from _resources(spec.resources, f"{path}.resources", _pod_resource)


NameProblem = Callable[[str], str | None]


def _resources(resources: ResourceRequirements, path: str, named: NameProblem) -> Iterator[Problem]:
    yield from amounts_problems(resources.requests, f"{path}.requests", named)
    yield from amounts_problems(resources.limits, f"{path}.limits", named)
    for name, asked in resources.requests.items():
        limit = resources.limits.get(name)
        if limit is not None and asked.exceeds(limit):
            yield (
                _entry(f"{path}.requests", name),
                f"{asked} is more than the limit of {limit}; lower it, or raise the limit",
            )


def amounts_problems(amounts: ResourceList, path: str, named: NameProblem) -> Iterator[Problem]:
    for name, quantity in amounts.items():
        problem = named(name) or _amount(name, quantity)
        if problem is not None:
            yield _entry(path, name), problem


def _amount(name: str, quantity: Quantity) -> str | None:
    if quantity.negative:
        return f"{quantity} is negative; use 0 or more"
    if not quantity.fits(-3 if name == CPU else 0):
        return "is more than can be counted in 64 bits; use a smaller amount"
    if is_extended(name) and quantity.rounded_up(0) != quantity:
        return f"{quantity} is not whole; {name} is counted in whole units"
    return None


def _container_resource(name: str) -> str | None:
    if name in _CONTAINER_RESOURCES or name.startswith("hugepages-"):
        return None
    if "/" not in name:
        return (
            f"{name!r} is not a resource of containers; use cpu, memory, ephemeral-storage, "
            f"hugepages-… or a vendor's name as example.com/{name}"
        )
    problem = label_key_problem(name)
    return f"{name!r} is not a resource name: {problem}" if problem else None


def _pod_resource(name: str) -> str | None:
    if name in (CPU, MEMORY) or name.startswith("hugepages-"):
        return None
    return f"{name!r} cannot be set for a whole pod; use cpu, memory or hugepages-…"


def _ports(container: Container, path: str, *, host_network: bool) -> Iterator[Problem]:
    for index, port in enumerate(container.ports):
        at = f"{path}.ports[{index}]"
        if not 0 <= port.host_port <= _LAST_PORT:
            yield f"{at}.hostPort", f"{port.host_port} is not a port; use 1 to {_LAST_PORT}"
        elif host_network and port.host_port not in (0, port.container_port):
            yield (
                f"{at}.hostPort",
                f"{port.host_port} differs from containerPort {port.container_port}; "
                "with hostNetwork they must agree",
            )
        if not 1 <= port.container_port <= _LAST_PORT:
            yield (
                f"{at}.containerPort",
                f"{port.container_port} is not a port; use 1 to {_LAST_PORT}",
            )
        if port.protocol not in ("", *PROTOCOLS):
            yield _choice(f"{at}.protocol", *PROTOCOLS)


# Constraints on nodes


def _affinity(affinity: Affinity, path: str) -> Iterator[Problem]:
    if affinity.node_affinity is not None:
        at = f"{path}.nodeAffinity"
        if affinity.node_affinity.required is not None:
            yield from node_selector_problems(affinity.node_affinity.required, f"{at}.{_REQUIRED}")
        for index, preferred in enumerate(affinity.node_affinity.preferred or ()):
            entry = f"{at}.{_PREFERRED}[{index}]"
            yield from _weight(preferred.weight, entry)
            yield from _node_term(preferred.preference, f"{entry}.preference")
    yield from _pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    yield from _pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _weight(weight: int, path: str) -> Iterator[Problem]:
    if not 1 <= weight <= _HEAVIEST:
        yield f"{path}.weight", f"{weight} is out of range; use 1 to {_HEAVIEST}"


def node_selector_problems(selector: NodeSelector, path: str) -> Iterator[Problem]:
    if not selector.node_selector_terms:
        yield f"{path}.nodeSelectorTerms", "is empty, so no node could match; add a term"
    for index, term in enumerate(selector.node_selector_terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{index}]")


def _node_term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for index, line in enumerate(term.match_expressions):
        yield from _requirement(line, f"{path}.matchExpressions[{index}]", NODE_OPERATORS)
    for index, line in enumerate(term.match_fields):
        at = f"{path}.matchFields[{index}]"
        if line.key != NAME_FIELD:
            yield (
                f"{at}.key",
                f"{line.key!r} is not a field of nodes to select by; use {NAME_FIELD}",
            )
        if line.operator not in ("In", "NotIn"):
            yield _choice(f"{at}.operator", "In", "NotIn")
        if len(line.values) != 1:
            yield f"{at}.values", f"must be exactly one name, not {len(line.values)}"


def _requirement(
    line: SelectorRequirement, path: str, operators: tuple[str, ...]
) -> Iterator[Problem]:
    if line.operator not in operators:
        yield _choice(f"{path}.operator", *operators)
        return
    try:
        compile_requirement(line.key, line.operator, tuple(line.values), operators)
    except ValueError as error:
        yield path, f"{error}; correct it or leave it out"


def _pod_affinity(affinity: PodAffinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required):
        yield from _affinity_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred):
        entry = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(weighted.weight, entry)
        yield from _affinity_term(weighted.pod_affinity_term, f"{entry}.podAffinityTerm")


def _affinity_term(term: PodAffinityTerm, path: str) -> Iterator[Problem]:
    yield from _topology_key(term.topology_key, path)
    yield from selector_problems(term.label_selector, f"{path}.labelSelector")
    yield from selector_problems(term.namespace_selector, f"{path}.namespaceSelector")


def _topology_key(key: str, path: str) -> Iterator[Problem]:
    if not key:
        yield f"{path}.topologyKey", "is missing; name a node label, as kubernetes.io/hostname"
    elif problem := label_key_problem(key):
        yield f"{path}.topologyKey", f"{key!r} is not a label key: {problem}"


def selector_problems(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    if selector is None:
        return
    yield from labels_problems(selector.match_labels, f"{path}.matchLabels")
    for index, line in enumerate(selector.match_expressions):
        yield from _requirement(line, f"{path}.matchExpressions[{index}]", LABEL_OPERATORS)


def labels_problems(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    for key, value in labels.items():
        if problem := label_key_problem(key):
            yield _entry(path, key), f"{key!r} is not a label key: {problem}"
        elif problem := label_value_problem(value):
            yield _entry(path, key), f"{value!r} is not a label value: {problem}"


def _toleration(toleration: Toleration, path: str) -> Iterator[Problem]:
    if toleration.operator not in ("", "Equal", "Exists"):
        yield _choice(f"{path}.operator", "Equal", "Exists")
    elif not toleration.key and toleration.operator != "Exists":
        yield (
            f"{path}.key",
            "is missing; name a taint's key, or use operator: Exists for all taints",
        )
    elif toleration.operator == "Exists" and toleration.value:
        yield f"{path}.value", "means nothing with operator Exists; leave it out, or use Equal"
    if toleration.effect not in ("", *EFFECTS):
        yield _choice(f"{path}.effect", *EFFECTS)
    elif toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield f"{path}.tolerationSeconds", "needs effect: NoExecute; set that, or leave this out"


def _spread(constraints: Sequence[TopologySpreadConstraint], path: str) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(constraints):
        at = f"{path}[{index}]"
        if each.max_skew < 1:
            yield f"{at}.maxSkew", f"{each.max_skew} is too small; use 1 or more"
        yield from _topology_key(each.topology_key, at)
        if each.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            yield _choice(f"{at}.whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway")
        if each.min_domains is not None:
            if each.min_domains < 1:
                yield f"{at}.minDomains", f"{each.min_domains} is too small; use 1 or more"
            elif each.when_unsatisfiable != "DoNotSchedule":
                yield f"{at}.minDomains", "needs whenUnsatisfiable: DoNotSchedule"
        if each.node_affinity_policy not in (None, *POLICIES):
            yield _choice(f"{at}.nodeAffinityPolicy", *POLICIES)
        if each.node_taints_policy not in (None, *POLICIES):
            yield _choice(f"{at}.nodeTaintsPolicy", *POLICIES)
        yield from selector_problems(each.label_selector, f"{at}.labelSelector")
        what = (each.topology_key, each.when_unsatisfiable)
        if what in seen:
            yield at, "repeats the topologyKey and whenUnsatisfiable of another; keep one of them"
        seen.add(what)


def _choice(path: str, *choices: str) -> Problem:
    return path, f"must be {', '.join(choices[:-1])} or {choices[-1]}"


def _entry(path: str, key: str) -> str:
    """`requests.cpu`, and `requests[nvidia.com/gpu]`."""
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{key}]"
