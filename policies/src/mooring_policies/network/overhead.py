"""NetworkOverhead: filter and score nodes by the cost of talking to the pods that a pod depends on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    MIN_SCORE,
    SUCCESS,
    Code,
    CycleState,
    Handle,
    Ints,
    NodeInfo,
    Snapshot,
    Status,
    unschedulable,
)
from mooring_policies.arguments import PluginArgs, read_args
from mooring_policies.network.costs import Need, Overhead, Place, costs_from, overhead_at
from mooring_policies.network.objects import (
    APP_GROUP_LABEL,
    APP_GROUPS,
    NETWORK_TOPOLOGIES,
    REGION,
    WORKLOAD_LABEL,
    ZONE,
    AppGroup,
    Dependency,
    NetworkTopology,
)

#: Upstream's texts, verbatim.
TOO_FAR = (
    "Node {} does not meet several network requirements from Workload dependencies:"
    " Satisfied: {} Violated: {}"
)
NO_STATE = Status(Code.ERROR, ("not eligible due to failed to read from cycleState",))
NO_NODE = 'pod hostname not found: nodeinfo not found for node name "{}"'

_STATE = "PreFilterNetworkOverhead"


class NetworkOverheadArgs(PluginArgs, frozen=True):
    #: Where AppGroups and NetworkTopologies are looked for.
    namespaces: list[str] = []
    weights_name: str = "UserDefined"
    network_topology_name: str = "nt-default"

    @property
    def searched(self) -> list[str]:
        return self.namespaces or ["default"]


@dataclass(frozen=True, slots=True)
class Overheads:
    """Node → its overhead; None if all nodes are alike to the pod."""

    by_node: dict[str, Overhead] | None = None


class NetworkOverhead:
    name = "NetworkOverhead"
    kinds = (APP_GROUPS, NETWORK_TOPOLOGIES)
    Args = NetworkOverheadArgs
    #: Each result depends on its own score, the lowest and the highest.
    normalizes_by_extremes = True

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = read_args(args, NetworkOverheadArgs)
        self._listers = handle.cluster.listers
        #: Group → its pods that have a node, by key.
        self._placed: dict[str, dict[str, Pod]] = {}
        handle.observed_pods.follow(self._pod_changed)

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        state.write(_STATE, Overheads())
        dependencies = self._dependencies(pod)
        topology = self._topology()
        placed = self._placed.get(pod.labels.get(APP_GROUP_LABEL, ""), {})
        if not dependencies or topology is None or not placed:
            return SUCCESS
        needs: list[Need] = []
        for other in placed.values():
            selector = other.labels.get(WORKLOAD_LABEL, "")
            wanted = [each for each in dependencies if each.workload.selector == selector]
            node = snapshot.get(other.node_name) if wanted else None
            if wanted and node is None:
                return Status(Code.ERROR, (NO_NODE.format(other.node_name),))
            if node is not None:
                needs += ((_place(node), each) for each in wanted)
        state.write(_STATE, Overheads(self._overheads(snapshot, needs, topology)))
        return SUCCESS

    def _overheads(
        self, snapshot: Snapshot, needs: list[Need], topology: NetworkTopology
    ) -> dict[str, Overhead]:
        """Nodes of one zone differ only if they run one of the pods."""
        hosts = {place.node for place, _ in needs}
        by_zone: dict[tuple[str, str], Overhead] = {}
        found: dict[str, Overhead] = {}
        for node in snapshot:
            place = _place(node)
            key = (place.region, place.zone)
            known = None if node.name in hosts else by_zone.get(key)
            if known is None:
                costs = costs_from(topology, self._args.weights_name, *key)
                known = overhead_at(place, needs, costs)
                if node.name not in hosts:
                    by_zone[key] = known
            found[node.name] = known
        return found

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        known = state.read(_STATE, Overheads)
        if known is None:
            return NO_STATE
        if known.by_node is None:
            return None
        at = known.by_node.get(node.name, Overhead())
        if at.violated > at.satisfied:
            return unschedulable(TOO_FAR.format(node.name, at.satisfied, at.violated))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The cost; `normalize_scores` turns it around."""
        known = state.read(_STATE, Overheads)
        if known is None or known.by_node is None:
            return MIN_SCORE
        return known.by_node.get(node.name, Overhead()).cost

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        if not len(scores):
            return
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            if lowest:
                scores[:] = MAX_SCORE
            return
        cost = float(MAX_SCORE) * (scores - lowest).astype(np.float64) / float(highest - lowest)
        scores[:] = MAX_SCORE - cost.astype(np.int64)

    def _dependencies(self, pod: Pod) -> list[Dependency]:
        name, selector = pod.labels.get(APP_GROUP_LABEL), pod.labels.get(WORKLOAD_LABEL, "")
        if not name:
            return []
        for namespace in self._args.searched:
            group = self._listers.get(AppGroup, f"{namespace}/{name}")
            if group is not None:
                workloads = group.spec.workloads
                return [
                    dependency
                    for each in workloads
                    if each.workload.selector == selector
                    for dependency in each.dependencies
                ]
        return []

    def _topology(self) -> NetworkTopology | None:
        for namespace in self._args.searched:
            key = f"{namespace}/{self._args.network_topology_name}"
            if (found := self._listers.get(NetworkTopology, key)) is not None:
                return found
        return None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and old.node_name:
            self._placed.get(old.labels.get(APP_GROUP_LABEL, ""), {}).pop(old.key, None)
        if new is not None and new.node_name and (group := new.labels.get(APP_GROUP_LABEL)):
            self._placed.setdefault(group, {})[new.key] = new


def _place(node: NodeInfo) -> Place:
    return Place(node.name, node.labels.get(REGION, ""), node.labels.get(ZONE, ""))
