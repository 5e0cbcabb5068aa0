"""What a framework tells of itself: every point once, with its outcome, and each plugin when sampled."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS, Code, Status, unschedulable
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_calls import PluginFailure
from tests.makers import make_pod
from tests.runtime.frameworks import (
    framework_of,
    make_plugin,
    run_filters,
    run_pre_filters,
    snapshot_of,
)


class Notes(Metrics):
    def __init__(self) -> None:
        self.points: list[tuple[str, str]] = []
        self.permits: list[str] = []
        self.counts: dict[tuple[str, str], dict[str, int]] = {}

    def point_duration(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.points.append((point, status))

    def permit_wait(self, result: str, seconds: float) -> None:
        self.permits.append(result)

    def evaluations_of(self, plugin: str, profile: str) -> dict[str, int]:
        return self.counts.setdefault((plugin, profile), Counter())


POD = make_pod("p")


def test_each_point_of_both_cycles_is_told_with_its_status():
    notes = Notes()
    framework = framework_of(
        make_plugin("X", reserve=None, permit=unschedulable("no"), pre_bind=None, bind=SUCCESS),
        metrics=notes,
    )
    state = CycleState()

    framework.run_reserve(state, POD, "n")
    framework.run_permit(state, POD, "n")
    framework.run_unreserve(state, POD, "n")
    framework.run_pre_bind_pre_flights(state, POD, "n")

    async def bind() -> None:
        await framework.run_pre_bind(state, POD, "n")
        await framework.run_bind(state, POD, "n")
        await framework.run_post_bind(state, POD, "n")

    asyncio.run(bind())

    assert notes.points == [
        ("Reserve", "Success"),
        ("Permit", "Unschedulable"),
        ("Unreserve", "Success"),
        ("PreBindPreFlight", "Success"),
        ("PreBind", "Success"),
        ("Bind", "Success"),
        ("PostBind", "Success"),
    ]


def test_a_point_whose_plugin_raises_is_told_as_an_error():
    def fail(*_: object) -> None:
        raise PluginError("broken")

    notes = Notes()
    framework = framework_of(make_plugin("X", filter=fail), metrics=notes)
    snapshot = snapshot_of("a")
    looked_at = snapshot.columns.alive[: snapshot.columns.size]

    with pytest.raises(PluginFailure):
        run_filters(framework, CycleState(), POD, snapshot, looked_at)

    assert notes.points == [("Filter", "Error")]


async def test_the_end_of_a_wait_on_permit_is_told():
    notes = Notes()
    framework = framework_of(make_plugin("X", permit=(Status(Code.WAIT), 10.0)), metrics=notes)
    framework.run_permit(CycleState(), POD, "n")
    waiting = framework.waiting_pods.get(POD.uid)
    assert waiting is not None
    waiting.allow("X")

    await framework.wait_on_permit(POD)

    assert notes.permits == ["Success"]


def test_calls_of_a_plugin_are_counted_by_point():
    notes = Notes()
    framework = framework_of(make_plugin("X", pre_filter=SUCCESS), metrics=notes)

    for _ in range(3):
        run_pre_filters(framework, CycleState(), POD, snapshot_of("a"))

    assert notes.counts["X", "default-scheduler"] == {"PreFilter": 3}
