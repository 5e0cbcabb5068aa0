"""CapacityScheduling: namespaces share the cluster by ElasticQuotas.

The plugin of scheduler-plugins, with its names. A namespace may use up to `max`, and what others do
not use of their `min`; who borrowed gives back by preemption.
"""

from mooring_policies.capacity_scheduling.objects import ElasticQuota as ElasticQuota
from mooring_policies.capacity_scheduling.plugin import CapacityScheduling as CapacityScheduling
