"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes to nodes that declare it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Hint,
    NodeInfo,
    PluginError,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    by_mask,
    on_add_or_update,
    on_update,
    unresolvable,
)
from mooring.plugin.changes import DeclareFeatures

NOT_DECLARED = unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"

_PRE_FILTER = "PreFilterNodeDeclaredFeatures"

_NODE_CHANGED = Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE
_POD_CHANGED = Action.UPDATE


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        required = required_features(pod)
        if not required:
            return SKIP
        state.write(_PRE_FILTER, required)
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert node.node is not None
        declared = frozenset(node.node.status.declared_features)
        return SUCCESS if _required(state) <= declared else NOT_DECLARED

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        return by_mask(columns.feature_sets.judge(_required(state).issubset, rows), NOT_DECLARED)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_add_or_update(Node, _NODE_CHANGED, _after_node_change),
            on_update(Pod, _POD_CHANGED, _after_pod_update),
        )

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        """For nodes that do not declare what the pod needs; the fewest features first."""
        required = required_features(pod)
        nodes = (info.node for info in refusals.snapshot if required and info.node is not None)
        changes = [
            DeclareFeatures(node.name, tuple(sorted(lacking)))
            for node in nodes
            if (lacking := required.difference(node.status.declared_features))
        ]
        for change in sorted(changes, key=lambda change: (change.size, change.node)):
            yield Suggestion.fixed(change)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"v1.Pod.Spec.RequiredFeatures()": required_features(pod)}


def required_features(pod: Pod) -> frozenset[str]:
    """The features that a pod's spec needs. Others matter only to updates of running pods."""
    spec = pod.spec
    features = set()
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        features.add(RESTART_ALL_CONTAINERS)
    # As in the reference, this does not depend on the feature gate of the same name.
    if spec.host_network and spec.host_users is False:
        features.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(features)


def _required(state: CycleState) -> frozenset[str]:
    required = state.read(_PRE_FILTER, frozenset)
    if required is None:
        raise PluginError(f'error reading "{_PRE_FILTER}" from cycle-state: not found')
    return required


def _after_node_change(pod: Pod, old: Node | None, new: Node) -> Hint:
    if old is not None and old.status.declared_features == new.status.declared_features:
        return Hint.SKIP
    return Hint.QUEUE


def _after_pod_update(pod: Pod, old: Pod, new: Pod) -> Hint:
    if new.uid != pod.uid or required_features(old) == required_features(new):
        return Hint.SKIP
    return Hint.QUEUE
