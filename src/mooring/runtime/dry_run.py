"""Dry runs of a profile's filters, as `framework.dry_run` promises them to plugins.

A filter whose answers depend on pods of other nodes may have a method

    def dry_run_inputs(self, state, pod, columns) -> Mapping[str, Ints] | None

It says two things about Filter for this pod. If it accepts a node, it accepts the node without some of its
pods, too. And if pods leave a node or come back to it, the answer follows from the node, its pods, the
nominated pods and these numbers, int64[row] each; and from objects of the kinds in an attribute
`dry_run_inputs_depend_on`. None says nothing. PreFilter has run before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints, Mask
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.dry_run import PluginFailure, RowIndex
from mooring.framework.interface import Depends
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.runtime.filtering import ask_columns, counted
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import Calls
from mooring.runtime.question import Question
from mooring.runtime.usage_columns import (
    add_pods,
    changeable,
    ignores_pods,
    reads_usage_columns,
)


class FilterDryRun:
    """`DryRun` for one pod. The state must be a clone: filters may write to it."""

    __slots__ = ("_hears_of_pods", "_nominated", "framework", "pod", "snapshot", "state")

    def __init__(
        self, framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> None:
        self.framework = framework
        self.state = state
        self.pod = pod
        self.snapshot = snapshot
        self._hears_of_pods: bool | None = None
        self._nominated: dict[int, Sequence[Pod]] | None = None

    @property
    def skipped(self) -> frozenset[str]:
        return self.state.skip_filter

    @property
    def hears_of_pods(self) -> bool:
        if self._hears_of_pods is None:
            self._hears_of_pods = self.framework.hears_of_pods(self.state)
        return self._hears_of_pods

    def nominated(self) -> dict[int, Sequence[Pod]]:
        if self._nominated is None:
            self._nominated = self.framework.nominated_rows(self.pod, self.snapshot)
        return self._nominated

    def on_node(self, node: NodeInfo) -> FilterNodeTrial:
        # Only plugins with add_pod and remove_pod change their state.
        state = self.state.clone() if self.hears_of_pods else self.state
        return FilterNodeTrial(self, node.copy(), state)

    def on_rows(self) -> FilterRowsTrial:
        return FilterRowsTrial(self)


class FilterNodeTrial:
    """`NodeTrial` with its own copy of the node, and of the state if plugins change it."""

    __slots__ = ("_run", "_state", "node")

    def __init__(self, run: FilterDryRun, node: NodeInfo, state: CycleState) -> None:
        self._run = run
        self._state = state
        self.node = node

    def remove(self, pod: Pod) -> None:
        run = self._run
        self.node.remove_pod(pod)
        run.framework.run_remove_pod(self._state, run.pod, pod, self.node)

    def add(self, pod: Pod) -> None:
        run = self._run
        self.node.add_pod(pod)
        run.framework.run_add_pod(self._state, run.pod, pod, self.node)

    def filter(self) -> Status:
        run = self._run
        try:
            return run.framework.filter_node(self._state, run.pod, self.node, run.snapshot)
        except PluginFailure as error:
            return error.as_status()


class FilterRowsTrial:
    """`RowsTrial` of the leading filters that can read columns."""

    def __init__(self, run: FilterDryRun) -> None:
        self._run = run
        self.columns = changeable(run.snapshot.columns)
        asked = [
            call
            for call in run.framework.points[Point.FILTER]
            if call.name not in run.state.skip_filter
        ]
        self._calls: tuple[Calls, ...] = tuple(
            takewhile(lambda c: ignores_pods(c, run.pod) or reads_usage_columns(c), asked)
        )
        #: The filters among them that read a node's pods.
        self._about_pods = tuple(c for c in self._calls if not ignores_pods(c, run.pod))
        self._others = asked[len(self._calls) :]
        self.complete = not self._others
        #: Plugin → what it reads beside a row's node and pods; None if another filter does not say.
        self._inputs = self._read_inputs()

    def _read_inputs(self) -> dict[str, Mapping[str, Ints]] | None:
        run, found = self._run, {}
        for call in self._others:
            if not ignores_pods(call, run.pod):
                read = getattr(call.plugin, "dry_run_inputs", None)
                inputs = None if read is None else read(run.state, run.pod, run.snapshot.columns)
                if inputs is None:
                    return None
                found[call.name] = inputs
        return found

    @property
    def looks_at_nodes_alone(self) -> bool:
        pod = self._run.pod
        return all(call.depends(pod) in (Depends.NODE, Depends.USAGE) for call in self._calls)

    @property
    def can_be_kept(self) -> bool:
        inputs, pod, skipped = self._inputs, self._run.pod, self._run.state.skip_filter
        if inputs is None:
            return False
        hearing = (call for call in self._run.framework.points[Point.PRE_FILTER] if call.add_pod)
        return (
            self.looks_at_nodes_alone
            and all(call.name in inputs or call.name in skipped for call in hearing)
            and all(
                call.name in inputs or call.depends(pod) == Depends.NODE for call in self._others
            )
        )

    @property
    def kinds(self) -> Sequence[type[KubeObject]]:
        return [
            kind
            for call in (*self._calls, *self._others)
            for kind in (
                *call.depends_on_kinds,
                *getattr(call.plugin, "dry_run_inputs_depend_on", ()),
            )
        ]

    def inputs(self) -> dict[str, Ints]:
        return {
            f"{plugin} {name}": values
            for plugin, inputs in (self._inputs or {}).items()
            for name, values in inputs.items()
        }

    def others_accept(self, rows: RowIndex) -> Mask:
        if self._inputs is None:
            return np.zeros(len(rows), np.bool_)
        accepted = np.ones(len(rows), np.bool_)
        for call in self._others:
            verdicts = ask_columns(call, self._question, self._run.snapshot.columns, rows)
            accepted &= verdicts.codes == 0
        return accepted

    def add(self, pods_by_row: Mapping[int, Sequence[Pod]]) -> None:
        add_pods(self.columns, pods_by_row)

    def refuse(self, rows: RowIndex, refused: dict[int, Status]) -> RowIndex:
        left, refusals = self.refusals(rows)
        for some, status in refusals:
            refused |= dict.fromkeys(some.tolist(), status)
        return left

    def refusals(self, rows: RowIndex) -> tuple[RowIndex, list[tuple[RowIndex, Status]]]:
        question = self._question
        refused: list[tuple[RowIndex, Status]] = []
        for call in self._calls:
            verdicts = ask_columns(call, question, self.columns, rows)
            codes = verdicts.codes
            if not np.count_nonzero(codes):
                continue
            for code in counted(codes):
                if code:
                    refused.append((rows[codes == code], verdicts.decode(code).by(call.name)))
            rows = rows[codes == 0]
        return rows, refused

    def accepts(self, rows: RowIndex) -> Mask:
        accepted = np.ones(len(rows), np.bool_)
        question = self._question
        for call in self._about_pods:
            verdicts = ask_columns(call, question, self.columns, rows)
            accepted &= verdicts.codes == 0
        return accepted

    def rest(self) -> FilterDryRun:
        run = self._run
        state = run.state.clone()
        state.skip_filter |= {call.name for call in self._calls if call not in self._about_pods}
        return FilterDryRun(run.framework, state, run.pod, run.snapshot)

    @property
    def _question(self) -> Question:
        run = self._run
        return Question(run.state, run.pod, run.snapshot)


class PodsTakenOut:
    """`ClusterTrial`: a trial of the cluster, as the engine does one thing at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._trial = cluster.trial()
        #: UID → whether the pod is assumed.
        self._out: dict[str, bool] = {}

    def __enter__(self) -> PodsTakenOut:
        self._trial.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._trial.__exit__(*raised)

    def take_out(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self._out[pod.uid] = self._cluster.take_out(pod)

    def put_back(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self._cluster.put_back(pod, assumed=self._out.pop(pod.uid))
