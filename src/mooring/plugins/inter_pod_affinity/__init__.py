"""InterPodAffinity: pods attract other pods to their topology domains, or keep them out.

A term selects pods and names a topology key; nodes with the same value of that label are one domain.
Required terms filter nodes: the affinity and anti-affinity of the incoming pod, and the anti-affinity of
placed pods. Preferred terms score nodes, those of the incoming pod and those of placed pods, and so does
the required affinity of placed pods.

- `plugin`: the plugin itself, point by point
- `queries`: which pods the terms of the incoming pod match
- `malformed`: what is wrong with terms that cannot be compiled
- `topology_counts`: a number for each domain of several topology keys
- `required`: the counts of required terms (PreFilter, Filter)
- `weights`: the weights of preferred terms (PreScore, Score)
- `hints`: which events may make a refused pod schedulable
"""

from mooring.plugins.inter_pod_affinity.plugin import InterPodAffinity as InterPodAffinity
