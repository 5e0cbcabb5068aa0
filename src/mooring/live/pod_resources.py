"""`/metrics/resources`: what every pod of the cluster asks for and is limited to.

There is a figure for each pod and resource, so this is a path of its own and not part of `/metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.objects.defaults import container_limits
from mooring.objects.pod import Pod
from mooring.objects.quantity import Quantity
from mooring.objects.requests import spec_requests

_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

_UNITS = {
    "cpu": "cores",
    "memory": "bytes",
    "storage": "bytes",
    "ephemeral-storage": "bytes",
}
_UNITS_BY_PREFIX = {"hugepages-": "bytes", "attachable-volumes-": "integer"}


def exposition(pods: Iterable[Pod]) -> bytes:
    """The page for these pods; those that have ended hold nothing."""
    registry = CollectorRegistry()
    registry.register(_PodResources([pod for pod in pods if not pod.finished]))
    return generate_latest(registry)


class _PodResources(Collector):
    def __init__(self, pods: list[Pod]) -> None:
        self._pods = pods

    def collect(self) -> Iterator[Metric]:
        yield self._family(
            "kube_pod_resource_request",
            "Resources requested by workloads on the cluster, broken down by pod.",
            spec_requests,
        )
        yield self._family(
            "kube_pod_resource_limit",
            "Resources limit for workloads on the cluster, broken down by pod.",
            limits,
        )

    def _family(
        self, name: str, text: str, amounts: Callable[[Pod], Mapping[str, Quantity]]
    ) -> Metric:
        family = GaugeMetricFamily(name, text, labels=_LABELS)
        for pod in self._pods:
            priority = "" if pod.spec.priority is None else str(pod.spec.priority)
            whose = (pod.namespace, pod.name, pod.node_name, pod.scheduler_name, priority)
            for resource, quantity in amounts(pod).items():
                value = quantity.unscaled * 10.0**quantity.scale
                if value:
                    family.add_metric((*whose, resource, _unit(resource)), value)
        return family


def limits(pod: Pod) -> dict[str, Quantity]:
    """What a pod may use at most; overhead comes on top of limits that are not zero."""
    total = container_limits(pod.spec)
    if pod.spec.resources is not None:
        total |= pod.spec.resources.limits
    for resource, quantity in pod.spec.overhead.items():
        if resource in total and total[resource].unscaled:
            total[resource] = total[resource].plus(quantity)
    return total


def _unit(resource: str) -> str:
    for prefix, unit in _UNITS_BY_PREFIX.items():
        if resource.startswith(prefix):
            return unit
    return _UNITS.get(resource, "")
