"""What pods with equal claims would get on each node, kept until a device of the node changes hands.

Pods of one controller have claims from one template: what was found on a node for one of them holds for
the next one, unless slices, classes, the node, or the use of its devices changed. So after a decision
usually one node is asked again: the one that the last pod went to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from mooring.objects.devices import ResourceClaim, ResourceSliceSpec
from mooring.objects.meta import encode_hook
from mooring.objects.pod import Pod
from mooring.plugin import SUCCESS, ClusterView, Columns, Ints, NodeInfo, Status
from mooring.plugin.devices import PoolID
from mooring.plugins.dynamic_resources.pod_claims import NodeAllocation, PodClaims

#: For how many kinds of pods answers are kept; the kind that was asked for longest ago goes first.
MOST_KINDS = 128

#: Judges a node: the status, and what the pod gets there.
Judge = Callable[[NodeInfo], tuple[Status, NodeAllocation | None]]

_ENCODER = msgspec.json.Encoder(enc_hook=encode_hook, order="deterministic")


class KeptRows:
    """The answers for one kind of pods, row by row."""

    def __init__(self) -> None:
        #: int64[row]: 0 where the row passes, otherwise a place in `statuses`.
        self.codes: Ints = np.zeros(0, np.int64)
        #: int64[row]: the scores of rows that pass.
        self.scores: Ints = np.zeros(0, np.int64)
        self.statuses: list[Status] = [SUCCESS]
        self.found: dict[str, NodeAllocation] = {}
        #: What the answers were made of: positions in logs, and the revision of slices and classes.
        self.pools_at = 0
        self.nodes_at = 0
        self.revision = -1

    def set(self, row: int, name: str, status: Status, found: NodeAllocation | None) -> None:
        if status.ok:
            self.codes[row] = 0
        else:
            if status not in self.statuses:
                self.statuses.append(status)
            self.codes[row] = self.statuses.index(status)
        if found is None:
            self.found.pop(name, None)
        else:
            self.found[name] = found


class KeptAllocations:
    """Shared by all pods of a profile."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._kinds: dict[object, KeptRows] = {}
        #: Pools → the names of the nodes that can use their devices; None if a name does not say.
        self._nodes_of: dict[PoolID, set[str] | None] = {}
        self._filed_at = -1

    def of(
        self,
        claims: PodClaims,
        pod: Pod,
        columns: Columns,
        judge: Judge,
        score: Callable[[NodeAllocation], int],
    ) -> KeptRows:
        """The answers for all rows, up to date. Whatever `judge` raises ends this."""
        kind = kind_of(claims, pod)
        rows = self._kinds.pop(kind, None) or KeptRows()
        outdated = self._outdated(rows, columns)
        for row in outdated:
            info = self._cluster.infos.get(columns.names[row])
            if info is not None and info.node is not None:
                status, found = judge(info)
                rows.set(row, info.name, status, found)
                rows.scores[row] = 0 if found is None else score(found)
        rows.pools_at = self._cluster.claims.pool_changes.position
        rows.nodes_at = self._cluster.changes.nodes.position
        rows.revision = self._cluster.device_pools.revision
        if len(self._kinds) >= MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = rows
        return rows

    def _outdated(self, rows: KeptRows, columns: Columns) -> Iterable[int]:
        """The rows to be judged again."""
        cluster = self._cluster
        nodes = cluster.changes.nodes.since(rows.nodes_at)
        pools = cluster.claims.pool_changes.since(rows.pools_at)
        if (
            rows.revision != cluster.device_pools.revision
            or len(rows.codes) != columns.size
            or nodes is None
            or pools is None
        ):
            return _all(rows, columns)
        changed = set(nodes)
        for pool in pools:
            names = self._nodes_with(pool)
            if names is None:
                return _all(rows, columns)
            changed.update(columns.row_of[name] for name in names if name in columns.row_of)
        return changed

    def _nodes_with(self, pool: PoolID) -> set[str] | None:
        if self._filed_at != self._cluster.device_pools.revision:
            self._filed_at = self._cluster.device_pools.revision
            self._nodes_of = {}
            for piece in self._cluster.device_pools.slices.slices:
                key = PoolID(piece.spec.driver, piece.spec.pool.name)
                known = self._nodes_of.setdefault(key, set())
                names = _node_names(piece.spec)
                if known is None or names is None:
                    self._nodes_of[key] = None
                else:
                    known.update(names)
        # Devices of an unknown pool are used nowhere.
        return self._nodes_of.get(pool, set())


def _all(rows: KeptRows, columns: Columns) -> range:
    rows.codes = np.zeros(columns.size, np.int64)
    rows.scores = np.zeros(columns.size, np.int64)
    rows.found = {}
    return range(columns.size)


def _node_names(spec: ResourceSliceSpec) -> set[str] | None:
    """The nodes that can use the devices of a slice, if they are named."""
    if not spec.devices:
        return set()
    if spec.per_device_node_selection:
        names = {device.node_name for device in spec.devices}
        return None if None in names else {name for name in names if name}
    return {spec.node_name} if spec.node_name else None


def kind_of(claims: PodClaims, pod: Pod) -> object:
    """Pods with equal kinds get equal answers about their claims, which are not allocated yet."""
    kinds = [spec_key(claim) for claim in claims.user_claims()]
    if claims.extended_at is None:
        return tuple(kinds)
    spec = pod.spec
    containers = [
        (each.name, each.restartable, each.resources.requests)
        for each in (*spec.init_containers, *spec.containers)
    ]
    left_over = bool(claims.claims[claims.extended_at].spec.devices.requests)
    extended = _ENCODER.encode((claims.resources, len(spec.init_containers), containers))
    return (*kinds, left_over, extended)


def spec_key(claim: ResourceClaim) -> bytes:
    """Equal for claims that ask for the same."""
    key = claim.__dict__.get("spec_key")
    if key is None:
        key = claim.__dict__["spec_key"] = _ENCODER.encode(claim.spec)
    return bytes(key)
