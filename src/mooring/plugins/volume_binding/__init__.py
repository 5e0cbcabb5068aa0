"""VolumeBinding: a pod goes to a node that can use its volumes, and unbound claims are bound there.

- `plugin`: the plugin itself, point by point
- `search`: bindings for a pod's claims on one node (PreFilter, Filter)
- `matching`: which existing volume fits a claim
- `provisioning`: whether a volume can be provisioned for a claim
- `capacity_score`: how full the storage would be (Score)
- `reservation`: assume the decisions before they are written (Reserve, Unreserve)
- `binding`: write the decisions and wait for the result (PreBind)
- `hints`: which events may make a refused pod schedulable
"""

from mooring.plugins.volume_binding.plugin import VolumeBinding as VolumeBinding
