"""What the metrics server says of nodes."""

from __future__ import annotations

from datetime import datetime

from mooring.objects.kinds import custom_kind
from mooring.objects.meta import KubeObject, ResourceList

#: How often the load is asked for.
UPDATE_S = 30.0


class NodeMetrics(KubeObject, frozen=True):
    """The latest use of a node."""

    timestamp: datetime | None = None
    usage: ResourceList = {}


#: The metrics server has no watches.
NODE_METRICS = custom_kind(
    NodeMetrics, "metrics.k8s.io", "nodes", version="v1beta1", namespaced=False, poll_s=UPDATE_S
)
