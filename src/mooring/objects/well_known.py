"""Names that Kubernetes itself gives to labels, taints and conditions."""

from __future__ import annotations

from mooring.objects.taints import Taint

#: Labels of a node: its own name, and where it is.
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
#: The same in older clusters.
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

#: The taint of a cordoned node.
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

#: The condition of a pod that says whether it has a node, and if not, why.
POD_SCHEDULED = "PodScheduled"
