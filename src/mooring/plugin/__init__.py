"""The contract of plugins: everything that a plugin may import, and nothing else.

A plugin is a plain class with a `name` and the methods of the extension points that it takes part in. It
imports this module and the object types of `mooring.objects`. Every built-in plugin does the same, and an
import contract checks it.

    from mooring.objects.pod import Pod
    from mooring.plugin import SUCCESS, CycleState, NodeInfo, Status, unschedulable

    class EvenNodes:
        name = "EvenNodes"

        def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            even = len(node.pods) % 2 == 0
            return SUCCESS if even else unschedulable("node(s) had an odd number of pods")

What there is, and where it is described:

- extension points: `PreFilterPlugin`, `FilterPlugin`, `ScorePlugin` and so on say what is called, when, and
  with what. There is no base class: having the method is enough.
- answers: `Status`; None is Success. `RowVerdicts` for all rows at once.
- the cluster: `NodeInfo`, `Snapshot`, `Columns`; `ClusterView`, which is `Handle.cluster`.
- the scheduler: `Handle`, the second argument of a constructor. Clock, writes, dry runs, nominations, waiting
  pods, metrics of the plugin's own.
- speed: `DependsPlugin` and `SignPlugin`. A plugin that says what its answers depend on is asked less often.
- columns: `NodeColumn`, `PodsColumn` and `FedColumn`, in an attribute `own_columns`.
- arguments: a class attribute `Args`, a msgspec Struct or a dataclass. Its instance is the first argument of
  the constructor. Fields are decoded strictly; fields without a default are required.
- queueing hints: `on_add_or_update`, `on_change` and so on, returned by `events_to_register`.
- explanations: `SuggestPlugin`, with the changes of `mooring.plugin.changes`.
- version: `VERSION` and its rule. A plugin may say `requires = (1, 0)`.

Modules beside this one have what fewer plugins need: `args` (the arguments of built-in plugins), `changes`
(what `suggest` may propose), `devices` (resource claims), `groups` (pod groups and placements), `nodes`
(labels, images and ports as columns), `pods` (counts over pods), `storage` (volumes and claims).
"""

from mooring.cluster.columns import (
    Columns,
    Ints,
    Mask,
    Rows,
    row_count,
)
from mooring.cluster.listers import (
    Index,
    Listers,
)
from mooring.cluster.node_info import (
    NodeInfo,
)
from mooring.cluster.observed_pods import (
    ObservedPods,
)
from mooring.cluster.own_columns import (
    ColumnSpec,
    FedColumn,
    NodeColumn,
    PodsColumn,
)
from mooring.cluster.snapshot import (
    Snapshot,
)
from mooring.errors import (
    ApiError,
    Conflict,
    ExtenderError,
    MooringError,
    NotFound,
    PluginError,
    ServerUnavailable,
    Unanswered,
)
from mooring.framework.api import (
    ApiWriter,
    ClaimWriter,
    Event,
    PodStatusPatch,
)
from mooring.framework.changes import Change
from mooring.framework.clock import (
    Clock,
    Timer,
    sleep,
)
from mooring.framework.cluster_view import (
    ClusterView,
)
from mooring.framework.cycle_state import (
    Clonable,
    CycleState,
)
from mooring.framework.dry_run import (
    ClusterTrial,
    DryRun,
    NodeTrial,
    PluginFailure,
    RowIndex,
    RowsTrial,
)
from mooring.framework.events import (
    DEFAULT_EVENTS,
    Action,
    ClusterEvent,
    EventResource,
    EventWithHint,
    Hint,
    HintFunction,
    on_add_or_update,
    on_change,
    on_delete,
    on_update,
    on_update_or_delete,
)
from mooring.framework.interface import (
    CLEAR_NOMINATION,
    MAX_SCORE,
    MIN_SCORE,
    BindPlugin,
    ClosePlugin,
    Depends,
    DependsPlugin,
    EnqueueExtensions,
    FilterPlugin,
    FilterRowsPlugin,
    GroupPreemptionPlugin,
    Handle,
    KindsPlugin,
    NodeStatuses,
    Nomination,
    NormalizePlugin,
    OwnColumnHandle,
    OwnColumnsPlugin,
    PermitPlugin,
    Plugin,
    PluginFactory,
    PodInPreBind,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterRepeatsPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreemptionExtender,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreFlight,
    PreScorePlugin,
    QueuedPod,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    ScoreRowsPlugin,
    SignPlugin,
    SuggestPlugin,
    Victims,
    WaitingPod,
)
from mooring.framework.metrics import (
    Counter,
    Gauge,
    Histogram,
    Metric,
    PluginMetrics,
    PreemptionMetrics,
)
from mooring.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from mooring.framework.suggestions import (
    Refusals,
    Suggestion,
)
from mooring.framework.verdicts import (
    RowVerdicts,
    by_mask,
    by_table,
)
from mooring.framework.version import (
    VERSION,
)

__all__ = [
    "Action",
    "ApiError",
    "ApiWriter",
    "BindPlugin",
    "CLEAR_NOMINATION",
    "Change",
    "ClaimWriter",
    "Clock",
    "Clonable",
    "ClosePlugin",
    "ClusterEvent",
    "ClusterTrial",
    "ClusterView",
    "Code",
    "ColumnSpec",
    "Columns",
    "Conflict",
    "Counter",
    "CycleState",
    "DEFAULT_EVENTS",
    "Depends",
    "DependsPlugin",
    "DryRun",
    "EnqueueExtensions",
    "Event",
    "EventResource",
    "EventWithHint",
    "ExtenderError",
    "FedColumn",
    "FilterPlugin",
    "FilterRowsPlugin",
    "Gauge",
    "GroupPreemptionPlugin",
    "Handle",
    "Hint",
    "HintFunction",
    "Histogram",
    "Index",
    "Ints",
    "KindsPlugin",
    "Listers",
    "MAX_SCORE",
    "MIN_SCORE",
    "Mask",
    "Metric",
    "MooringError",
    "NodeColumn",
    "NodeInfo",
    "NodeStatuses",
    "NodeTrial",
    "Nomination",
    "NormalizePlugin",
    "NotFound",
    "ObservedPods",
    "OwnColumnHandle",
    "OwnColumnsPlugin",
    "PermitPlugin",
    "Plugin",
    "PluginError",
    "PluginFactory",
    "PluginFailure",
    "PluginMetrics",
    "PodInPreBind",
    "PodStatusPatch",
    "PodsColumn",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterRepeatsPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreFlight",
    "PreScorePlugin",
    "PreemptionExtender",
    "PreemptionMetrics",
    "QueueSortPlugin",
    "QueuedPod",
    "Refusals",
    "ReservePlugin",
    "RowIndex",
    "RowVerdicts",
    "Rows",
    "RowsTrial",
    "SKIP",
    "SUCCESS",
    "ScorePlugin",
    "ScoreRowsPlugin",
    "ServerUnavailable",
    "SignPlugin",
    "Snapshot",
    "Status",
    "SuggestPlugin",
    "Suggestion",
    "Timer",
    "Unanswered",
    "VERSION",
    "Victims",
    "WaitingPod",
    "by_mask",
    "by_table",
    "failure",
    "on_add_or_update",
    "on_change",
    "on_delete",
    "on_update",
    "on_update_or_delete",
    "pending",
    "row_count",
    "sleep",
    "unresolvable",
    "unschedulable",
    "wait",
]
