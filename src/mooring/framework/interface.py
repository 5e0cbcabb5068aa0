"""The interface of plugins: a plugin is a plain class with a `name` and any of the methods below.

A plugin implements an extension point by having its method. There is no base class; these protocols
say which methods the runtime looks for, and what it passes.

    pre_enqueue → less → pre_filter → filter → (post_filter) → pre_score → score → normalize_scores
    → reserve → permit ‖ pre_bind_pre_flight → pre_bind → bind → post_bind; unreserve on the way back

Filter and Score have two forms, and a plugin may have either or both: per node, easy to write
(`filter`, `score`), and for all rows at once, fast (`filter_rows`, `score_rows`). Both must give
the same answers: the runtime uses the rows, dry runs use the node.

None means Success. If a method raises, the attempt fails with an internal error, whose message
names the plugin and the extension point.

All methods of the scheduling cycle are synchronous. `pre_bind`, `bind` and `post_bind` may be
`async def`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.observed_pods import ObservedPods
from mooring.cluster.own_columns import ColumnSpec
from mooring.cluster.snapshot import Snapshot
from mooring.config.gates import FeatureGates
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.cluster_view import ClusterView
from mooring.framework.cycle_state import CycleState
from mooring.framework.dry_run import ClusterTrial, DryRun
from mooring.framework.events import EventWithHint
from mooring.framework.metrics import PluginMetrics, PreemptionMetrics
from mooring.framework.status import Status
from mooring.framework.suggestions import Refusals, Suggestion
from mooring.framework.verdicts import RowVerdicts
from mooring.objects.kinds import Kind
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup

MIN_SCORE = 0
MAX_SCORE = 100


class Depends(IntEnum):
    """What a plugin's answers depend on, beside the pod.

    The narrower the dependency, the longer answers are kept (`runtime.answers`,
    `scheduler.refusals`). A plugin without `depends_on` may read anything, also outside the
    cluster. It is asked each time, which is always right but slower.
    """

    #: Only the node object.
    NODE = 1
    #: The node object and the pods on it.
    USAGE = 2
    #: All node objects, no pods.
    NODES = 3
    #: Anything in the cluster: nodes, pods, and objects in the listers.
    CLUSTER = 4


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The result of a PreFilter that restricts the search to some nodes."""

    node_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A nominated node for a pod; an empty name clears the nomination."""

    node_name: str


#: How a failed attempt changes the pod's nomination; None means no change.
NominatingInfo = Nomination | None
CLEAR_NOMINATION = Nomination("")


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter did for a pod that fits nowhere."""

    nomination: NominatingInfo = None
    #: Details for explanations; the scheduler does not read them.
    detail: object = None


@dataclass(frozen=True, slots=True)
class PreFlight:
    """What a PreBind plugin reports before it runs."""

    allow_parallel: bool = False


class QueuedPod(Protocol):
    """A pod in the queue, as QueueSort sees it."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...
    @property
    def initial_attempt_timestamp(self) -> float | None: ...


class NodeStatuses(Protocol):
    """Why each node was refused, for PostFilter."""

    def get(self, node_name: str) -> Status: ...
    def nodes_with(self, *codes: int) -> Sequence[NodeInfo]: ...
    def rows_with(self, *codes: int) -> NDArray[np.intp]:
        """As `nodes_with`: the rows, in the snapshot's order."""
        ...


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods to evict from a node so that a pod fits there."""

    #: From most to least important.
    pods: tuple[Pod, ...]
    #: How many of these evictions violate a disruption budget.
    violations: int


class PreemptionExtender(Protocol):
    """An extender, as preemption sees it."""

    @property
    def ignorable(self) -> bool:
        """Whether to continue without the extender if it fails."""
        ...

    def has_say_in_preemption_for(self, pod: Pod) -> bool: ...
    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot
    ) -> dict[str, Victims]:
        """The nodes that the extender accepts, with the victims there. Raises ExtenderError."""
        ...


class Plugin(Protocol):
    name: str


@runtime_checkable
class KindsPlugin(Protocol):
    #: The kinds of its own that a plugin reads (`objects.kinds.custom_kind`), an attribute of its class:
    #: if the plugin is enabled, their objects are read from files, watched in a real cluster, kept in
    #: the listers, and their changes are cluster events.
    kinds: tuple[Kind, ...]


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Anything but Success keeps the pod out of the active queue: it is gated.

        After an event that the plugin registered, first the hints are asked about a gated pod, then this.
        With the attribute `gates_first = True`, this is asked before the hints, too, and a pod that is
        refused again stays where it is. That is for a plugin whose answer is quick.
        """
        ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    def less(self, a: QueuedPod, b: QueuedPod) -> bool: ...


@runtime_checkable
class EnqueueExtensions(Protocol):
    def events_to_register(self) -> Sequence[EventWithHint]: ...


@runtime_checkable
class PreFilterPlugin(Protocol):
    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status | None: ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Update the state of PreFilter when a pod is added to a node or removed from it."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None: ...
    def remove_pod(
        self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo
    ) -> Status | None: ...


@runtime_checkable
class FilterPlugin(Protocol):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None: ...


@runtime_checkable
class FilterRowsPlugin(Protocol):
    def filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        """If a plugin also has `filter`, None means: call `filter` for each node for this pod."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]: ...


@runtime_checkable
class PostFilterRepeatsPlugin(Protocol):
    def post_filter_repeats(self, pod: Pod) -> bool:
        """Whether `post_filter` would do nothing for an equal pod, and answer as before.

        Called after a failed attempt, and before the next one if all nodes still refuse the pod for
        the same reasons. Without this method, `post_filter` is called each time.
        """
        ...


@runtime_checkable
class GroupPreemptionPlugin(Protocol):
    def preempt_for_group(
        self, group: PodGroup, pods: Sequence[Pod], fits: Callable[[], Status]
    ) -> Status:
        """Make room for all these pods of a group; Success if evictions are under way.

        `fits` tries the group on the cluster as it is at that moment. Not an extension point: of the
        plugins, only DefaultPreemption is asked.
        """
        ...

    def victims_for_group(
        self, group: PodGroup, pods: Sequence[Pod], fits: Callable[[], Status]
    ) -> list[Pod] | Status:
        """The pods that `preempt_for_group` would evict; a status if that does not help."""
        ...


@runtime_checkable
class PreScorePlugin(Protocol):
    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        """`rows` are the rows of the feasible nodes."""
        ...


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int: ...


@runtime_checkable
class ScoreRowsPlugin(Protocol):
    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> Status | None:
        """Scale int64[feasible row] to 0..100, in place.

        If each result depends only on its own score, the lowest and the highest one, a plugin says so
        with `normalizes_by_extremes = True`: then kept results are used for longer.
        """
        ...


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None: ...
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Must be idempotent: it is also called if `reserve` was not."""
        ...


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Status | tuple[Status | None, float] | None:
        """Wait comes with a timeout in seconds, at most fifteen minutes."""
        ...


@runtime_checkable
class PreBindPlugin(Protocol):
    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreFlight | Status | None: ...
    def pre_bind(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Status | Awaitable[Status | None] | None: ...


@runtime_checkable
class BindPlugin(Protocol):
    def bind(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Status | Awaitable[Status | None] | None: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None: ...


@runtime_checkable
class DependsPlugin(Protocol):
    def depends_on(self, pod: Pod) -> Depends:
        """What the answers for this pod depend on. Needs `sign`, unless it is CLUSTER.

        A plugin that has this method does not look at a pod's name and UID: pods that differ in nothing
        else get the same answers.

        If this or `sign` reads objects of other kinds, the plugin lists the kinds in an attribute
        `depends_on_kinds: tuple[type[KubeObject], ...]`. When such an object changes, all kept
        answers are dropped.

        If this and `sign` read nothing but some fields of the pod, the plugin may list these in an
        attribute `signature_fields: tuple[str, ...]`, such as `("spec.tolerations",)`. Then it is not asked
        about a pod in which these fields equal those of the pod before. A class that overrides one of
        the two methods lists its fields again.
        """
        ...


@runtime_checkable
class SignPlugin(Protocol):
    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """The signature: the parts of the pod that this plugin reads, as hashable values.

        Pods with equal signatures get equal verdicts and scores. A Status means that the pod has no
        signature.
        """
        ...


@runtime_checkable
class SignHerePlugin(Protocol):
    """A plugin that treats more pods alike on the nodes that there are than on all possible ones."""

    def sign_here(self, pod: Pod) -> Mapping[str, object] | Status:
        """As `sign`, without the parts that make no difference on the nodes that there are now."""
        ...

    def sign_version(self) -> int:
        """Another number than before whenever `sign_here` may say something else of a pod.

        All kept answers are dropped then.
        """
        ...


@runtime_checkable
class NodesVersionPlugin(Protocol):
    """A plugin whose answers depend on all nodes (`Depends.NODES`), but not on all that is said of them."""

    def nodes_version(self) -> int:
        """Another number than before whenever a change of one node may change the answers about others.

        Otherwise only the nodes that changed are asked about again. Without this method, every change of
        a node object counts.
        """
        ...


@runtime_checkable
class OwnColumnsPlugin(Protocol):
    def own_columns(self) -> Sequence[ColumnSpec]:
        """The columns that the plugin declares; a plain attribute will do.

        Names are shared by all plugins and profiles of a scheduler: two declarations of one name must be
        equal.
        """
        ...


@runtime_checkable
class SuggestPlugin(Protocol):
    def suggest(self, pod: Pod, refusals: Refusals) -> Iterable[Suggestion]:
        """Changes that may make the pod fit, the most promising of each kind first.

        For a pod that fits nowhere, whether this plugin refuses it or not. Explanations call this, the
        scheduler does not.
        """
        ...


@runtime_checkable
class ClosePlugin(Protocol):
    def close(self) -> None: ...


class WaitingPod(Protocol):
    """A pod that waits for Permit plugins."""

    @property
    def pod(self) -> Pod: ...
    @property
    def node_name(self) -> str: ...
    def pending_plugins(self) -> Sequence[str]: ...
    def allow(self, plugin: str) -> None: ...
    def reject(self, plugin: str, message: str) -> bool: ...
    def preempt(self, plugin: str, message: str) -> bool: ...


class PodInPreBind(Protocol):
    """A pod whose PreBind is under way."""

    def cancel(self, cause: str) -> bool:
        """Stop it; whether the pod will not be bound. A pod that is past PreBind cannot be stopped."""
        ...


class OwnColumnHandle(Protocol):
    """A column that a plugin declares, for one node at a time."""

    def at(self, node: NodeInfo) -> int | float:
        """The value of a node, which may be a copy with other pods on it. Raises PluginError."""
        ...

    def set(self, node_name: str, value: int | float) -> None:
        """Feed the value of a node, known or not. It is forgotten when the node is removed.

        It counts from the next attempt on. What is kept of answers about the node is dropped then, if the
        value is another one. No waiting pod is woken: call `Handle.activate` for that. Raises PluginError.
        """
        ...


class Handle(Protocol):
    """What the scheduler offers to plugins. Each profile has one."""

    @property
    def profile_name(self) -> str: ...
    @property
    def cluster(self) -> ClusterView:
        """Nodes, pods and other objects, to be read."""
        ...

    @property
    def clock(self) -> Clock:
        """Time: virtual in a simulation. Plugins use no other clock."""
        ...

    @property
    def writer(self) -> ApiWriter:
        """Writes to the API server. In a simulation, the API in memory."""
        ...

    @property
    def gates(self) -> FeatureGates: ...
    @property
    def metrics(self) -> PluginMetrics:
        """Where a plugin gets counters, gauges and histograms of its own."""
        ...

    @property
    def preemption_metrics(self) -> PreemptionMetrics: ...
    @property
    def observed_pod(self) -> Callable[[str], Pod | None]:
        """A pod as last seen from the API server, by `namespace/name`; None if there is none."""
        ...

    @property
    def observed_pods(self) -> ObservedPods:
        """Every pod as last seen from the API server, by `namespace/name`; plugins may follow changes."""
        ...

    @property
    def extenders(self) -> Sequence[PreemptionExtender]:
        """The extenders, in the order in which they are called."""
        ...

    @property
    def expected_pods(self) -> Sequence[Pod]:
        """Pods that are known to come, as in a trace that is replayed. Empty in production."""
        ...

    # Pods that wait on Permit, and pods in PreBind

    def waiting_pods(self) -> Sequence[WaitingPod]: ...
    def waiting_pod(self, uid: str) -> WaitingPod | None: ...
    def reject_waiting_pod(self, uid: str) -> bool: ...
    def pod_in_pre_bind(self, uid: str) -> PodInPreBind | None: ...

    # Columns

    def column(self, name: str) -> OwnColumnHandle:
        """A column of `own_columns`, by name. In `filter_rows` and `score_rows`: `columns.own(name)`."""
        ...

    # Nominations

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Hold a node for a pending pod; an empty name takes the nomination back.

        This changes what the scheduler knows, not the pod's status. A PostFilter plugin returns its
        nomination instead.
        """
        ...

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        """The pods that the node is held for, in order of nomination."""
        ...

    # Dry runs: see `framework.dry_run`

    def dry_run(self, state: CycleState, pod: Pod) -> DryRun:
        """Ask the filters about nodes with other pods on them. Not to be used while being built."""
        ...

    def cluster_trial(self) -> AbstractContextManager[ClusterTrial]:
        """Leave pods out of account in the whole cluster, for the length of a `with` block."""
        ...

    # The queue, and work beside it

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Try these pods at once, by `namespace/name`."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the scheduling cycle."""
        ...


#: Builds a plugin: a class that takes its args and the handle, one of them, or nothing.
PluginFactory = Callable[..., Any]
