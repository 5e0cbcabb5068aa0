"""The plugin: filter and score nodes by what their NUMA zones have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    MIN_SCORE,
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Depends,
    EventResource,
    EventWithHint,
    Handle,
    NodeInfo,
    Snapshot,
    Status,
    unschedulable,
)
from mooring_policies.arguments import PluginArgs, problem, read_args, refuse
from mooring_policies.node_resource_topology.alignment import align_containers, align_pod
from mooring_policies.node_resource_topology.eviction import NotPossible, without_pods
from mooring_policies.node_resource_topology.numa import (
    BEST_EFFORT,
    GUARANTEED,
    includes_devices,
    numa_nodes,
    qos_of,
)
from mooring_policies.node_resource_topology.objects import (
    POD,
    SINGLE_NUMA_NODE,
    TOPOLOGIES,
    NodeResourceTopology,
    TopologyManager,
)
from mooring_policies.node_resource_topology.scoring import (
    LEAST,
    LEAST_NUMA,
    STRATEGIES,
    least_numa_nodes,
    score_by_zones,
)
from mooring_policies.node_resource_topology.topologies import (
    AsTheyAre,
    CacheSettings,
    LessReserved,
    Topologies,
    WithoutReserved,
)

INVALID = unschedulable("invalid node topology data")
EVICTION_NOT_POSSIBLE = "eviction simulation in NRT is not possible:{}"
NO_STATE = Status(Code.ERROR, ("PreFilter did not run",))
#: The key of the pods that a dry run takes off the node: key of a pod → pod.
EVICTED = "NodeResourceTopologyMatch/evicted"


class ResourceWeight(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: int = 1


class ScoringStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str = LEAST
    resources: list[ResourceWeight] = []


class NodeResourceTopologyMatchArgs(PluginArgs, frozen=True):
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    #: Above 0: count reserved pods until the agent of the node has. mooring looks each time that it needs to
    #: know, whatever the period.
    cache_resync_period_seconds: int = 0
    #: Leave out nodes with pods that are about to be bound; goes before the period.
    discard_reserved_nodes: bool = False
    cache: CacheSettings = CacheSettings()
    preemption_mode: str = "Disabled"

    def __post_init__(self) -> None:
        problems = []
        if self.scoring_strategy.type not in (*STRATEGIES, LEAST_NUMA):
            text = "invalid ScoringStrategyType"
            problems.append(problem("scoringStrategy.type", self.scoring_strategy.type, text))
        if self.preemption_mode not in ("Disabled", "Enabled"):
            problems.append(
                problem("preemptionMode", self.preemption_mode, "invalid PreemptionMode")
            )
        refuse(problems)


class NodeResourceTopologyMatch:
    name = "NodeResourceTopologyMatch"
    kinds = (TOPOLOGIES,)
    depends_on_kinds = (NodeResourceTopology,)
    Args = NodeResourceTopologyMatchArgs

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = read_args(args, NodeResourceTopologyMatchArgs)
        resources = self._args.scoring_strategy.resources
        self._weights = {each.name: each.weight or 1 for each in resources}
        self._topologies = self._chosen(handle)
        self._judges_evictions = self._args.preemption_mode == "Enabled"
        if self._args.discard_reserved_nodes:
            # A pod that is bound is no longer reserved, and no change of the cluster shows it: ask each time.
            self.depends_on = None  # type: ignore[method-assign, assignment]

    def _chosen(self, handle: Handle) -> Topologies:
        listers = handle.cluster.listers
        if self._args.discard_reserved_nodes:
            return WithoutReserved(listers)
        if self._args.cache_resync_period_seconds > 0:
            return LessReserved(
                handle.cluster,
                handle.profile_name,
                self._args.cache,
                locates_containers=self._args.preemption_mode == "Enabled",
            )
        return AsTheyAre(listers)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(EventResource.POD, Action.DELETE)),
            EventWithHint(
                ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
            ),
            EventWithHint(ClusterEvent(TOPOLOGIES.event_resource, Action.ADD | Action.UPDATE)),
        )

    def depends_on(self, pod: Pod) -> Depends:
        """The topology of a node changes by itself, or with the pods that are reserved there."""
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        containers = (
            tuple(
                (
                    each.restartable,
                    tuple(each.resources.requests.items()),
                    tuple(each.resources.limits.items()),
                )
                for each in group
            )
            for group in (pod.spec.init_containers, pod.spec.containers)
        )
        return {"containers": (*containers,), "overhead": tuple(pod.spec.overhead.items())}

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        if self._judges_evictions:
            state.write(EVICTED, {})

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        return self._evicted_become(state, added, gone=False)

    def remove_pod(
        self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo
    ) -> Status | None:
        return self._evicted_become(state, removed, gone=True)

    def _evicted_become(self, state: CycleState, pod: Pod, *, gone: bool) -> Status | None:
        if not self._judges_evictions:
            return None
        evicted = state.read(EVICTED, dict)
        if evicted is None:
            return NO_STATE
        others = {key: each for key, each in evicted.items() if key != pod.key}
        state.write(EVICTED, {**others, pod.key: pod} if gone else others)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        qos = qos_of(pod)
        if qos == BEST_EFFORT and not includes_devices(pod):
            return None
        topology, is_fresh = self._topologies.get(node.name)
        if not is_fresh:
            return INVALID
        if topology is None:
            return None
        evicted = (state.read(EVICTED, dict) or {}) if self._judges_evictions else {}
        if evicted and (placement := self._topologies.placement(node.name)):
            try:
                topology = without_pods(topology, evicted.values(), placement)
            except NotPossible as reason:
                return unschedulable(EVICTION_NOT_POSSIBLE.format(reason))
        manager = TopologyManager.of(topology)
        if manager.policy != SINGLE_NUMA_NODE:
            return None
        align = align_pod if manager.scope == POD else align_containers
        return align(pod, qos, node, numa_nodes(topology))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        qos = qos_of(pod)
        if qos != GUARANTEED:
            return MAX_SCORE
        topology, _ = self._topologies.get(node.name)
        if topology is None:
            return MIN_SCORE
        manager, zones = TopologyManager.of(topology), numa_nodes(topology)
        strategy = self._args.scoring_strategy.type
        if strategy == LEAST_NUMA:
            return least_numa_nodes(pod, qos, zones, manager)
        if manager.policy != SINGLE_NUMA_NODE:
            return MIN_SCORE
        return score_by_zones(pod, zones, manager, STRATEGIES[strategy], self._weights)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._topologies.reserve(node_name, pod)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._topologies.unreserve(node_name, pod)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._topologies.bound(node_name, pod)
