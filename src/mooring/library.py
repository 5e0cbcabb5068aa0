"""mooring as a library: load a cluster, simulate it, explain its pods. See `docs/library.md`.

Results are available as plain data (`to_data`) and, if pandas or polars is installed, as a DataFrame
(`to_frame`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mooring.config import KubeSchedulerConfiguration, load_config, parse_duration
from mooring.errors import InputError
from mooring.explain.counterfactuals import (
    DEFAULT_BUDGET_S,
    Counterfactual,
    Counterfactuals,
    find_counterfactuals,
)
from mooring.explain.explanation import (
    CannotAnswer,
    Explainer,
    Explanation,
    check_created,
    explainer_for,
    find_pod,
)
from mooring.explain.frames import Frame, make_frame
from mooring.explain.past_decision import RunInput, decide_again, placed_by
from mooring.framework.applied_changes import apply_changes
from mooring.framework.changes import Change
from mooring.objects.admission import Refused
from mooring.objects.device_groups import device_objects, parse_device_group
from mooring.objects.kinds import Kind
from mooring.objects.manifests import ReadOptions, read_manifests
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.node_groups import NodeGroup, node_documents, parse_node_group
from mooring.objects.pod import Pod
from mooring.scheduler.journal import DECISIONS, TIMELINE
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending, Placement, SimulationReport
from mooring.sim.simulation import SimOptions

#: A configuration object, a mapping, or the path of a file; None is the default configuration.
Config = KubeSchedulerConfiguration | Mapping[str, Any] | str | Path | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of a cluster. It is immutable: methods that change it return another cluster."""

    objects: tuple[KubeObject, ...]
    #: Warnings about input that is valid but probably a mistake.
    warnings: tuple[str, ...] = ()
    #: Kind that mooring does not read → the number of skipped objects.
    skipped: Mapping[str, int] = field(default_factory=dict)
    #: Objects of the files that the API server would refuse, with the reason.
    refused: tuple[Refused, ...] = ()

    @classmethod
    def load(
        cls,
        *paths: str | Path | Iterable[str | Path],
        nodes: Iterable[str] = (),
        devices: Iterable[str] = (),
        kinds: Iterable[Kind] = (),
    ) -> Cluster:
        """Read files and folders of YAML or JSON, as `mooring simulate` does. Raises InputError.

        `nodes` are nodes to add, such as `3xm5.xlarge`, and `devices` are devices for all nodes, such as
        `8xgpu.example.com,memory=80Gi` (docs/nodes.md). `kinds` are those that plugins declare:
        `Coscheduling.kinds`.
        """
        named: list[str | Path] = []
        for path in paths:
            named += [path] if isinstance(path, str | Path) else path
        groups = [_node_group(text) for text in nodes]
        if not named and not groups:
            raise InputError(["nothing to read: give files or folders with Kubernetes YAML"])
        options = ReadOptions(kinds=tuple(kinds))
        manifests = read_manifests(named, options=options, documents=node_documents(groups))
        objects = manifests.objects
        try:
            given = [parse_device_group(text) for text in devices]
            objects = [*device_objects(given, manifests.nodes, objects), *objects]
        except ValueError as error:
            raise InputError([f"devices: {error}"]) from error
        return cls(
            tuple(objects),
            tuple(manifests.warnings),
            manifests.skipped,
            tuple(manifests.refused),
        )

    @classmethod
    def of(cls, objects: Iterable[KubeObject]) -> Cluster:
        """A cluster of these objects."""
        return cls(tuple(objects))

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.objects if isinstance(obj, Node)]

    @property
    def pods(self) -> list[Pod]:
        return [obj for obj in self.objects if isinstance(obj, Pod)]

    def simulate(
        self,
        *,
        config: Config = None,
        seed: int | None = None,
        until: float | str | None = None,
        timeline: bool = False,
    ) -> SimulatedCluster:
        """Run the cluster in virtual time. Raises InputError and ConfigError.

        `until` is in seconds, or a duration such as `1h30m`; without it, the run ends when nothing more
        can change. The `seed` chooses between nodes with equal scores.
        """
        keeps = DECISIONS | TIMELINE if timeline else DECISIONS
        source = RunInput(self.objects, _config(config), seed, _seconds(until), keeps)
        explainer = explainer_for(self.objects, source.options(), until_s=source.until_s)
        return SimulatedCluster(self, source, explainer)

    def explain(
        self,
        pod: str,
        *,
        config: Config = None,
        seed: int | None = None,
        until: float | str | None = None,
        as_is: bool = False,
    ) -> Explanation:
        """Why the pod goes to its node or stays pending. Raises CannotAnswer if there is no such pod.

        mooring simulates the cluster first; with `as_is`, it places no pods before it explains.
        """
        check_created(self.refused, pod)
        key = find_pod(self.objects, pod)
        options = SimOptions(config=_config(config), seed=seed)
        with explainer_for(
            self.objects, options, watched=key, until_s=_seconds(until), as_read=as_is
        ) as explainer:
            return explainer.explain(key)

    def counterfactuals(
        self,
        pod: str,
        *,
        config: Config = None,
        seed: int | None = None,
        until: float | str | None = None,
        as_is: bool = False,
        budget_s: float = DEFAULT_BUDGET_S,
    ) -> Counterfactuals:
        """The changes that would make a pending pod fit, smallest first. Raises CannotAnswer."""
        check_created(self.refused, pod)
        key = find_pod(self.objects, pod)
        options = SimOptions(config=_config(config), seed=seed)
        with explainer_for(
            self.objects, options, until_s=_seconds(until), as_read=as_is
        ) as explainer:
            return find_counterfactuals(explainer.what_if, key, budget_s=budget_s)

    def changed(self, pod: str, changes: Counterfactual | Sequence[Change]) -> Cluster:
        """This cluster after the changes for the pod."""
        made = changes.changes if isinstance(changes, Counterfactual) else tuple(changes)
        return Cluster.of(apply_changes(self.objects, find_pod(self.objects, pod), made))


class SimulatedCluster:
    """A simulated cluster: the result, and questions about it.

    It keeps the engine, so questions about pending pods need no second run. `close`, the end of a `with`
    block, or garbage collection frees the engine.
    """

    def __init__(self, cluster: Cluster, source: RunInput, explainer: Explainer) -> None:
        self.cluster = cluster
        report = build_report(explainer.what_if.simulation)
        self.report: SimulationReport = report.without(cluster.refused)
        self._source = source
        self._explainer = explainer
        self._closing = weakref.finalize(self, explainer.what_if.close)

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self.report.placements

    @property
    def pending(self) -> tuple[Pending, ...]:
        return self.report.pending

    @property
    def other_schedulers(self) -> tuple[Pending, ...]:
        """Pods that ask for a scheduler that the configuration does not have."""
        return self.report.other_schedulers

    @property
    def all_placed(self) -> bool:
        return self.report.all_placed

    def explain(self, pod: str) -> Explanation:
        """As `Cluster.explain`. For a placed pod, mooring decides again on the cluster of that moment."""
        key = find_pod(self.cluster.objects, pod)
        what_if = self._open().what_if
        uid = next(each.uid for each in self.cluster.pods if each.key == key)
        past = placed_by(what_if.simulation, uid)
        seen = None if past is None else decide_again(self._source, past)
        return Explainer(what_if, seen).explain(key)

    def counterfactuals(self, pod: str, *, budget_s: float = DEFAULT_BUDGET_S) -> Counterfactuals:
        """As `Cluster.counterfactuals`, without another run."""
        key = find_pod(self.cluster.objects, pod)
        return find_counterfactuals(self._open().what_if, key, budget_s=budget_s)

    def final(self) -> Cluster:
        """The cluster at the end of the simulation, with every pod on its node."""
        return Cluster.of(self._open().what_if.simulation.api.all(KubeObject))

    def to_data(self) -> dict[str, Any]:
        return self.report.to_data()

    def to_frame(self) -> Frame:
        """A row for each pod. Raises MissingFrames without pandas and polars."""
        rows: list[tuple[object, ...]] = [
            (placed.pod, placed.state, placed.node, placed.at_s, "") for placed in self.placements
        ]
        rows += [(each.pod, each.state, "", None, each.message) for each in self.report.unplaced]
        rows += [
            (each.object, "not created", "", None, each.reason) for each in self.report.not_created
        ]
        return make_frame(("pod", "state", "node", "at_seconds", "message"), rows)

    def nodes_frame(self) -> Frame:
        """A row for each node and resource. Raises MissingFrames without pandas and polars."""
        rows = [
            (each.node, usage.resource, usage.requested, usage.allocatable, usage.percent)
            for each in self.report.utilisation
            for usage in each.usages
        ]
        return make_frame(("node", "resource", "requested", "allocatable", "percent"), rows)

    def close(self) -> None:
        self._closing()

    def __enter__(self) -> SimulatedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Explainer:
        if not self._closing.alive:
            raise CannotAnswer("this simulation is closed; simulate the cluster again")
        return self._explainer


def _node_group(text: str) -> NodeGroup:
    """Raises InputError."""
    try:
        return parse_node_group(text)
    except ValueError as error:
        raise InputError([f"nodes: {text!r}: {error}"]) from error


def _config(config: Config) -> KubeSchedulerConfiguration | None:
    if config is None or isinstance(config, KubeSchedulerConfiguration):
        return config
    return load_config(Path(config) if isinstance(config, str) else config)


def _seconds(until: float | str | None) -> float | None:
    """Raises InputError."""
    if not isinstance(until, str):
        return until
    try:
        return parse_duration(until).seconds
    except ValueError as error:
        raise InputError([f"until: {until!r} is not a duration; write 1h30m or 90s"]) from error
