"""What an object uses of a quota, by the names that quotas have for it.

cpu, requests.cpu, limits.cpu …        requests and limits of pods that have not finished
requests.nvidia.com/gpu                requests of extended resources
requests.storage, persistentvolumeclaims,
CLASS.storageclass.storage.k8s.io/…    claims, also by their class
pods, services, count/deployments.apps objects
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.objects.claims import class_of_claim, requested_storage, requests_storage
from mooring.objects.defaults import container_limits
from mooring.objects.kinds import KIND_OF
from mooring.objects.meta import KubeObject, ResourceList
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from mooring.objects.storage import PersistentVolumeClaim

_ONE = Quantity(1)
_REQUESTS, _LIMITS = "requests.", "limits."
_HUGE_PAGES = "hugepages-"
_COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_CLAIMS, _STORAGE = "persistentvolumeclaims", "requests.storage"
_BY_CLASS = ".storageclass.storage.k8s.io/"
#: Kinds of the core group that quotas also count under their plain names.
_PLAIN_COUNTS = frozenset(("services", "replicationcontrollers", "resourcequotas"))

_OF_PODS = frozenset(
    (PODS, "count/pods", *_COMPUTE)
    + tuple(prefix + name for prefix in (_REQUESTS, _LIMITS) for name in _COMPUTE)
)
#: If a quota limits one of these, each container must specify it.
_MUST_SPECIFY = frozenset(
    prefix + name for prefix in ("", _REQUESTS, _LIMITS) for name in (CPU, MEMORY)
)


def is_counted(obj: KubeObject, name: str) -> bool:
    """Whether a quota with this resource name limits objects of this kind."""
    match obj:
        case Pod():
            return (
                name in _OF_PODS
                or name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES))
                or (name.startswith(_REQUESTS) and "/" in name and "kubernetes.io/" not in name)
            )
        case PersistentVolumeClaim():
            plain = (_CLAIMS, _STORAGE)
            by_class = tuple(_BY_CLASS + each for each in plain)
            return name in plain or name in _counts(obj) or name.endswith(by_class)
    return name in _counts(obj)


def usage_of(obj: KubeObject) -> ResourceList:
    match obj:
        case Pod():
            return _pod(obj)
        case PersistentVolumeClaim():
            return _claim(obj)
    return dict.fromkeys(_counts(obj), _ONE)


def missing_amounts(obj: KubeObject, required: Iterable[str]) -> str:
    """What containers must specify and do not: `limits.cpu for: app,proxy`; "" if nothing."""
    if not isinstance(obj, Pod) or _has_pod_level(obj):
        return ""
    needed = _MUST_SPECIFY.intersection(required)
    without: dict[str, set[str]] = {}
    for container in (*obj.spec.containers, *obj.spec.init_containers):
        for name in needed.difference(_container(container)):
            without.setdefault(name, set()).add(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(without[name]))}" for name in sorted(without))


def _counts(obj: KubeObject) -> tuple[str, ...]:
    kind = KIND_OF.get(type(obj))
    if kind is None:
        # Quotas on the kinds of plugins are not counted.
        return ()
    if kind.group:
        return (f"count/{kind.plural}.{kind.group}",)
    plain = (kind.plural,) if kind.plural in _PLAIN_COUNTS else ()
    return (f"count/{kind.plural}", *plain)


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(
        name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)
        for name in (*resources.requests, *resources.limits)
    )


def _container(container: Container) -> ResourceList:
    return _compute(container.resources.requests, container.resources.limits)


def _pod(pod: Pod) -> ResourceList:
    """A finished pod counts as an object only."""
    usage: ResourceList = {"count/pods": _ONE}
    if pod.finished:
        return usage
    return {**usage, PODS: _ONE, **_compute(pod.held_resources, _limits(pod))}


def _limits(pod: Pod) -> ResourceList:
    """The limits of the whole pod; the overhead is added to limits that are set."""
    limits = dict(container_limits(pod.spec))
    if pod.spec.resources is not None:
        limits |= pod.spec.resources.limits
    for name, quantity in pod.spec.overhead.items():
        if limits.get(name, ZERO) != ZERO:
            limits[name] = limits[name].plus(quantity)
    return limits


def _compute(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> ResourceList:
    usage: ResourceList = {}
    for name, quantity in requests.items():
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            usage[name] = usage[_REQUESTS + name] = quantity
        elif is_extended(name):
            usage[_REQUESTS + name] = quantity
    for name in _COMPUTE:
        if name in limits:
            usage[_LIMITS + name] = limits[name]
    return usage


def _claim(claim: PersistentVolumeClaim) -> ResourceList:
    usage: ResourceList = {_CLAIMS: _ONE, **dict.fromkeys(_counts(claim), _ONE)}
    if requests_storage(claim):
        usage[_STORAGE] = requested_storage(claim).rounded_up(0)
    class_name = class_of_claim(claim)
    if class_name:
        by_class = {
            f"{class_name}{_BY_CLASS}{name}": usage[name]
            for name in (_CLAIMS, _STORAGE)
            if name in usage
        }
        usage |= by_class
    return usage
