"""Run a scenario in virtual time, and report where it differs from its expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mooring.config import KubeSchedulerConfiguration, load_config
from mooring.errors import ConfigError, InputError, MooringError
from mooring.objects.device_groups import CannotAddDevices, device_objects
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.runtime.plugin_folder import find_plugins_beside
from mooring.scheduler.journal import NOTHING, TIMELINE, Fact
from mooring.sim.scenarios import fields
from mooring.sim.scenarios.expectations import Check, Difference
from mooring.sim.scenarios.pod_conditions import length
from mooring.sim.scenarios.scenario import Scenario
from mooring.sim.scenarios.scenario_cluster import ScenarioCluster
from mooring.sim.scenarios.steps import Step, check_time
from mooring.sim.simulation import SimOptions

#: A difference lists at most this many pods, and counts the others.
_MOST_PODS = 20
AT_THE_END = "at the end"


@dataclass(frozen=True, slots=True)
class Failure:
    """A difference, and when it was found."""

    #: The step before it, such as `step 2 (drain a-1)`.
    after: str
    at_s: float
    #: `file:line` of the expectation.
    where: str
    difference: Difference

    def to_data(self) -> dict[str, Any]:
        data = {"after": self.after, "atSeconds": self.at_s, "where": self.where}
        return {**data, **self.difference.to_data()}


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that was run."""

    at_s: float
    title: str
    #: The number of facts in the timeline before it.
    happened: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a scenario."""

    name: str
    file: str
    line: int
    failures: tuple[Failure, ...]
    #: The number of checked expectations.
    checked: int
    #: Virtual time.
    elapsed_s: float
    steps: tuple[Begun, ...]
    #: None unless it was requested.
    timeline: tuple[Fact, ...] | None = None

    @property
    def passed(self) -> bool:
        return not self.failures

    def report(self) -> str:
        """The differences as text; "" if the scenario passed."""
        return "\n\n".join("\n".join(_lines(failure)) for failure in self.failures)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "passed": self.passed,
            "checked": self.checked,
            "elapsedSeconds": self.elapsed_s,
            "failures": [failure.to_data() for failure in self.failures],
            "steps": [{"atSeconds": each.at_s, "step": each.title} for each in self.steps],
        }
        if self.timeline is not None:
            data["timeline"] = [fact.to_data() for fact in self.timeline]
        return data


def play(scenario: Scenario, *, base: Sequence[KubeObject] = (), timeline: bool = False) -> Outcome:
    """Run the scenario, with the objects of `base` added. Raises InputError if a step is not possible."""
    with _at(scenario, ("config",)):
        keeps = TIMELINE if timeline else NOTHING
        options = SimOptions(config=_config(scenario), seed=scenario.seed, keeps=keeps)
        cluster = ScenarioCluster(options, scenario.folder)
    try:
        playing = _Playing(scenario, cluster)
        playing.begin(base)
        playing.go_on()
        return playing.outcome()
    finally:
        cluster.close()


@dataclass(slots=True)
class _Playing:
    scenario: Scenario
    cluster: ScenarioCluster
    failures: list[Failure] = field(default_factory=list)
    checked: int = 0
    begun: list[Begun] = field(default_factory=list)

    def begin(self, base: Sequence[KubeObject]) -> None:
        scenario, cluster = self.scenario, self.cluster
        with _at(scenario, ("cluster",)):
            manifests = read_manifests(
                [scenario.folder / path for path in scenario.cluster],
                options=cluster.read_options,
                documents=scenario.objects,
                among=base,
            )
        with _at(scenario, ("devices",)):
            known = [*base, *manifests.objects]
            try:
                devices = device_objects(
                    scenario.devices, [obj for obj in known if isinstance(obj, Node)], known
                )
            except CannotAddDevices as error:
                raise InputError([str(error)]) from error
        with _at(scenario, ("cluster",)):
            cluster.load([*base, *devices], manifests)
        cluster.settle()

    def go_on(self) -> None:
        for number, step in enumerate(self.scenario.steps, 1):
            if not self._step(number, step):
                return
        self._look(self.scenario.expect, AT_THE_END)

    def _step(self, number: int, step: Step) -> bool:
        """Run one step; False ends the scenario."""
        cluster = self.cluster
        after = f"step {number} ({step.title})"
        difference = None
        with _at(self.scenario, step.path):
            if step.at_s is not None:
                check_time(cluster, step.at_s)
                cluster.wait(step.at_s)
            happened = len(cluster.simulation.journal.facts)
            self.begun.append(Begun(cluster.now_s, step.title, happened))
            if step.action is not None:
                difference = step.action(cluster)
        self.checked += step.needed
        if difference is not None:
            self._failed(difference, after, step.path)
            return False
        cluster.settle()
        self._look(step.expect, after)
        return True

    def _look(self, checks: Sequence[Check], after: str) -> None:
        view = self.cluster.view
        for check in checks:
            self.checked += 1
            with _at(self.scenario, check.path):
                difference = check.expectation.differs(view)
            if difference is not None:
                self._failed(difference, after, check.path)

    def _failed(self, difference: Difference, after: str, path: fields.Path) -> None:
        where = self.scenario.source.where(path).split(": ")[0]
        self.failures.append(Failure(after, self.cluster.now_s, where, difference))

    def outcome(self) -> Outcome:
        return Outcome(
            name=self.scenario.name,
            file=self.scenario.source.name,
            line=self.scenario.line,
            failures=tuple(self.failures),
            checked=self.checked,
            elapsed_s=self.cluster.now_s,
            steps=tuple(self.begun),
            timeline=self.cluster.simulation.journal.timeline,
        )


def _config(scenario: Scenario) -> KubeSchedulerConfiguration | None:
    if not isinstance(scenario.config, str):
        return None if scenario.config is None else load_config(scenario.config)
    path = Path(scenario.folder / scenario.config)
    find_plugins_beside(path)
    return load_config(path)


@contextmanager
def _at(scenario: Scenario, path: fields.Path) -> Iterator[None]:
    """Add the file, line and field to an error."""
    try:
        yield
    except MooringError as error:
        lines = error.problems if isinstance(error, InputError | ConfigError) else (str(error),)
        where = scenario.source.where(path)
        raise InputError([_with_place(where, scenario, line) for line in lines]) from error


def _with_place(where: str, scenario: Scenario, line: str) -> str:
    """Problems of objects in the scenario itself already have their position."""
    return line if line.startswith(f"{scenario.source.name}:") else f"{where}: {line}"


def _lines(failure: Failure) -> Iterator[str]:
    difference = failure.difference
    yield f"{failure.where}: {failure.after}, {length(failure.at_s)} of virtual time"
    yield f"  expected  {difference.expected}"
    yield f"  found     {difference.found}"
    for line in difference.pods[:_MOST_PODS]:
        yield f"            {line}"
    if len(difference.pods) > _MOST_PODS:
        yield f"            … and {len(difference.pods) - _MOST_PODS:,} more pods"
