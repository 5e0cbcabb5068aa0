"""NodeVolumeLimits: a node gets no more volumes of a driver than the driver can attach.

`plugin` has the rule, `attached_volumes` has the counts of all nodes.
"""

from mooring.plugins.node_volume_limits.plugin import TOO_MANY as TOO_MANY
from mooring.plugins.node_volume_limits.plugin import NodeVolumeLimits as NodeVolumeLimits
