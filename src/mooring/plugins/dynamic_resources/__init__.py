"""DynamicResources: a pod goes to a node that has the devices its claims ask for.

- `plugin`: the plugin itself, point by point
- `pod_claims`: the claims of a pod, and what an attempt finds out about them (PreEnqueue, PreFilter)
- `extended_resources`: extended resources that device classes serve, as a claim of the pod
- `node_filter`: whether the claims can be had on one node (Filter)
- `deallocation`: give back what blocks a pod, or what an attempt took (PostFilter, Unreserve)
- `binding`: write allocations and reservations, and wait for devices (PreBind)
- `hints`: which events may make a refused pod schedulable
"""

from mooring.plugins.dynamic_resources.plugin import DynamicResources as DynamicResources
