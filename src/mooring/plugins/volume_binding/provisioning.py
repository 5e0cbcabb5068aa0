"""Whether a volume can be provisioned for a claim that no existing volume fits."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.claims import (
    allows_topology,
    provisions,
    requested_storage,
    requests_storage,
)
from mooring.objects.quantity import Quantity
from mooring.objects.selectors import compile_selector
from mooring.objects.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.plugin import Listers
from mooring.plugin.pods import Terms, TopologyIndex

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"


class Provisioning:
    """On which nodes a volume can be provisioned for one claim."""

    def __init__(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, listers: Listers
    ) -> None:
        self._class = storage_class
        #: The pools with enough capacity; None if the driver does not track capacity.
        self._pools: TopologyIndex[CSIStorageCapacity] | None = None
        driver = listers.get(CSIDriver, storage_class.provisioner)
        if requests_storage(claim) and driver is not None and driver.spec.storage_capacity:
            size_bytes = requested_storage(claim).value
            pools = sorted(listers.all(CSIStorageCapacity), key=lambda pool: pool.key)
            self._pools = TopologyIndex(
                (pool, _terms(pool))
                for pool in pools
                if pool.storage_class_name == storage_class.name and _has_room(pool, size_bytes)
            )

    def refusal(self, node_labels: Mapping[str, str]) -> str | None:
        """Why no volume can be provisioned for a node with these labels."""
        if not provisions(self._class) or not allows_topology(self._class, node_labels):
            return BIND_CONFLICT
        if self._pools is not None and self.pool_for(node_labels) is None:
            return NOT_ENOUGH_SPACE
        return None

    def pool_for(self, node_labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        """The pool that the volume would come from, if the driver tracks capacity."""
        if self._pools is None:
            return None
        return next(self._pools.from_node(node_labels), None)


def volume_limit(pool: CSIStorageCapacity) -> Quantity | None:
    """The largest volume that fits the pool, if it says."""
    return pool.capacity if pool.maximum_volume_size is None else pool.maximum_volume_size


def _has_room(pool: CSIStorageCapacity, size_bytes: int) -> bool:
    limit = volume_limit(pool)
    return limit is not None and limit.value >= size_bytes


def _terms(pool: CSIStorageCapacity) -> Terms:
    """The topology of a pool. If it is missing or malformed, no node can use the pool."""
    try:
        selector = compile_selector(pool.node_topology)
    except ValueError:
        return []
    return [] if selector.nothing else [selector.requirements]
