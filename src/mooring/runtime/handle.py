"""What a plugin gets of the scheduler it runs in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

from mooring.cluster.cache import Cluster
from mooring.cluster.own_columns import ColumnSpec
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.cluster_view import ClusterView
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Nomination, PreemptionExtender
from mooring.framework.metrics import PluginMetrics, PreemptionMetrics
from mooring.objects.pod import Pod
from mooring.runtime.declared_columns import PluginColumn
from mooring.runtime.dry_run import FilterDryRun, PodsTakenOut
from mooring.runtime.framework import Framework
from mooring.runtime.nominator import Nominator, PodLookup
from mooring.runtime.pods_in_pre_bind import PodInPreBind, PodsInPreBind
from mooring.runtime.waiting_pods import WaitingPod, WaitingPods

Spawn = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(slots=True)
class PluginHandle:
    """The one implementation of `interface.Handle`; one for each profile."""

    profile_name: str
    #: The cluster itself; plugins get `cluster`, a view.
    books: InitVar[Cluster]
    clock: Clock
    writer: ApiWriter
    nominator: Nominator
    waiting: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    #: A pod as the API server last showed it, by `namespace/name`; None if there is none.
    observed_pod: PodLookup
    spawn: Spawn
    activate: Callable[[Mapping[str, Pod]], None]
    preemption_metrics: PreemptionMetrics
    metrics: PluginMetrics
    gates: FeatureGates = DEFAULT_GATES
    extenders: Sequence[PreemptionExtender] = ()
    cluster: ClusterView = field(init=False)
    _books: Cluster = field(init=False)
    #: The plugins of this profile; set once all of them are built.
    _framework: Framework | None = None

    def __post_init__(self, books: Cluster) -> None:
        self._books = books
        self.cluster = ClusterView(books)

    def declare_column(self, spec: ColumnSpec, plugin: str) -> None:
        """Add a column that a plugin declares. Raises PluginError."""
        self._books.declare_column(spec, plugin)

    @property
    def framework(self) -> Framework:
        """All plugins of the profile."""
        assert self._framework is not None, "plugins are still being built"
        return self._framework

    @framework.setter
    def framework(self, framework: Framework) -> None:
        self._framework = framework

    def waiting_pods(self) -> Sequence[WaitingPod]:
        return list(self.waiting)

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        return self.waiting.reject(uid)

    def pod_in_pre_bind(self, uid: str) -> PodInPreBind | None:
        return self.pods_in_pre_bind.get(uid)

    def column(self, name: str) -> PluginColumn:
        return PluginColumn(self._books, name)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.nominator.add(pod, Nomination(node_name))

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        return self.nominator.nominated_pods_for_node(node_name)

    def dry_run(self, state: CycleState, pod: Pod) -> FilterDryRun:
        return FilterDryRun(self.framework, state.clone(), pod, self._books.snapshot_in_attempt())

    def cluster_trial(self) -> PodsTakenOut:
        return PodsTakenOut(self._books)
