"""Which pods have to leave a node, by quotas: own pods of lower priority, or those who borrowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.objects.pod import Pod
from mooring.objects.requests import Amounts
from mooring.plugin import (
    Code,
    NodeInfo,
    NodeTrial,
    PluginFailure,
    Status,
    unresolvable,
    unschedulable,
)
from mooring.plugins.default_preemption.candidates import Outcome, VictimSearch, outcome
from mooring_policies.capacity_scheduling.quotas import Quotas

#: The keys in the cycle state.
SNAPSHOT = "ElasticQuotaSnapshot"
REQUESTS = "PreFilterCapacityScheduling"

#: Upstream's texts, verbatim.
NO_VICTIMS = "No victims found on node {} for preemptor pod {}"
OVER_MAX = unschedulable("global quota max exceeded")
NOT_THERE = "no corresponding pod {} in pods of node {}"


@dataclass(frozen=True, slots=True)
class Requests:
    """What a pod asks for, alone and with the pods that nodes are held for."""

    pod: Amounts
    #: With nominated pods of the same quota that are at least as important.
    in_quota: Amounts
    #: Also with nominated pods of other quotas that use no more than their min.
    in_all: Amounts


@dataclass(frozen=True, slots=True)
class QuotaVictims(VictimSearch):
    """The search for victims, with quotas instead of priorities alone."""

    quotas: Quotas
    requests: Requests

    def on_node(self, node: NodeInfo) -> Outcome:
        try:
            return _Trial(self, self.filters.on_node(node), self.quotas.clone()).select_victims()
        except PluginFailure as error:
            return error.as_status()


@dataclass(frozen=True, slots=True)
class _Trial:
    """One node, and the quotas as they would be without some of its pods."""

    search: QuotaVictims
    trial: NodeTrial
    quotas: Quotas

    def select_victims(self) -> Outcome:
        """Raises PluginFailure."""
        search, name = self.search, self.trial.node.name
        # From the least important pod on; upstream turns the order of equally important pods around.
        pods = search.by_importance(self.trial.node.pods.values())[::-1]
        potential = [pod for pod in pods if self._may_go(pod)]
        if not potential:
            return unresolvable(NO_VICTIMS.format(name, search.pod.name))
        status = self.trial.filter()
        if not status.ok:
            return status
        request = search.requests.pod
        if self._exceeds(request, request):
            return OVER_MAX
        violating, others = search.budgets.split(search.by_importance(potential))
        victims: list[Pod] = []
        violations = 0
        for number, pod in enumerate((*violating, *others)):
            fits = self._reprieve(pod, victims)
            if fits is None:
                return Status(Code.ERROR, (NOT_THERE.format(pod.name, name),))
            violations += not fits and number < len(violating)
        if violating and others:
            victims = search.by_importance(victims)
        return outcome(name, victims, violations)

    def _may_go(self, pod: Pod) -> bool:
        """Whether the pod may be evicted; if so, it is removed, and its quota uses less."""
        preemptor, quota = self.search.pod, self.quotas.get(pod.namespace)
        own = self.search.quotas.get(preemptor.namespace)
        if (own is None) != (quota is None):
            return False
        if own is None or quota is None:
            goes = pod.priority < preemptor.priority
        elif own.used_over_min_with(self.search.requests.in_quota):
            # Nobody holds what is the preemptor's by right: it may only replace pods of its own quota.
            goes = pod.namespace == preemptor.namespace and pod.priority < preemptor.priority
        else:
            goes = pod.namespace != preemptor.namespace and quota.used_over_min
        if goes:
            self._remove(pod)
        return goes

    def _exceeds(self, in_quota: Amounts, in_all: Amounts) -> bool:
        own = self.quotas.get(self.search.pod.namespace)
        if own is None:
            return False
        return own.used_over_max_with(in_quota) or self.quotas.used_over_min_with(in_all)

    def _reprieve(self, pod: Pod, victims: list[Pod]) -> bool | None:
        """Put the pod back, if preemptor and quotas allow it; whether the filters do.

        None is upstream's error: the quotas refuse a pod that the filters have refused already.
        """
        self.trial.add(pod)
        self.quotas.add(pod)
        fits = self.trial.filter().ok
        if not fits:
            self._remove(pod)
            victims.append(pod)
        if self._exceeds(self.search.requests.in_quota, self.search.requests.in_all):
            if not fits:
                return None
            self._remove(pod)
            victims.append(pod)
        return fits

    def _remove(self, pod: Pod) -> None:
        self.trial.remove(pod)
        self.quotas.remove(pod)


def waits_for_victims(pod: Pod, on_node: Sequence[Pod], quotas: Quotas, requests: Requests) -> bool:
    """Whether a pod on the nominated node is terminating, whose place the pod may take."""
    own = quotas.get(pod.namespace)
    for each in on_node:
        quota = quotas.get(each.namespace)
        if not each.terminating or (quota is None) != (own is None):
            continue
        same = own is None or each.namespace == pod.namespace
        if same and each.priority < pod.priority:
            return True
        if (
            not same
            and own is not None
            and quota is not None
            and not own.used_over_min_with(requests.in_quota)
            and quota.used_over_min
        ):
            return True
    return False
