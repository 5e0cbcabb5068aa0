"""The contract of plugins: everything that a plugin may import, and nothing else.

A plugin is a plain class with a `name` and the methods of the extension points that it takes part in
(`mooring.framework.interface` lists them). It imports this module and the object types of
`mooring.objects`.
"""

from mooring.cluster.columns import Columns as Columns
from mooring.cluster.columns import Ints as Ints
from mooring.cluster.columns import Rows as Rows
from mooring.cluster.columns import row_count as row_count
from mooring.cluster.listers import Listers as Listers
from mooring.cluster.node_info import NodeInfo as NodeInfo
from mooring.cluster.observed_pods import ObservedPods as ObservedPods
from mooring.cluster.snapshot import Snapshot as Snapshot
from mooring.errors import PluginError as PluginError
from mooring.framework.clock import Clock as Clock
from mooring.framework.clock import sleep as sleep
from mooring.framework.cycle_state import CycleState as CycleState
from mooring.framework.events import Action as Action
from mooring.framework.events import ClusterEvent as ClusterEvent
from mooring.framework.events import EventResource as EventResource
from mooring.framework.events import EventWithHint as EventWithHint
from mooring.framework.events import Hint as Hint
from mooring.framework.interface import CLEAR_NOMINATION as CLEAR_NOMINATION
from mooring.framework.interface import MAX_SCORE as MAX_SCORE
from mooring.framework.interface import MIN_SCORE as MIN_SCORE
from mooring.framework.interface import Depends as Depends
from mooring.framework.interface import Handle as Handle
from mooring.framework.interface import NodeStatuses as NodeStatuses
from mooring.framework.interface import Nomination as Nomination
from mooring.framework.interface import PostFilterResult as PostFilterResult
from mooring.framework.interface import PreFilterResult as PreFilterResult
from mooring.framework.interface import PreFlight as PreFlight
from mooring.framework.interface import QueuedPod as QueuedPod
from mooring.framework.interface import WaitingPod as WaitingPod
from mooring.framework.status import SKIP as SKIP
from mooring.framework.status import SUCCESS as SUCCESS
from mooring.framework.status import Code as Code
from mooring.framework.status import Status as Status
from mooring.framework.status import failure as failure
from mooring.framework.status import unresolvable as unresolvable
from mooring.framework.status import unschedulable as unschedulable
from mooring.framework.status import wait as wait
from mooring.framework.verdicts import RowVerdicts as RowVerdicts
from mooring.framework.verdicts import by_mask as by_mask
from mooring.framework.verdicts import by_table as by_table
