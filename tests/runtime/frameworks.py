"""Frameworks made of whatever plugins a test brings along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Mask
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint
from mooring.framework.cycle_state import CycleState
from mooring.objects.pod import Pod
from mooring.runtime.evaluation import Evaluation, PreFilterOutcome
from mooring.runtime.filtering import FilterMatrix
from mooring.runtime.framework import Framework
from mooring.runtime.metrics import Metrics
from mooring.runtime.nominator import Nominator
from mooring.runtime.plugin_calls import Calls, points_of
from mooring.runtime.question import Question
from mooring.runtime.scoring import ScoreMatrix
from mooring.runtime.waiting_pods import WaitingPods
from mooring.scheduler.choosing import first_by_name
from tests.clock import FakeClock
from tests.makers import make_node


def make_plugin(name: str = "X", **methods: Any) -> object:
    """A plugin with these methods; each is called without `self`. What is no function is returned."""
    as_methods = {
        method: staticmethod(answer if callable(answer) else _always(answer))
        for method, answer in methods.items()
    }
    return type(name, (), {"name": name, **as_methods})()


def _always(answer: object) -> Any:
    return lambda *_: answer


def framework_of(
    *plugins: Any,
    weights: Mapping[str, int] | None = None,
    clock: FakeClock | None = None,
    nominator: Nominator | None = None,
    metrics: Metrics | None = None,
) -> Framework:
    """Every plugin takes part wherever it can, in this order; scores weigh 1 unless told otherwise."""
    calls = [Calls(plugin.name, plugin, metrics or Metrics()) for plugin in plugins]
    return Framework(
        "default-scheduler",
        {
            point: [call for call in calls if point in points_of(call.plugin)]
            for point in ExtensionPoint
        },
        {call.name: 1 for call in calls} | dict(weights or {}),
        waiting_pods=WaitingPods(clock or FakeClock()),
        nominator=nominator or Nominator(),
        metrics=metrics or Metrics(),
    )


def run_pre_filters(
    framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot
) -> PreFilterOutcome:
    evaluation = Evaluation.in_full(framework, first_by_name.keys)
    return evaluation.run_pre_filters(Question(state, pod, snapshot))


def run_filters(
    framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot, looked_at: Mask
) -> FilterMatrix:
    evaluation = Evaluation.in_full(framework, first_by_name.keys)
    return evaluation.run_filters(Question(state, pod, snapshot), looked_at).matrix()


def run_scores(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    feasible: NDArray[np.intp],
    seen_as: Sequence[NodeInfo] | None = None,
) -> ScoreMatrix:
    """PreScore and Score."""
    evaluation = Evaluation.in_full(framework, first_by_name.keys)
    return evaluation.run_scores(Question(state, pod, snapshot), feasible, seen_as).matrix


def snapshot_of(*names: str) -> Snapshot:
    """Nodes of these names, alike and empty."""
    cluster = Cluster()
    for name in names:
        cluster.add_node(make_node(name))
    return cluster.snapshot()
