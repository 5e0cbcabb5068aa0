"""NodeResourcesBalancedAllocation: a pod is best where it brings the use of resources into balance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.device_classes import DeviceClassNames
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.args import CPU_AND_MEMORY, NodeResourcesBalancedAllocationArgs
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Handle
from mooring.framework.status import SKIP, SUCCESS, Status, unschedulable
from mooring.objects.pod import Pod
from mooring.objects.requests import amount_of
from mooring.plugins import resource_scoring
from mooring.plugins.resource_scoring import Ask
