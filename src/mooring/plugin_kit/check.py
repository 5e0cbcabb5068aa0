"""Check a plugin on random cases, and report what it promises and does not keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mooring.errors import MooringError
from mooring.plugin_kit.case import Case, Pool
from mooring.plugin_kit.cost import Cost, measure_cost
from mooring.plugin_kit.draw import draw_case
from mooring.plugin_kit.play import Tally, play
from mooring.plugin_kit.processes import repeats_in_another_process
from mooring.plugin_kit.rules import (
    BASIC,
    BLOCKS,
    CONSEQUENCES,
    HINTS,
    REPEATS,
    ROWS,
    RULES,
    Broken,
    Rule,
)
from mooring.plugin_kit.shrink import MOST_TRIES, shrink
from mooring.plugin_kit.subject import Subject
from mooring.plugin_kit.world import silence

#: How many cases `mooring plugin check` and the pytest helper draw.
DEFAULT_SEEDS = 50
TEST_SEEDS = 12
COST_NODES = 5000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that the plugin breaks, with the smallest case that was found."""

    rule: Rule
    problem: str
    case: Case

    def to_data(self) -> dict[str, Any]:
        return {
            "rule": self.rule.name,
            "title": self.rule.title,
            "problem": self.problem,
            "advice": self.rule.advice,
            "seed": self.case.seed,
            "case": [
                *({"gone": event.gone, "object": event.manifest} for event in self.case.events),
                *({"asked": pod} for pod in self.case.pods),
            ],
        }

    def __str__(self) -> str:
        lines = [
            f"broken: {self.rule.title}",
            f"  {self.problem}",
            f"  to do: {self.rule.advice}",
            f"  the smallest case found (seed {self.case.seed}), in the order in which it happens:",
            *(f"    {line}" for line in self.case.to_yaml().splitlines()),
        ]
        return "\n".join(lines)


@dataclass(slots=True)
class Report:
    """What was checked of one plugin, and what was found."""

    plugin: str
    seeds: int
    findings: list[Finding] = field(default_factory=list)
    #: Rule → how many comparisons were made.
    checked: Mapping[str, int] = field(default_factory=dict)
    #: What the reader should know about how far the check went.
    notes: list[str] = field(default_factory=list)
    cost: Cost | None = None

    @property
    def honest(self) -> bool:
        return not self.findings

    def to_data(self) -> dict[str, Any]:
        broken = {finding.rule for finding in self.findings}
        return {
            "plugin": self.plugin,
            "seeds": self.seeds,
            "honest": self.honest,
            "rules": [
                {
                    "rule": rule.name,
                    "title": rule.title,
                    "checked": self.checked.get(rule.name, 0),
                    "broken": rule in broken,
                }
                for rule in RULES
            ],
            "findings": [finding.to_data() for finding in self.findings],
            "notes": self.notes,
            "cost": None if self.cost is None else self.cost.to_data(),
        }

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.findings))


def check_subject(
    subject: Subject,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    pool: Pool | None = None,
    target: str | None = None,
    cost_nodes: int = 0,
    most_findings: int | None = None,
    shrinks: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Play cases until each rule is broken once, or all seeds are used.

    target
        `module:Class`, by which another process can load the plugin; None leaves that check out.
    cost_nodes
        The number of nodes at which the cost is measured; 0 does not measure it.
    most_findings
        Stop after so many; None looks for all.
    shrinks
        Whether to look for the smallest case of each finding.

    Raises ConfigError and PluginError if the plugin cannot be built.
    """
    tally, vocabulary = Tally(), subject.vocabulary
    report = Report(subject.name, seeds)
    with silence():
        for done in range(seeds):
            case = draw_case(first_seed + done, vocabulary, pool)
            rules = _left(report.findings)
            broken = _broken(case, subject, rules, tally)
            if broken is not None:
                report.findings.append(
                    _smallest(case, subject, broken)
                    if shrinks
                    else Finding(broken.rule, broken.problem, case)
                )
                if broken.rule in BASIC:
                    report.notes.append(
                        "the other rules were not checked further: answers of a plugin that breaks"
                        " this rule say nothing"
                    )
                    break
            if len(report.findings) == most_findings:
                break
            if progress is not None:
                progress(done + 1, seeds)
        if target is not None and report.honest:
            _check_processes(subject, target, first_seed, report, pool)
    report.checked = tally.checked
    if not any(finding.rule in BASIC for finding in report.findings):
        report.notes += _reach(subject, tally)
    if cost_nodes and report.honest:
        report.cost = measure_cost(subject, cost_nodes)
    return report


def _left(findings: Sequence[Finding]) -> list[Rule]:
    """The rules to look at: without those that are broken, and those that are broken in consequence."""
    done = {finding.rule for finding in findings}
    for rule in list(done):
        done.update(CONSEQUENCES.get(rule, ()))
    return [rule for rule in RULES if rule not in done]


def _broken(case: Case, subject: Subject, rules: Sequence[Rule], tally: Tally) -> Broken | None:
    try:
        play(case, subject, rules, tally)
    except Broken as broken:
        return broken
    return None


def _smallest(case: Case, subject: Subject, broken: Broken) -> Finding:
    last = [broken.problem]

    def breaks(smaller: Case) -> bool:
        try:
            found = _broken(smaller, subject, [broken.rule], Tally())
        except (MooringError, ValueError, KeyError):
            return False  # It is no case any more.
        if found is not None:
            last[0] = found.problem
        return found is not None

    # Each try takes as long as the plugin waits.
    small = shrink(case, breaks, 40 if broken.rule is BLOCKS else MOST_TRIES)
    breaks(small)
    return Finding(broken.rule, last[0], small)


def _check_processes(
    subject: Subject, target: str, seed: int, report: Report, pool: Pool | None
) -> None:
    difference = repeats_in_another_process(subject, target, seed)
    if difference is not None:
        case = draw_case(difference.seed, subject.vocabulary, pool)
        report.findings.append(Finding(REPEATS, difference.problem, case))


def _reach(subject: Subject, tally: Tally) -> list[str]:
    """What was never tried."""
    plugin, notes = subject.plugin, []
    filters = any(callable(getattr(plugin, name, None)) for name in ("filter", "filter_rows"))
    if filters and not tally.refused:
        notes.append(
            "Filter never refused a node: the rule was hardly tried. Give objects that it is about"
            " (--objects FILE)"
        )
    elif filters and not tally.passed:
        notes.append(
            "Filter never let a node pass: the rule was hardly tried. Give objects that it is about"
            " (--objects FILE)"
        )
    scores = any(callable(getattr(plugin, name, None)) for name in ("score", "score_rows"))
    if scores and len(tally.scored) < 2:
        notes.append(
            "all scores were the same: the rule was hardly tried. Give objects that it is about"
            " (--objects FILE)"
        )
    for name in ("filter", "score"):
        if callable(getattr(plugin, name, None)) and not callable(
            getattr(plugin, f"{name}_rows", None)
        ):
            notes.append(f"there is no {name}_rows: at many nodes it would be faster")
    declares = callable(getattr(plugin, "depends_on", None))
    if (filters or scores) and not declares:
        notes.append("there is no depends_on: it is asked about every node, for every pod")
    registers = callable(getattr(plugin, "events_to_register", None))
    if tally.checked[HINTS.name] and not registers:
        notes.append(
            "there is no events_to_register: pods that it refuses are tried after nearly every event"
        )
    if tally.checked[ROWS.name] == 0:
        tally.checked.pop(ROWS.name, None)
    return notes
