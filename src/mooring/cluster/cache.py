"""The scheduler cache: which pods are on which nodes, including assumed pods.

The life of a pod in the cache, by UID:

            assume                add (confirmed by the watch)
    (none) ───────▶ assumed ──────────────────────────────────▶ added ──▶ update
       ▲              │ │                                         │
       └── forget ────┘ └── remove ──▶ (none) ◀── remove ─────────┘

Assumed pods do not expire: they stay until they are added, forgotten or removed. If a node is
removed before its pods, its entry stays, invisible to scheduling, until the last pod is gone.

A what-if is asked in a `trial`: what it changes is copied first, and the originals come back at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from mooring.cluster.affinity_terms import HeldTerms
from mooring.cluster.changes import Generations, RowChanges
from mooring.cluster.claim_cache import ClaimCache
from mooring.cluster.columns import Columns
from mooring.cluster.deduced_selectors import DeducedSelectors
from mooring.cluster.device_classes import DeviceClassNames
from mooring.cluster.device_counts import DeviceCounts
from mooring.cluster.device_pools import DevicePools
from mooring.cluster.listers import Listers
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.node_tree import NodeTree
from mooring.cluster.own_columns import ColumnSpec, FedColumn, Number, PodsColumn
from mooring.cluster.pod_counts import PodCounts
from mooring.cluster.pod_groups import PodGroupStates
from mooring.cluster.snapshot import Snapshot
from mooring.cluster.volume_cache import VolumeCache
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.errors import InvariantError, MooringError, PluginError, check_kept
from mooring.objects.node import Node
from mooring.objects.pod import Pod


class CacheError(MooringError):
    """A change of a pod or node that the cache does not allow."""


@dataclass(slots=True)
class _Trial:
    """What a trial has changed, as it was before."""

    #: Node name → its entry; None if there was none.
    infos: dict[str, NodeInfo | None] = field(default_factory=dict)
    #: None until a pod is added or removed.
    pods: dict[str, Pod] | None = None
    assumed: set[str] = field(default_factory=set)
    #: None until a node is added, removed or moved to another zone.
    tree: NodeTree | None = None


class Cluster:
    """Nodes, pods and the objects that plugins look up; columns follow by generation."""

    def __init__(
        self,
        *,
        has_pod_groups: bool = False,
        has_taint_rules: bool = False,
        groups_own_claims: bool = False,
        devices_serve_resources: bool = True,
        device_features: DeviceFeatures = ALL_FEATURES,
    ) -> None:
        """All say which feature gates are on.

        The first four are GenericWorkload, DRADeviceTaintRules, DRAWorkloadResourceClaims and
        DRAExtendedResource.
        """
        #: All changes of the cluster are counted by this: of nodes, pods and objects.
        self.generations = Generations()
        self.listers = Listers(self.generations)
        #: None unless the gate GenericWorkload is on.
        self.pod_groups = PodGroupStates() if has_pod_groups else None
        #: One for all profiles, so that no profile takes a volume that another has chosen.
        self.volumes = VolumeCache(self.listers)
        #: One for all profiles, so that no profile takes a device that another has chosen.
        self.claims = ClaimCache(self.listers, device_features, groups_own_claims=groups_own_claims)
        self.device_pools = DevicePools(
            self.listers,
            self.claims.devices,
            features=device_features,
            has_rules=has_taint_rules,
        )
        #: Shared by all profiles.
        self.deduced_selectors = DeducedSelectors(self.listers)
        self.device_classes = DeviceClassNames(self.listers, enabled=devices_serve_resources)
        self.columns = Columns()
        self.pod_counts = PodCounts(self.columns.capacity)
        self.held_terms = HeldTerms(self.columns.capacity)
        #: Every known node, and every unknown node that has pods.
        self.infos: dict[str, NodeInfo] = {}
        #: Every pod in the cache, by UID. An assumed pod has the node on which it was assumed.
        self.pods: dict[str, Pod] = {}
        self._assumed: set[str] = set()
        self._tree = NodeTree()
        #: The rows that changed, and what of them.
        self.changes = RowChanges(self.generations)
        self.device_counts = DeviceCounts(
            self.device_classes, self.device_pools, self.claims, self.changes.nodes
        )
        #: Names of entries whose row must be written again: for the node, or only for its pods.
        #: Nodes are in order of arrival, because the first node that lists an image gives its size.
        self._stale_nodes: dict[str, None] = {}
        self._stale_usage: set[str] = set()
        self._snapshot: Snapshot | None = None
        #: (column, node name) → what was fed since the last snapshot.
        self._feeds: dict[tuple[str, str], Number] = {}
        #: None outside of trials.
        self._trial: _Trial | None = None

    # Nodes

    def add_node(self, node: Node) -> None:
        self.update_node(node)

    def update_node(self, node: Node) -> None:
        info = self._changeable(node.name)
        if info.node is not None and _alike(info.node, node):
            # A heartbeat: no plugin reads what changed, unless a column of its own does.
            info.node = node
            if self.columns.own_columns.of_nodes and self.columns.own_columns.changed(
                info.row, node
            ):
                self._touch_node(info)
            return
        info.set_node(node)
        if not self._tree.has(node):
            self._changeable_tree().add(node)
            self._snapshot = None
        self._touch_node(info)

    def remove_node(self, name: str) -> None:
        known = self.infos.get(name)
        if known is None or known.node is None:
            raise CacheError(f"node {name} is not found")
        info = self._changeable(name)
        info.drop_node()
        if self._trial is None:
            for column in self.columns.own_columns.of_nodes:
                column.fed.pop(name, None)
                self._feeds.pop((column.spec.name, name), None)
        self._changeable_tree().remove(name)
        self._snapshot = None
        self._touch_node(info)
        self._drop_if_empty(info)

    # Columns of plugins

    def declare_column(self, spec: ColumnSpec, plugin: str) -> None:
        """Add a column that a plugin declares. Raises PluginError if its name is taken."""
        column = self.columns.own_columns.declare(spec, plugin, self.columns.capacity)
        if column is None:
            return
        for info in self.infos.values():
            if isinstance(spec, PodsColumn):
                for pod in info.pods.values():
                    column.add(info.row, pod)
            elif info.node is not None:
                column.write(info.row, info.node)

    def feed_column(self, name: str, node_name: str, value: Number) -> None:
        """Set the value of a node, known or not, in a column that is fed. Raises PluginError.

        It counts from the next snapshot on: an attempt sees one state of the cluster.
        """
        column = self.columns.own_columns.get(name)
        if not isinstance(column.spec, FedColumn):
            raise PluginError(f"column {name!r} is not fed: its values follow from nodes or pods")
        self._feeds[name, node_name] = column.checked(value)

    def _take_in_feeds(self) -> None:
        for (name, node_name), value in self._feeds.items():
            column = self.columns.own_columns.by_name[name]
            column.fed[node_name] = value
            info = self.infos.get(node_name)
            if info is not None and info.node is not None and column.values[info.row] != value:
                column.values[info.row] = value
                self._touch(info)
        self._feeds.clear()

    # Pods

    def assume_pod(self, pod: Pod, *, trying: bool = False) -> None:
        """Count a pod on the node that its spec names, before the API server confirms it.

        `trying` says that the pod is tried with its group, and will be forgotten at the end of it.
        """
        uid = pod.uid
        if uid in self.pods:
            raise CacheError(f"pod {_label(pod)} is in the cache, so can't be assumed")
        self._put(pod)
        self._assumed.add(uid)
        if trying:
            info = self.infos[pod.node_name]
            beside = (other for other in info.pods.values() if other.uid != uid)
            self.held_terms.unlist(pod, info.row, beside)
        if self.pod_groups is not None:
            self.pod_groups.assume(pod)

    def forget_pod(self, pod: Pod, *, trying: bool = False) -> None:
        """Undo `assume_pod`. Do nothing if the pod is not in the cache.

        `trying` says that the cycle of the pod's group goes on with it.
        """
        known = self.pods.get(pod.uid)
        if known is None:
            return
        if known.node_name != pod.node_name:
            raise CacheError(
                f"pod {_label(pod)} was assumed on {known.node_name}"
                f" but assigned to {pod.node_name}"
            )
        if pod.uid not in self._assumed:
            raise CacheError(f"pod {_label(pod)} wasn't assumed so cannot be forgotten")
        info = self._changeable_with_pods(known.node_name)
        self._take(known)
        if known.host_ports:
            info.keep_ports(known.host_ports)
        if self.pod_groups is not None:
            self.pod_groups.forget(pod, trying=trying)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod that the watch shows on its node, or confirm an assumed pod."""
        known = self.pods.get(pod.uid)
        if known is not None:
            if pod.uid not in self._assumed:
                raise CacheError(f"pod {_label(pod)} was already in added state")
            self._replace(known, pod)
        else:
            self._put(pod)
        if self.pod_groups is not None:
            self.pod_groups.put(pod)

    def update_pod(self, pod: Pod) -> None:
        known = self.pods.get(pod.uid)
        if known is None:
            raise CacheError(
                f"pod {_label(pod)} is not added to scheduler cache, so cannot be updated"
            )
        if pod.uid in self._assumed:
            raise CacheError(f"assumed pod {_label(pod)} should not be updated")
        if known.node_name != pod.node_name:
            raise InvariantError(
                f"pod {_label(pod)} moved from {known.node_name} to {pod.node_name}:"
                " the API server forbids that, so events were lost"
            )
        self._replace(known, pod)
        if self.pod_groups is not None:
            self.pod_groups.put(pod)

    def remove_pod(self, pod: Pod) -> None:
        known = self.pods.get(pod.uid)
        if known is None:
            raise CacheError(
                f"pod {_label(pod)} is not found in scheduler cache, so cannot be removed from it"
            )
        if pod.node_name and known.node_name != pod.node_name:
            raise InvariantError(
                f"pod {_label(pod)} was on {known.node_name} and is removed from {pod.node_name}:"
                " the API server forbids that, so events were lost"
            )
        self._take(known)
        if self.pod_groups is not None:
            self.pod_groups.remove(pod)

    def take_out(self, pod: Pod) -> bool:
        """Leave a pod out of account until `put_back`; whether it is assumed.

        For dry runs. Its group, if it is in one, still counts it.
        """
        assumed = pod.uid in self._assumed
        self._take(self.pods[pod.uid])
        return assumed

    def put_back(self, pod: Pod, *, assumed: bool) -> None:
        """Undo `take_out`."""
        self._put(pod)
        if assumed:
            self._assumed.add(pod.uid)

    def is_assumed(self, pod: Pod) -> bool:
        return pod.uid in self._assumed

    def assumed_pods(self) -> list[Pod]:
        return [self.pods[uid] for uid in self._assumed]

    # Trials

    @contextmanager
    def trial(self) -> Iterator[None]:
        """At the end, everything that was changed is as it was, to the order of the pods on a node.

        Trials may be nested. What plugins assume in `volumes` and `claims` is theirs to take back.
        """
        outer, trial = self._trial, _Trial()
        self._trial = trial
        try:
            groups = self.pod_groups.trial() if self.pod_groups is not None else nullcontext()
            with self.listers.trial(), groups:
                yield
        finally:
            self._trial = outer
            self._restore(trial)

    def _changeable(self, name: str) -> NodeInfo:
        """The entry of a node, to be changed: in a trial, a copy."""
        trial = self._trial
        if trial is not None and name not in trial.infos:
            before = trial.infos[name] = self.infos.get(name)
            if before is not None:
                self.infos[name] = before.copy()
        return self._info(name)

    def _changeable_tree(self) -> NodeTree:
        trial = self._trial
        if trial is not None and trial.tree is None:
            trial.tree, self._tree = self._tree, self._tree.copy()
        return self._tree

    def _changeable_with_pods(self, name: str) -> NodeInfo:
        """As `_changeable`, for a change of the pods on the node."""
        trial = self._trial
        if trial is None:
            return self.infos.get(name) or self._info(name)
        if trial.pods is None:
            trial.pods, self.pods = self.pods, self.pods.copy()
            trial.assumed, self._assumed = self._assumed, self._assumed.copy()
        return self._changeable(name)

    def _restore(self, trial: _Trial) -> None:
        for name, before in trial.infos.items():
            after = self.infos[name]
            original = before if before is not None else NodeInfo(name, after.row)
            self._recount(after, original)
            self.infos[name] = original
            if original.node is after.node:
                self._touch(original)
            else:
                self._touch_node(original)
            if before is None and self._trial is not None:
                self._trial.infos.setdefault(name, None)
            self._drop_if_empty(original)
        if trial.pods is not None:
            self.pods, self._assumed = trial.pods, trial.assumed
        if trial.tree is not None:
            self._tree = trial.tree
            self._snapshot = None

    def _recount(self, after: NodeInfo, original: NodeInfo) -> None:
        """Count the pods of an entry as they were."""
        row = original.row
        now, then = ({id(pod): pod for pod in i.pods.values()} for i in (after, original))
        for pod in [now[key] for key in now if key not in then]:
            self._discount(pod, row)
        for pod in [then[key] for key in then if key not in now]:
            self._count(pod, row)

    # Snapshots

    def snapshot(self) -> Snapshot:
        """Write the rows that changed since the last call."""
        if self._feeds:
            self._take_in_feeds()
        return self.snapshot_in_attempt()

    def snapshot_in_attempt(self) -> Snapshot:
        """As `snapshot`, but what plugins feed waits for the next attempt."""
        columns, infos = self.columns, self.infos
        for name in self._stale_nodes:
            if (info := infos.get(name)) is not None:
                columns.write_node(info)
        for name in self._stale_usage:
            if (info := infos.get(name)) is not None:
                columns.write_usage(info)
        self._stale_nodes.clear()
        self._stale_usage.clear()
        if self._snapshot is None:
            columns.compact()
            self._snapshot = Snapshot(
                order=self._tree.order(),
                infos=infos,
                columns=columns,
                pod_counts=self.pod_counts,
                held_terms=self.held_terms,
                listers=self.listers,
            )
        if len(self._snapshot) != columns.count:
            raise InvariantError(
                f"snapshot state is not consistent: {len(self._snapshot)} nodes in order,"
                f" {columns.count} in columns"
            )
        return self._snapshot

    def validate(self) -> None:
        """Raise InvariantError unless everything that is kept equals a rebuild.

        For tests and for dumps. Changed rows are written first, as for a snapshot.
        """
        self._validate_pods()
        rebuilt = self._rebuilt()
        for name, info in self.infos.items():
            info.validate(rebuilt.infos[name])
        self._tree.validate(rebuilt._tree)
        snapshot, rebuilt_columns = self.snapshot(), rebuilt.snapshot().columns
        check_kept("the order of nodes", snapshot.order, self._tree.order())
        snapshot.validate()
        self.columns.validate(rebuilt_columns)
        self._validate_rows()
        self.pod_counts.validate(rebuilt.pod_counts, self.columns)
        self.held_terms.validate(rebuilt.held_terms, self.columns)
        self.listers.validate()
        self.volumes.validate()
        self.claims.validate()
        self.device_pools.validate()
        self.deduced_selectors.validate()
        self.device_classes.validate()

    def _validate_pods(self) -> None:
        for info in self.infos.values():
            info.pods.validate()
        by_pod = {uid: pod.node_name for uid, pod in self.pods.items()}
        on_nodes: dict[str, str] = {}
        for name, info in self.infos.items():
            for pod in info.pods.values():
                if pod.uid in on_nodes:
                    raise InvariantError(
                        f"pod {_label(pod)} is on {on_nodes[pod.uid]} and on {name}"
                    )
                on_nodes[pod.uid] = name
                if pod is not self.pods.get(pod.uid, pod):
                    raise InvariantError(f"pod {_label(pod)} is another version on its node")
        check_kept("the nodes of pods", by_pod, on_nodes)
        if not self._assumed <= self.pods.keys():
            raise InvariantError("an assumed pod is not in the cache")
        for name, info in self.infos.items():
            if info.node is None and not len(info.pods):
                raise InvariantError(f"node {name} is kept without a node and without pods")

    def _validate_rows(self) -> None:
        """Each entry has its own row, written since its last change; all other rows are free."""
        rows = sorted([info.row for info in self.infos.values()] + self.columns.free_slots)
        check_kept("rows", rows, list(range(self.columns.size)))
        for name, info in self.infos.items():
            written = int(self.columns.generations[info.row])
            check_kept(f"the generation of the row of {name}", written, info.generation)
            ports = self.columns.port_sets.at(info.row)
            check_kept(f"the ports in the row of {name}", ports, info.used_ports)
            if info.generation > self.generations.latest:
                raise InvariantError(f"node {name} has a generation that was not assigned yet")

    def _rebuilt(self) -> Cluster:
        """A new cluster with the same nodes and pods in the same rows."""
        rebuilt = Cluster()
        for spec, plugin in self.columns.own_columns.specs():
            rebuilt.declare_column(spec, plugin)
        names = {info.row: name for name, info in self.infos.items()}
        for row in range(self.columns.size):
            if row in names:
                rebuilt._info(names[row])
            else:
                rebuilt._take_row()
        for name in dict.fromkeys((*self._tree.names(), *self.infos)):
            if (info := self.infos.get(name)) is not None and info.node is not None:
                rebuilt.add_node(info.node)
        for info in self.infos.values():
            for pod in info.pods.values():
                rebuilt.add_pod(pod)
        return rebuilt

    def _info(self, name: str) -> NodeInfo:
        info = self.infos.get(name)
        if info is None:
            info = self.infos[name] = NodeInfo(name, self._take_row())
        return info

    def _take_row(self) -> int:
        size = self.columns.size
        row = self.columns.take_slot()
        if self.columns.size > size:
            # A snapshot has an element for each slot, also for the slot of an unknown node.
            self._snapshot = None
        if self.pod_counts.capacity < self.columns.capacity:
            self.pod_counts.grow(self.columns.capacity)
            self.held_terms.grow(self.columns.capacity)
        return row

    def _put(self, pod: Pod) -> None:
        uid = pod.uid
        if not uid:
            raise CacheError(f"pod {pod.key} has no UID, which identifies pods")
        info = self._changeable_with_pods(pod.node_name)
        info.add_pod(pod)
        self.pods[uid] = pod
        self._count(pod, info.row)
        self._touch(info)

    def _take(self, pod: Pod) -> None:
        info = self._changeable_with_pods(pod.node_name)
        info.remove_pod(pod)
        del self.pods[pod.uid]
        self._assumed.discard(pod.uid)
        self._discount(pod, info.row)
        self._touch(info)
        self._drop_if_empty(info)

    def _count(self, pod: Pod, row: int) -> None:
        self.pod_counts.add(pod, row)
        self.held_terms.add(pod, row)
        for column in self.columns.own_columns.of_pods:
            column.add(row, pod)

    def _discount(self, pod: Pod, row: int) -> None:
        self.pod_counts.remove(pod, row)
        self.held_terms.remove(pod, row)
        for column in self.columns.own_columns.of_pods:
            column.remove(row, pod)

    def _replace(self, known: Pod, pod: Pod) -> None:
        """Put a newer version of a pod in the place of the known one.

        Most new versions change the status alone: the bind is confirmed, containers start, probes
        succeed. Then nothing is counted again.
        """
        if (
            known.node_name != pod.node_name
            or pod.host_ports
            or self.columns.own_columns.of_pods
            or not _count_alike(known, pod)
        ):
            self._take(known)
            self._put(pod)
            return
        info = self._changeable_with_pods(pod.node_name)
        uid = pod.uid
        # At the end, as if it had been removed and added: victims are chosen in this order.
        info.pods.remove(uid)
        info.pods.add(pod)
        del self.pods[uid]
        self.pods[uid] = pod
        self._assumed.discard(uid)
        self._touch_pods(info)

    def _touch(self, info: NodeInfo) -> None:
        """What the pods of the node take has changed."""
        info.generation = self.changes.note_sums(info.row)
        self._stale_usage.add(info.name)

    def _touch_pods(self, info: NodeInfo) -> None:
        """A pod was replaced by a version that counts the same."""
        info.generation = self.changes.note_pod(info.row)
        self._stale_usage.add(info.name)

    def _touch_node(self, info: NodeInfo) -> None:
        info.generation = self.changes.note_node(info.row)
        self._stale_usage.add(info.name)
        self._stale_nodes[info.name] = None

    def _drop_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods and self._trial is None:
            self.columns.write_node(info)
            self.columns.write_usage(info)
            self.columns.free_slot(info.row)
            del self.infos[info.name]


def _count_alike(known: Pod, pod: Pod) -> bool:
    """Whether two versions of a pod on one node change no sum and no counter."""
    return (
        (known.spec is pod.spec or known.spec == pod.spec)
        and (known.selector_key is pod.selector_key or known.selector_key == pod.selector_key)
        and known.terminating == pod.terminating
        and known.held == pod.held
        and known.held_non_zero == pod.held_non_zero
    )


def _alike(a: Node, b: Node) -> bool:
    """Whether two versions of a node are the same for every plugin."""
    return (
        a.metadata.labels == b.metadata.labels
        and a.metadata.annotations == b.metadata.annotations
        and a.spec == b.spec
        and a.status.allocatable == b.status.allocatable
        and a.status.declared_features == b.status.declared_features
        and a.status.images == b.status.images
    )


def _label(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"
