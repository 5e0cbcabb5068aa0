"""NodeResourceTopologyMatch: pods go where one NUMA zone has all that they need.

The plugin of scheduler-plugins, with its name and arguments. What the zones of a node have is in its
NodeResourceTopology (`topology.node.k8s.io/v1alpha2`), which an agent on the node writes.
"""

from mooring_policies.node_resource_topology.objects import (
    NodeResourceTopology as NodeResourceTopology,
)
from mooring_policies.node_resource_topology.plugin import (
    NodeResourceTopologyMatch as NodeResourceTopologyMatch,
)
