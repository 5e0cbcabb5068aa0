"""The cluster as plugins see it: everything to read, and no way to add, move or remove pods and nodes.

The books of a cluster are changed by the engine alone. The two caches in which plugins note what they have
chosen and not written yet, `volumes` and `claims`, are the
exception: they belong to the plugins that use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mooring.cluster.cache import Cluster
from mooring.cluster.changes import RowChanges
from mooring.cluster.claim_cache import ClaimCache
from mooring.cluster.columns import Columns
from mooring.cluster.deduced_selectors import DeducedSelectors
from mooring.cluster.device_classes import DeviceClassNames
from mooring.cluster.device_counts import DeviceCounts
from mooring.cluster.device_pools import DevicePools
from mooring.cluster.listers import Listers
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.pod_groups import PodGroupStates
from mooring.cluster.snapshot import Snapshot
from mooring.cluster.volume_cache import VolumeCache
from mooring.errors import PluginError
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod


class ReadOnlyListers(Listers):
    """The listers of a cluster, as they are at each moment."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        # Shared: reading costs what it costs the engine.
        self._by_kind = listers._by_kind
        self._followers = listers._followers

    @property
    def generation(self) -> int:  # type: ignore[override]
        return self._listers.generation

    def put(self, obj: KubeObject) -> KubeObject | None:
        raise PluginError(f"a plugin cannot add {obj.key}: objects come from the API server")

    def drop(self, obj: KubeObject) -> KubeObject | None:
        raise PluginError(f"a plugin cannot remove {obj.key}: objects come from the API server")


class ClusterView:
    """A live view, not a copy: it shows the cluster as it is at each moment.

    Nodes, columns and objects are shared with the engine. Change a copy (`NodeInfo.copy`), never them.
    """

    __slots__ = (
        "_cluster",
        "changes",
        "claims",
        "columns",
        "deduced_selectors",
        "device_classes",
        "device_counts",
        "device_pools",
        "infos",
        "listers",
        "pod_groups",
        "volumes",
    )

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: Every known node, and every unknown node that has pods, by name.
        self.infos: Mapping[str, NodeInfo] = MappingProxyType(cluster.infos)
        #: The nodes as arrays. They are brought up to date by `snapshot`.
        self.columns: Columns = cluster.columns
        #: Objects of every other kind.
        self.listers: Listers = ReadOnlyListers(cluster.listers)
        #: The rows that changed, and what of them.
        self.changes: RowChanges = cluster.changes
        #: The pod groups; None unless the gate GenericWorkload is on.
        self.pod_groups: PodGroupStates | None = cluster.pod_groups
        #: Selectors of the services and controllers that pods belong to.
        self.deduced_selectors: DeducedSelectors = cluster.deduced_selectors
        #: Volumes and claims as plugins assume them, before the API server confirms it.
        self.volumes: VolumeCache = cluster.volumes
        #: Resource claims in the same way, and the devices in use.
        self.claims: ClaimCache = cluster.claims
        self.device_classes: DeviceClassNames = cluster.device_classes
        self.device_counts: DeviceCounts = cluster.device_counts
        self.device_pools: DevicePools = cluster.device_pools

    @property
    def pods(self) -> Mapping[str, Pod]:
        """Every pod that has a node, by UID, with those whose binding is under way."""
        return MappingProxyType(self._cluster.pods)

    def snapshot(self) -> Snapshot:
        """The nodes in order, with columns that are up to date."""
        return self._cluster.snapshot_in_attempt()

    def is_assumed(self, pod: Pod) -> bool:
        """Whether the pod has its node from the scheduler and not yet from the API server."""
        return self._cluster.is_assumed(pod)
