"""What namespaces use of their quotas, and whether that is more than a bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mooring.objects.meta import ResourceList
from mooring.objects.pod import Pod
from mooring.objects.quantity import MAX_INT64
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts, amounts
from mooring_policies.capacity_scheduling.objects import ElasticQuota

#: A quota that does not list one of these allows nothing of it.
_FIRST_CLASS = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_BOUNDED = (CPU, MEMORY, EPHEMERAL_STORAGE)

LEAST_MIN = 0
GREATEST_MAX = MAX_INT64


@dataclass(slots=True)
class Quota:
    """One quota, with the pods that count in it."""

    namespace: str
    min: Amounts
    max: Amounts
    used: Amounts = field(default_factory=dict)
    #: UID → what the pod counts for.
    pods: dict[str, Amounts] = field(default_factory=dict)

    @classmethod
    def of(cls, quota: ElasticQuota) -> Quota:
        spec = quota.spec
        return cls(quota.namespace, _bounds(spec.min, LEAST_MIN), _bounds(spec.max, GREATEST_MAX))

    def add(self, pod: Pod) -> None:
        if pod.uid not in self.pods:
            self.pods[pod.uid] = requested = pod_request(pod)
            add_to(self.used, requested)

    def remove(self, pod: Pod) -> None:
        for name, amount in self.pods.pop(pod.uid, {}).items():
            self.used[name] -= amount

    @property
    def used_over_min(self) -> bool:
        return exceeds(self.used, {}, self.min, LEAST_MIN)

    def used_over_min_with(self, request: Mapping[str, int]) -> bool:
        return exceeds(request, self.used, self.min, LEAST_MIN)

    def used_over_max_with(self, request: Mapping[str, int]) -> bool:
        return exceeds(request, self.used, self.max, GREATEST_MAX)

    def clone(self) -> Quota:
        return Quota(self.namespace, self.min, self.max, dict(self.used), dict(self.pods))


class Quotas:
    """Quotas by namespace; each namespace has one."""

    def __init__(self, quotas: Mapping[str, Quota] | None = None) -> None:
        self._quotas = dict(quotas or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._quotas)

    def get(self, namespace: str) -> Quota | None:
        return self._quotas.get(namespace)

    def put(self, quota: Quota) -> None:
        self._quotas[quota.namespace] = quota

    def drop(self, namespace: str) -> None:
        self._quotas.pop(namespace, None)

    def add(self, pod: Pod) -> None:
        if (quota := self.get(pod.namespace)) is not None:
            quota.add(pod)

    def remove(self, pod: Pod) -> None:
        if (quota := self.get(pod.namespace)) is not None:
            quota.remove(pod)

    def used_over_min_with(self, request: Mapping[str, int]) -> bool:
        """Whether all quotas together, with the request, use more than all their minima."""
        used: Amounts = {}
        least: Amounts = {}
        for quota in self._quotas.values():
            add_to(used, quota.used)
            add_to(least, quota.min)
        add_to(used, request)
        return exceeds(used, {}, least, LEAST_MIN)

    def clone(self) -> Quotas:
        """For dry runs, which count pods that are added to a node or removed from it."""
        return Quotas({name: quota.clone() for name, quota in self._quotas.items()})


def pod_request(pod: Pod) -> Amounts:
    """The requests of all containers, at least those of each init container, and the overhead.

    Each container is rounded by itself. As upstream, a sidecar counts as an init container.
    """
    total: Amounts = {}
    for container in pod.spec.containers:
        add_to(total, amounts(container.resources.requests))
    for container in pod.spec.init_containers:
        for name, amount in amounts(container.resources.requests).items():
            total[name] = max(total.get(name, 0), amount)
    add_to(total, amounts(pod.spec.overhead))
    return total


def add_to(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def exceeds(
    request: Mapping[str, int], used: Mapping[str, int], bounds: Mapping[str, int], unlisted: int
) -> bool:
    """Whether request and use together are above a bound.

    Of the other resources, only those of the request are looked at; `unlisted` is the bound of those
    that are not listed.
    """
    for name in _FIRST_CLASS:
        if request.get(name, 0) + used.get(name, 0) > bounds.get(name, 0):
            return True
    return any(
        amount + used.get(name, 0) > bounds.get(name, unlisted)
        for name, amount in request.items()
        if name not in _FIRST_CLASS
    )


def _bounds(resources: ResourceList | None, unlimited: int) -> Amounts:
    if resources is None:
        return dict.fromkeys(_BOUNDED, unlimited)
    bounds = amounts(resources)
    if (pods := resources.get(PODS)) is not None:
        bounds[PODS] = pods.value
    return bounds
