"""ResourceQuota: how much the objects of a namespace may request together, and how many there may be.

The last rule of admission: an object that passes it is charged, so the order of creation decides
which objects are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.objects.admission.refusal import Refusal, listed
from mooring.objects.admission.usage import is_counted, missing_amounts, usage_of
from mooring.objects.meta import KubeObject, ResourceList
from mooring.objects.pod import Pod, PodAffinity, ResourceRequirements
from mooring.objects.policies import ResourceQuota, ScopeRequirement
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.requests import CPU, MEMORY
from mooring.objects.storage import PersistentVolumeClaim

_EXISTS = "Exists"


@dataclass(slots=True)
class _Quota:
    name: str
    hard: ResourceList
    scopes: Sequence[ScopeRequirement]
    used: ResourceList = field(default_factory=dict)

    def matches(self, obj: KubeObject) -> bool:
        return any(is_counted(obj, name) for name in self.hard) and all(
            _in_scope(obj, scope) for scope in self.scopes
        )

    def share(self, usage: Mapping[str, Quantity]) -> ResourceList:
        """The part of the usage that this quota limits."""
        return {name: usage[name] for name in usage if name in self.hard and usage[name] != ZERO}

    def with_more(self, share: Mapping[str, Quantity]) -> ResourceList:
        return {name: self.used.get(name, ZERO).plus(more) for name, more in share.items()}


class ResourceQuotas:
    """The quotas of a cluster, and what is used of them."""

    def __init__(self, quotas: Iterable[ResourceQuota] = ()) -> None:
        self._of: dict[str, list[_Quota]] = {}
        for each in sorted(quotas, key=lambda each: each.name):
            quota = _Quota(each.name, each.spec.hard, _scopes(each))
            self._of.setdefault(each.namespace, []).append(quota)

    def __bool__(self) -> bool:
        return bool(self._of)

    def count(self, obj: KubeObject) -> None:
        """Charge an object that exists already."""
        for quota in self._of.get(obj.namespace, ()):
            if quota.matches(obj):
                quota.used |= quota.with_more(quota.share(usage_of(obj)))

    def charge(self, obj: KubeObject) -> None:
        """Charge an object that is created. Raises Refusal if a quota does not allow it."""
        quotas = [quota for quota in self._of.get(obj.namespace, ()) if quota.matches(obj)]
        if not quotas:
            return
        for quota in quotas:
            missing = missing_amounts(obj, quota.hard)
            if missing:
                raise Refusal(f"failed quota: {quota.name}: must specify {missing}")
        usage = usage_of(obj)
        charged = []
        for quota in quotas:
            share = quota.share(usage)
            total = quota.with_more(share)
            exceeded = [name for name in total if total[name].exceeds(quota.hard[name])]
            if exceeded:
                raise Refusal(
                    f"exceeded quota: {quota.name},"
                    f" requested: {listed({name: share[name] for name in exceeded})},"
                    f" used: {listed({name: quota.used.get(name, ZERO) for name in exceeded})},"
                    f" limited: {listed({name: quota.hard[name] for name in exceeded})}"
                )
            charged.append((quota, total))
        for quota, total in charged:
            quota.used |= total


# Scopes


def _scopes(quota: ResourceQuota) -> list[ScopeRequirement]:
    named = [ScopeRequirement(scope_name=name, operator=_EXISTS) for name in quota.spec.scopes]
    selector = quota.spec.scope_selector
    return named if selector is None else [*named, *selector.match_expressions]


def _in_scope(obj: KubeObject, scope: ScopeRequirement) -> bool:
    match obj, scope.scope_name:
        case Pod(), "Terminating":
            return _has_deadline(obj)
        case Pod(), "NotTerminating":
            return not _has_deadline(obj)
        case Pod(), "BestEffort":
            return is_best_effort(obj)
        case Pod(), "NotBestEffort":
            return not is_best_effort(obj)
        case Pod(), "PriorityClass":
            return _selects(scope, obj.spec.priority_class_name)
        case Pod(), "CrossNamespacePodAffinity":
            return _names_namespaces(obj)
        case PersistentVolumeClaim(), "VolumeAttributesClass":
            return _selects(scope, obj.spec.volume_attributes_class_name or "")
    return False


def _selects(scope: ScopeRequirement, name: str) -> bool:
    match scope.operator:
        case "In":
            return name != "" and name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return name == ""
    return scope.operator == _EXISTS and name != ""


def _has_deadline(pod: Pod) -> bool:
    deadline_s = pod.spec.active_deadline_seconds
    return deadline_s is not None and deadline_s >= 0


def is_best_effort(pod: Pod) -> bool:
    """Whether the QoS class of the pod is BestEffort."""
    resources = pod.spec.resources
    if resources is not None and (resources.requests or resources.limits):
        return _wants_nothing(resources)
    return all(
        _wants_nothing(container.resources)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    )


def _wants_nothing(resources: ResourceRequirements) -> bool:
    return all(
        amounts.get(name, ZERO) == ZERO
        for amounts in (resources.requests, resources.limits)
        for name in (CPU, MEMORY)
    )


def _names_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    rules = (affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity())
    terms = [
        term
        for each in rules
        for term in (*each.required, *(weighted.pod_affinity_term for weighted in each.preferred))
    ]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
