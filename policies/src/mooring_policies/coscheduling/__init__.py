"""Coscheduling: the pods of a PodGroup start together, or wait.

The plugin of scheduler-plugins, with its names and arguments. A pod belongs to the PodGroup
(`scheduling.x-k8s.io/v1alpha1`) in its namespace that its label names.
"""

from mooring_policies.coscheduling.objects import POD_GROUP_LABEL as POD_GROUP_LABEL
from mooring_policies.coscheduling.objects import PodGroup as PodGroup
from mooring_policies.coscheduling.plugin import Coscheduling as Coscheduling
from mooring_policies.coscheduling.plugin import CoschedulingArgs as CoschedulingArgs
