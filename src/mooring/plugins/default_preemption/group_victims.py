"""The victims for a whole pod group: pods anywhere in the cluster, and groups that are evicted together.

All candidates are taken out of the cluster, and then put back one by one, the most important first, as
long as the group still fits. The cluster is changed for the dry run and restored after it: the engine does
one thing at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from mooring.cluster.cache import Cluster
from mooring.framework.status import Status, unresolvable, unschedulable
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
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
    cluster: Cluster,
    budgets: Budgets,
    now: datetime,
) -> list[Pod] | Status:
    """The pods to evict, from most to least important; a status if that does not help."""
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    units = [unit for unit in _units(cluster) if unit.priority < group.priority]
    if not units:
        return NO_VICTIMS
    units.sort(key=lambda unit: unit.importance(now))
    with _taken_out(units, cluster) as dry_run:
        status = fits()
        if not status.ok:
            return status
        by_pods = {id(unit.pods): unit for unit in units}
        violating, others = budgets.split_units([unit.pods for unit in units])
        for unit_pods in (*violating, *others):
            unit = by_pods[id(unit_pods)]
            dry_run.put_back(unit)
            if not fits().ok:
                dry_run.take_out(unit)
        out = dry_run.out
        return [pod for unit in units if id(unit) in out for pod in unit.pods]


def _units(cluster: Cluster) -> list[Unit]:
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


class _DryRun:
    """Pods that are left out of account for a while."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: id of a unit → its pods, and whether each is assumed.
        self.out: dict[int, list[tuple[Pod, bool]]] = {}

    def take_out(self, unit: Unit) -> None:
        self.out[id(unit)] = [(pod, self._cluster.take_out(pod)) for pod in unit.pods]

    def put_back(self, unit: Unit) -> None:
        for pod, assumed in self.out.pop(id(unit)):
            self._cluster.put_back(pod, assumed=assumed)


@contextmanager
def _taken_out(units: Sequence[Unit], cluster: Cluster) -> Iterator[_DryRun]:
    dry_run = _DryRun(cluster)
    try:
        for unit in units:
            dry_run.take_out(unit)
        yield dry_run
    finally:
        for unit in units:
            if id(unit) in dry_run.out:
                dry_run.put_back(unit)
