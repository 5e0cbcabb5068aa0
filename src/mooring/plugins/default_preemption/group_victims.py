"""The victims for a whole pod group: pods anywhere in the cluster, and groups that are evicted together.

All candidates are taken out of the cluster, and then put back one by one, the most important first, as
long as the group still fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugin import ClusterView, Handle, Status, unresolvable, unschedulable
from mooring.plugins.default_preemption.budgets import Budgets

#: The name of the place where room is made, in Events.
WHOLE_CLUSTER = "cluster"

#: The reference's texts.
NEVER = unschedulable("not eligible due to preemptionPolicy=Never.")
NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are evicted together: one pod, or a group whose disruption mode says so."""

    pods: list[Pod]
    priority: int

    def importance(self, now: datetime) -> tuple[int, bool, int, datetime]:
        """Less is more important: higher priority; groups; more pods; an earlier start.

        As in the reference, any pod of a group counts as a group of its own, and the start is that
        of the first pod.
        """
        first = self.pods[0]
        in_group = first.spec.scheduling_group is not None
        return -self.priority, not in_group, -len(self.pods), first.status.start_time or now


def select_victims(
    group: PodGroup,
    pods: Sequence[Pod],
    fits: Callable[[], Status],
    *,
    handle: Handle,
    budgets: Budgets,
    now: datetime,
) -> list[Pod] | Status:
    """The pods to evict, from most to least important; a status if that does not help."""
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    units = [unit for unit in _units(handle.cluster) if unit.priority < group.priority]
    if not units:
        return NO_VICTIMS
    units.sort(key=lambda unit: unit.importance(now))
    out = {id(unit) for unit in units}
    with handle.cluster_trial() as trial:
        for unit in units:
            trial.take_out(unit.pods)
        status = fits()
        if not status.ok:
            return status
        by_pods = {id(unit.pods): unit for unit in units}
        violating, others = budgets.split_units([unit.pods for unit in units])
        for unit_pods in (*violating, *others):
            unit = by_pods[id(unit_pods)]
            trial.put_back(unit.pods)
            if fits().ok:
                out.remove(id(unit))
            else:
                trial.take_out(unit.pods)
    return [pod for unit in units if id(unit) in out for pod in unit.pods]


def _units(cluster: ClusterView) -> list[Unit]:
    """Every pod on a node of the cluster, in the order of the nodes."""
    units: list[Unit] = []
    whole: dict[str, Unit] = {}
    for node in cluster.snapshot():
        for pod in node.pods.values():
            group = None
            if pod.spec.scheduling_group is not None:
                group = cluster.listers.get(PodGroup, pod.group_key)
            if group is None or not group.evicted_whole:
                units.append(Unit([pod], pod.priority))
            elif group.uid in whole:
                whole[group.uid].pods.append(pod)
            else:
                unit = whole[group.uid] = Unit([pod], group.priority)
                units.append(unit)
    return units
