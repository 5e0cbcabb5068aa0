"""What a plugin can be: a plain class with a `name` and any of the methods below.

A plugin takes part at an extension point by having its method. There is nothing to inherit from; these
protocols say what the runtime looks for, and what it passes.

    pre_enqueue → less → pre_filter → filter → (post_filter) → pre_score → score → normalize_scores
    → reserve → permit ‖ pre_bind_pre_flight → pre_bind → bind → post_bind; unreserve on the way back

Filter and Score come in two forms, and a plugin may have either or both: per node, easy to write
(`filter`, `score`), and all rows at once, fast (`filter_rows`, `score_rows`). With both, the second is a
kernel of the first and must say the same: the runtime uses the rows, dry runs use the node.

A method that returns None says Success. One that raises fails the attempt of this pod as an internal
error, with the plugin's name and the extension point in the message.

Everything of the scheduling cycle is synchronous. `pre_bind`, `bind` and `post_bind` may be `async def`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.gates import FeatureGates
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import EventWithHint
from mooring.framework.status import Status
from mooring.framework.verdicts import RowVerdicts
from mooring.objects.pod import Pod

MIN_SCORE = 0
MAX_SCORE = 100


class Depends(IntEnum):
    """What a plugin's answers about a pod depend on, beside the pod.

    The narrower, the longer they can be kept (`runtime.answers`, `scheduler.refusals`). A plugin that
    says nothing may look at anything, also outside of the cluster, and is asked each time: always right,
    only slower.
    """

    #: The node object alone.
    NODE = 1
    #: The node object and the pods on it.
    USAGE = 2
    #: All node objects, but no pods.
    NODES = 3
    #: Anything in the cluster: nodes, pods, and the objects that plugins can look up.
    CLUSTER = 4


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A PreFilter that leaves only some nodes to look at."""

    node_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A node to hold for a pod; an empty name takes a nomination back."""

    node_name: str


#: How a failed attempt changes the pod's nomination: None leaves it as it is.
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
    """What a PreBind says of itself before it runs."""

    allow_parallel: bool = False


class QueuedPod(Protocol):
    """A pod in the queue, as QueueSort sees it."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...


class NodeStatuses(Protocol):
    """Why each node was refused, as PostFilter reads it."""

    def get(self, node_name: str) -> Status: ...
    def nodes_with(self, *codes: int) -> Sequence[NodeInfo]: ...


@dataclass(frozen=True, slots=True)
class Victims:
    """Who would have to leave a node for a pod to fit there."""

    #: From most to least important.
    pods: tuple[Pod, ...]
    #: How many of them a disruption budget does not let go.
    violations: int


class PreemptionExtender(Protocol):
    """An extender, as preemption sees it."""

    @property
    def ignorable(self) -> bool:
        """Whether to go on as if it were not there when it fails."""
        ...

    def has_say_in_preemption_for(self, pod: Pod) -> bool: ...
    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot
    ) -> dict[str, Victims]:
        """The nodes that it agrees to, with the victims it wants there. Raises ExtenderError."""
        ...


class Plugin(Protocol):
    name: str


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod) -> Status | None: ...


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
    """How what PreFilter computed changes when a pod is added to or removed from a node."""

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
        """None, from a plugin that has `filter` as well, has that asked about this pod instead."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]: ...


@runtime_checkable
class PostFilterRepeatsPlugin(Protocol):
    def post_filter_repeats(self, pod: Pod) -> bool:
        """Whether `post_filter` does nothing for a pod like this one, and says what it said before.

        Asked after an attempt that came to nothing, and again before the next one, if all nodes refuse
        the pod as they did then. Without this method `post_filter` is asked each time.
        """
        ...


@runtime_checkable
class PreScorePlugin(Protocol):
    def pre_score(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> Status | None:
        """`rows` are those of the feasible nodes."""
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
        """Bring int64[feasible row] into 0..100, in place."""
        ...


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None: ...
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Also called for what was never reserved, so it must not mind."""
        ...


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Status | tuple[Status | None, float] | None:
        """With Wait goes the longest wait in seconds; above fifteen minutes it is cut to that."""
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
        """For a pod like this one; needs `sign`, unless it is CLUSTER.

        A plugin that has this method does not look at a pod's name and UID: pods that differ in nothing
        else get the same answers.

        If this or `sign` looks at objects of other kinds, the plugin lists them in an attribute
        `depends_on_kinds: tuple[type[KubeObject], ...]`: when one of them changes, nothing is kept.
        """
        ...


@runtime_checkable
class SignPlugin(Protocol):
    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        """The part of the pod this plugin looks at, as hashable values.

        Pods whose parts are all equal get equal verdicts and scores. A Status refuses to sign.
        """
        ...


@runtime_checkable
class ClosePlugin(Protocol):
    def close(self) -> None: ...


class WaitingPod(Protocol):
    """A pod that Permit plugins hold back."""

    @property
    def pod(self) -> Pod: ...
    @property
    def node_name(self) -> str: ...
    def pending_plugins(self) -> Sequence[str]: ...
    def allow(self, plugin: str) -> None: ...
    def reject(self, plugin: str, message: str) -> bool: ...
    def preempt(self, plugin: str, message: str) -> bool: ...


class Handle(Protocol):
    """What a plugin may use of the scheduler it runs in."""

    @property
    def profile_name(self) -> str: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def writer(self) -> ApiWriter: ...
    @property
    def gates(self) -> FeatureGates: ...
    @property
    def observed_pod(self) -> Callable[[str], Pod | None]:
        """A pod as the API server last showed it, by `namespace/name`; None if there is none."""
        ...

    @property
    def extenders(self) -> Sequence[PreemptionExtender]:
        """In the order in which they are asked."""
        ...

    def waiting_pods(self) -> Sequence[WaitingPod]: ...
    def waiting_pod(self, uid: str) -> WaitingPod | None: ...
    def reject_waiting_pod(self, uid: str) -> bool: ...
    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Try these pods at once, by `namespace/name`."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the scheduling cycle."""
        ...


#: Builds a plugin: a class that takes its arguments and the handle, or only some of them, or nothing.
PluginFactory = Callable[..., Any]
