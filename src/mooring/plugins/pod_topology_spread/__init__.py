"""PodTopologySpread: matching pods are spread evenly over zones, hosts or other domains.

A constraint counts the pods that its selector matches in each domain, that is, for each value of a node
label. A hard constraint (DoNotSchedule) refuses a node if its domain would exceed the emptiest domain
by too much. A soft constraint (ScheduleAnyway) gives fuller domains a lower score.

- `plugin`: the plugin itself, point by point
- `constraints`: which constraints apply to a pod, its own or the default ones
- `alike`: what is found once for many pods
- `inclusion`: which nodes a constraint counts
- `hard_state`: the counts of hard constraints (PreFilter, Filter)
- `soft_state`: the counts of soft constraints (PreScore, Score)
- `hints`: which events may make a refused pod schedulable
"""

from mooring.plugins.pod_topology_spread.plugin import PodTopologySpread as PodTopologySpread
