"""TopologicalSort: pods of one application queue in the order of their workloads."""

from __future__ import annotations

from mooring.plugin import Handle, QueuedPod
from mooring_policies.arguments import PluginArgs, read_args
from mooring_policies.network.objects import (
    APP_GROUP_LABEL,
    APP_GROUPS,
    WORKLOAD_LABEL,
    AppGroup,
    OrderedWorkload,
)

_UNKNOWN = -1


class TopologicalSortArgs(PluginArgs, frozen=True):
    namespaces: list[str] = []

    @property
    def searched(self) -> list[str]:
        return self.namespaces or ["default"]


class TopologicalSort:
    name = "TopologicalSort"
    kinds = (APP_GROUPS,)
    Args = TopologicalSortArgs

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = read_args(args, TopologicalSortArgs)
        self._listers = handle.cluster.listers

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Pods of other or no applications: by priority, then by time."""
        name = a.pod.labels.get(APP_GROUP_LABEL, "")
        group = self._group(name) if name == b.pod.labels.get(APP_GROUP_LABEL, "") else None
        if group is None:
            if a.pod.priority != b.pod.priority:
                return a.pod.priority > b.pod.priority
            return a.timestamp < b.timestamp
        first = order_of(group, a.pod.labels.get(WORKLOAD_LABEL, ""))
        second = order_of(group, b.pod.labels.get(WORKLOAD_LABEL, ""))
        return first <= second

    def _group(self, name: str) -> AppGroup | None:
        if not name:
            return None
        for namespace in self._args.searched:
            if (found := self._listers.get(AppGroup, f"{namespace}/{name}")) is not None:
                return found
        return None


def order_of(group: AppGroup, selector: str) -> int:
    """The position of a workload. A controller writes it; without one, it follows from the dependencies."""
    order = group.status.topology_order or _sorted_by_dependencies(group)
    return next((each.index for each in order if each.workload.selector == selector), _UNKNOWN)


def _sorted_by_dependencies(group: AppGroup) -> list[OrderedWorkload]:
    """Kahn's algorithm: a workload comes before those that it depends on."""
    workloads = {each.workload.selector: each for each in group.spec.workloads}
    needed_by = dict.fromkeys(workloads, 0)
    for each in workloads.values():
        for dependency in each.dependencies:
            if dependency.workload.selector in needed_by:
                needed_by[dependency.workload.selector] += 1
    ready = [selector for selector, count in needed_by.items() if not count]
    order: list[OrderedWorkload] = []
    while ready:
        selector = ready.pop(0)
        info = workloads[selector].workload
        order.append(OrderedWorkload(workload=info, index=len(order) + 1))
        for dependency in workloads[selector].dependencies:
            other = dependency.workload.selector
            if other in needed_by:
                needed_by[other] -= 1
                if not needed_by[other]:
                    ready.append(other)
    return order
