"""The plugin: quotas in PreFilter, what they use in Reserve, and preemption between them."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Action,
    ClusterEvent,
    Code,
    CycleState,
    EventResource,
    EventWithHint,
    Handle,
    NodeInfo,
    NodeStatuses,
    PostFilterResult,
    Snapshot,
    Status,
    unschedulable,
)
from mooring.plugin.args import DefaultPreemptionArgs
from mooring.plugins.default_preemption.plugin import (
    NEVER,
    VICTIMS_TERMINATING,
    DefaultPreemption,
)
from mooring_policies.capacity_scheduling.objects import ELASTIC_QUOTAS, ElasticQuota
from mooring_policies.capacity_scheduling.preemption import (
    REQUESTS,
    SNAPSHOT,
    QuotaVictims,
    Requests,
    waits_for_victims,
)
from mooring_policies.capacity_scheduling.quotas import Quota, Quotas, add_to, pod_request

#: Upstream's texts, verbatim.
OVER_MAX = "Pod {} is rejected in PreFilter because ElasticQuota {} is more than Max"
OVER_MIN = "Pod {} is rejected in PreFilter because total ElasticQuota used is more than min"
NO_STATE = unschedulable("not eligible due to failed to read from cycleState")

#: All nodes are candidates.
_EVERY_NODE = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)


class CapacityScheduling(DefaultPreemption):
    name = "CapacityScheduling"
    kinds = (ELASTIC_QUOTAS,)
    #: PreFilter also looks at nominations, which are not part of the cluster: ask each time.
    depends_on = None  # type: ignore[assignment]

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(_EVERY_NODE, handle)
        if args:
            raise ValueError("args: CapacityScheduling takes no arguments")
        self._quotas = Quotas()
        #: The keys of the quotas that are known: a second one of a namespace counts once it changes.
        self._known: set[str] = set()
        #: The state of the attempt that post_filter works on.
        self._state = CycleState()
        listers = handle.cluster.listers
        for quota in listers.all(ElasticQuota):
            self._quota_changed(quota.key)
        listers.follow(ElasticQuota, self._quota_changed)
        handle.observed_pods.follow(self._pod_changed)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(EventResource.POD, Action.DELETE)),
            EventWithHint(ClusterEvent(ELASTIC_QUOTAS.event_resource, Action.ALL)),
        )

    # What quotas use

    def _quota_changed(self, key: str) -> None:
        quota = self._handle.cluster.listers.get(ElasticQuota, key)
        if quota is None:
            self._known.discard(key)
            self._quotas.drop(key.partition("/")[0])
            return
        known, held = key in self._known, self._quotas.get(quota.namespace)
        self._known.add(key)
        if held is not None and not known:
            return
        kept = Quota.of(quota)
        if held is not None:
            kept.used, kept.pods = held.used, held.pods
        self._quotas.put(kept)
        for pod in self._handle.cluster.pods.values() if held is None else ():
            self._quotas.add(pod)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.node_name:
            self._quotas.add(new)
        elif new is None and old is not None and old.node_name:
            self._quotas.remove(old)

    # Extension points

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        quotas = self._quotas.clone()
        state.write(SNAPSHOT, quotas)
        request = pod_request(pod)
        own = quotas.get(pod.namespace)
        if own is None:
            state.write(REQUESTS, Requests(request, {}, {}))
            return SUCCESS
        requests = self._with_nominated(pod, snapshot)
        state.write(REQUESTS, requests)
        if own.used_over_max_with(requests.in_quota):
            return unschedulable(OVER_MAX.format(pod.key, own.namespace))
        if quotas.used_over_min_with(requests.in_all):
            return unschedulable(OVER_MIN.format(pod.key))
        return SUCCESS

    def _with_nominated(self, pod: Pod, snapshot: Snapshot) -> Requests:
        request = pod_request(pod)
        in_quota, in_all = dict(request), dict(request)
        for node in snapshot:
            for other in self._handle.nominated_pods(node.name):
                quota = self._quotas.get(other.namespace)
                if other.uid == pod.uid or quota is None:
                    continue
                if other.namespace != pod.namespace:
                    if not quota.used_over_min:
                        add_to(in_all, pod_request(other))
                elif other.priority >= pod.priority:
                    add_to(in_quota, pod_request(other))
                    add_to(in_all, pod_request(other))
        return Requests(request, in_quota, in_all)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        quotas = state.read(SNAPSHOT, Quotas)
        if quotas is not None:
            quotas.add(added)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        quotas = state.read(SNAPSHOT, Quotas)
        if quotas is not None:
            quotas.remove(removed)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._quotas.add(pod)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._quotas.remove(pod)

    # Preemption

    def decide(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        self._state = state
        return self._preempt(state, pod, statuses)

    def post_filter_repeats(self, pod: Pod) -> bool:
        return False

    def is_eligible_pod(self, node: NodeInfo, victim: Pod, preemptor: Pod) -> bool:
        """The dry run decides; this only says that priorities alone do not."""
        return True

    def _ineligible(self, pod: Pod, statuses: NodeStatuses, snapshot: Snapshot) -> Status | None:
        if pod.spec.preemption_policy == "Never":
            return NEVER
        requests = self._state.read(REQUESTS, Requests)
        quotas = self._state.read(SNAPSHOT, Quotas)
        if requests is None or quotas is None:
            return NO_STATE
        name = pod.nominated_node_name
        node = snapshot.get(name) if name else None
        if node is None or statuses.get(name).code == Code.UNRESOLVABLE:
            return None
        waits = waits_for_victims(pod, node.pods.values(), quotas, requests)
        return VICTIMS_TERMINATING if waits else None

    def _search(self, state: CycleState, pod: Pod) -> QuotaVictims:
        quotas, requests = state.read(SNAPSHOT, Quotas), state.read(REQUESTS, Requests)
        return QuotaVictims(
            filters=self._handle.dry_run(state, pod),
            budgets=self._budgets.current(),
            is_eligible=lambda node, victim: True,
            by_importance=self._by_importance(),
            quotas=quotas or Quotas(),
            requests=requests or Requests({}, {}, {}),
        )
