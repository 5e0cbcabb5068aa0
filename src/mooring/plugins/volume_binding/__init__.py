"""VolumeBinding: a pod goes where its volumes can be had, and unbound claims get theirs there.

- `plugin`: the plugin itself, point by point
- `search`: what becomes of a pod's claims on one node (PreFilter, Filter)
- `matching`: which volume a claim would be bound to
- `provisioning`: whether a volume could be made for it
- `capacity_score`: how full the storage would be (Score)
- `reservation`: the decisions assumed, before they are written (Reserve, Unreserve)
- `binding`: the decisions written, and waited for (PreBind)
- `hints`: what may make a pod schedulable that was refused
"""

from mooring.plugins.volume_binding.plugin import VolumeBinding as VolumeBinding
