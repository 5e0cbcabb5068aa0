"""The well-known names of labels, taints and conditions."""

from __future__ import annotations

from mooring.objects.taints import Taint

#: Node labels: the name, zone and region.
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
#: The deprecated labels for zone and region.
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

#: The taint of a cordoned node.
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

#: The pod condition that says whether the pod has a node, and if not, why.
POD_SCHEDULED = "PodScheduled"
