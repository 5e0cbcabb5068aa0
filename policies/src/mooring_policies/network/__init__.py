"""NetworkOverhead and TopologicalSort: pods of an application go near the pods that they talk to.

The plugins of scheduler-plugins, with their names and arguments. An AppGroup says which workloads
depend on which, a NetworkTopology what it costs to talk across zones and regions.
"""

from mooring_policies.network.objects import AppGroup as AppGroup
from mooring_policies.network.objects import NetworkTopology as NetworkTopology
from mooring_policies.network.overhead import NetworkOverhead as NetworkOverhead
from mooring_policies.network.topological_sort import TopologicalSort as TopologicalSort
