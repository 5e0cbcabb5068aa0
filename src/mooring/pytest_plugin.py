"""A pytest plugin: every scenario of a `*.scenario.yaml` is a test, and `check_plugin` checks a plugin.

pytest loads it wherever mooring is installed. It reads only files that mention mooring.dev, so other tools
can use the same suffix. A failed test shows the difference, without mooring's traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mooring.plugin_kit.check import Report
    from mooring.sim.scenarios.run import Outcome
    from mooring.sim.scenarios.scenario import Scenario

SUFFIX = ".scenario.yaml"
_MARK = b"mooring.dev/"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SUFFIX) or _MARK not in file_path.read_bytes():
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.fixture(scope="session")
def check_plugin() -> Callable[..., Report]:
    """Check on random clusters that a plugin keeps its promises: `check_plugin(MyPlugin)`."""
    # Load NumPy and the engine only if there are plugins to check.
    from mooring.plugin_kit import check_plugin

    return check_plugin


class Differs(Exception):
    """A scenario that does not meet its expectations."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.report())


class ScenarioFile(pytest.File):
    """A file with scenarios."""

    def collect(self) -> Iterator[pytest.Item]:
        # Load NumPy and the engine only if there are scenarios.
        from mooring.errors import InputError
        from mooring.sim.scenarios.scenario import read_scenarios

        try:
            scenarios = read_scenarios(self.path)
        except InputError as error:
            raise self.CollectError(str(error)) from error
        for scenario in scenarios:
            yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)


class ScenarioItem(pytest.Item):
    """One scenario."""

    def __init__(self, *, scenario: Scenario, **others: Any) -> None:
        super().__init__(**others)
        self._scenario = scenario

    def runtest(self) -> None:
        from mooring.sim.scenarios.run import play

        outcome = play(self._scenario)
        if not outcome.passed:
            raise Differs(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from mooring.errors import MooringError

        if isinstance(excinfo.value, Differs | MooringError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._scenario.line - 1, f"scenario: {self.name}"
