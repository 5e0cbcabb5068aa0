"""What is told of attempts at pod groups."""

from __future__ import annotations

import pytest

from mooring.config import default_config
from mooring.runtime.metrics import Metrics
from tests.engine import Engine
from tests.groups import GANGS, PREEMPTING, gates, members
from tests.makers import make_group, make_node, make_pod


class Notes(Metrics):
    def __init__(self) -> None:
        self.attempts: list[tuple[str, str]] = []
        self.searches = 0

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        self.attempts.append((result, profile))

    def group_algorithm_duration(self, seconds: float) -> None:
        self.searches += 1


@pytest.mark.parametrize(
    ("count", "on", "result"),
    [
        pytest.param(2, GANGS, "scheduled", id="it fits"),
        pytest.param(3, GANGS, "unschedulable", id="it does not fit"),
        pytest.param(3, PREEMPTING, "waiting_on_preemption", id="it fits when others have left"),
    ],
)
def test_an_attempt_is_told_once_with_its_result(count, on, result):
    notes = Notes()
    engine = Engine(config=default_config(gates(on)), metrics=notes)
    for obj in (
        make_node("n", cpu=3),
        make_pod("low", cpu=1, node="n", priority=0),
        make_group("gang", min_count=count, priority=5),
        *members(count, cpu=1, priority=5, preemption_policy=None if on == PREEMPTING else "Never"),
    ):
        engine.handlers.added(obj)

    engine.scheduler.schedule_one()

    assert notes.attempts == [(result, "default-scheduler")]
    assert notes.searches == 1
