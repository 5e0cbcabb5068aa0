"""LimitRange: default requests and limits of containers, and the sizes that a namespace allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from mooring.objects.admission.refusal import Refusal, spelled
from mooring.objects.defaults import container_limits
from mooring.objects.meta import ResourceList
from mooring.objects.pod import Container, Pod, PodSpec
from mooring.objects.policies import LimitRange, LimitRangeItem
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.requests import CPU, MEMORY, container_requests
from mooring.objects.storage import PersistentVolumeClaim

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"

#: A limit of a LimitRange: type, resource, amount, requests, limits → the problem, if there is one.
_Rule = Callable[[str, str, Quantity, ResourceList, ResourceList], str | None]


class LimitRanges:
    """The limit ranges of a cluster, by namespace."""

    def __init__(self, ranges: Iterable[LimitRange] = ()) -> None:
        self._of: dict[str, list[list[LimitRangeItem]]] = {}
        for each in sorted(ranges, key=lambda each: each.name):
            items = [_complete(item) for item in each.spec.limits]
            self._of.setdefault(each.namespace, []).append(items)
        #: The last argument and result of `with_defaults`, so that the pods of a template share
        #: one spec, or their containers if they differ in other parts.
        self._given: tuple[str, PodSpec] = "", PodSpec()
        self._result = PodSpec()

    def __bool__(self) -> bool:
        return bool(self._of)

    def with_defaults(self, namespace: str, spec: PodSpec) -> PodSpec:
        """The spec with the default requests and limits of its namespace."""
        ranges = self._of.get(namespace)
        if not ranges:
            return spec
        known_namespace, known = self._given
        if namespace == known_namespace and spec is known:
            return self._result
        if (
            namespace != known_namespace
            or spec.containers is not known.containers
            or spec.init_containers is not known.init_containers
        ):
            result = _defaulted(spec, ranges)
        else:
            containers, init_containers = self._result.containers, self._result.init_containers
            result = replace(spec, containers=containers, init_containers=init_containers)
        self._given, self._result = (namespace, spec), result
        return result

    def check_pod(self, namespace: str, spec: PodSpec) -> None:
        """Raises Refusal with the problems of the first range that the pod violates."""
        ranges = self._of.get(namespace)
        if not ranges:
            return
        _check_limits(spec)
        for items in ranges:
            _refuse_if(_pod_problems(items, spec))

    def check_claim(self, claim: PersistentVolumeClaim) -> None:
        """Raises Refusal."""
        requests = claim.spec.resources.requests
        for items in self._of.get(claim.namespace, ()):
            _refuse_if(
                problem
                for item in items
                if item.type == CLAIM
                for amounts, rule in ((item.min, _below), (item.max, _request_above))
                for name in sorted(amounts)
                if (problem := rule(CLAIM, name, amounts[name], requests, {}))
            )


def _complete(item: LimitRangeItem) -> LimitRangeItem:
    """The defaults of a LimitRange itself: a maximum is a default limit, which is a default request."""
    if item.type != CONTAINER:
        return item
    default = {**item.max, **item.default}
    return replace(
        item, default=default, default_request={**item.min, **default, **item.default_request}
    )


def _defaulted(spec: PodSpec, ranges: Iterable[Iterable[LimitRangeItem]]) -> PodSpec:
    for items in ranges:
        requests: ResourceList = {}
        limits: ResourceList = {}
        for item in items:
            if item.type == CONTAINER:
                requests |= item.default_request
                limits |= item.default
        spec = replace(
            spec,
            containers=[_with(each, requests, limits) for each in spec.containers],
            init_containers=[_with(each, requests, limits) for each in spec.init_containers],
        )
    return spec


def _with(container: Container, requests: ResourceList, limits: ResourceList) -> Container:
    resources = container.resources
    resources = replace(
        resources,
        requests={**requests, **resources.requests},
        limits={**limits, **resources.limits},
    )
    return replace(container, resources=resources)


def _check_limits(spec: PodSpec) -> None:
    """A default limit can be below the request. The API server then finds the pod invalid."""
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            limits = container.resources.limits
            for name, asked in container.resources.requests.items():
                if name in limits and asked.exceeds(limits[name]):
                    raise Refusal(
                        f"spec.{field}[{index}].resources.requests: Invalid value:"
                        f' "{spelled(name, asked)}": must be less than or equal to {name} limit of'
                        f" {spelled(name, limits[name])}"
                    )


def _pod_problems(items: Iterable[LimitRangeItem], spec: PodSpec) -> Iterator[str]:
    for item in items:
        if item.type == CONTAINER:
            for container in (*spec.containers, *spec.init_containers):
                resources = container.resources
                yield from _violations(item, resources.requests, resources.limits)
        elif item.type == POD:
            yield from _violations(item, *_of_pod(spec))


def _of_pod(spec: PodSpec) -> tuple[ResourceList, ResourceList]:
    """The requests and limits of all containers together, without overhead."""
    requests, limits = dict(container_requests(Pod(spec=spec))), dict(container_limits(spec))
    if spec.resources is not None:
        for total, of_pod in (
            (requests, spec.resources.requests),
            (limits, spec.resources.limits),
        ):
            total |= {name: q for name, q in of_pod.items() if name in (CPU, MEMORY)}
    return requests, limits


def _violations(
    item: LimitRangeItem, requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    rules: tuple[tuple[Mapping[str, Quantity], _Rule], ...] = (
        (item.min, _below),
        (item.max, _above),
        (item.max_limit_request_ratio, _ratio_above),
    )
    for amounts, rule in rules:
        for name in sorted(amounts):
            problem = rule(item.type, name, amounts[name], requests, limits)
            if problem:
                yield problem


def _below(
    kind: str, name: str, least: Quantity, requests: ResourceList, limits: ResourceList
) -> str | None:
    rule = f"minimum {name} usage per {kind} is {spelled(name, least)}"
    if name not in requests:
        return f"{rule}.  No request is specified"
    if least.exceeds(requests[name]):
        return f"{rule}, but request is {spelled(name, requests[name])}"
    if name in limits and least.exceeds(limits[name]):
        return f"{rule}, but limit is {spelled(name, limits[name])}"
    return None


def _above(
    kind: str, name: str, most: Quantity, requests: ResourceList, limits: ResourceList
) -> str | None:
    rule = f"maximum {name} usage per {kind} is {spelled(name, most)}"
    if name not in limits:
        return f"{rule}.  No limit is specified"
    if limits[name].exceeds(most):
        return f"{rule}, but limit is {spelled(name, limits[name])}"
    if name in requests and requests[name].exceeds(most):
        return f"{rule}, but request is {spelled(name, requests[name])}"
    return None


def _request_above(
    kind: str, name: str, most: Quantity, requests: ResourceList, limits: ResourceList
) -> str | None:
    rule = f"maximum {name} usage per {kind} is {spelled(name, most)}"
    if name not in requests:
        return f"{rule}.  No request is specified"
    if requests[name].exceeds(most):
        return f"{rule}, but request is {spelled(name, requests[name])}"
    return None


def _ratio_above(
    kind: str, name: str, most: Quantity, requests: ResourceList, limits: ResourceList
) -> str | None:
    rule = f"{name} max limit to request ratio per {kind} is {spelled(name, most)}"
    request, limit = requests.get(name, ZERO), limits.get(name, ZERO)
    if request == ZERO:
        return f"{rule}, but no request is specified or request is 0"
    if limit == ZERO:
        return f"{rule}, but no limit is specified or limit is 0"
    # In thousandths, unless they do not fit 64 bits.
    fits = limit.fits(-3) and request.fits(-3)
    ratio = limit.milli_value / request.milli_value if fits else limit.value / request.value
    if ratio * 1000 > most.milli_value:
        return f"{rule}, but provided ratio is {ratio:f}"
    return None


def _refuse_if(problems: Iterable[str]) -> None:
    """Raise Refusal with all problems, each once, as the API server joins them."""
    found = list(dict.fromkeys(problems))
    if found:
        raise Refusal(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
