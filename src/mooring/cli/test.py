"""`mooring test`: do scenarios end as expected?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import click

from mooring.cli import output
from mooring.cli.inputs import ClusterInput, read_cluster
from mooring.cli.options import (
    devices_option,
    file_option,
    namespace_option,
    nodes_option,
    output_option,
    read_only_options,
    timeline_option,
)
from mooring.cli.output import Cell, Page, counted
from mooring.cli.progress import Progress
from mooring.cli.simulation_tables import add_timeline, when
from mooring.errors import InputError
from mooring.objects.device_groups import DeviceGroup
from mooring.objects.meta import KubeObject
from mooring.objects.node_groups import NodeGroup
from mooring.sim.scenarios.run import Outcome, play
from mooring.sim.scenarios.scenario import SUFFIX, Scenario, read_scenarios


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="PATH",
    help="A file or folder with a cluster that every scenario starts with; can be repeated.",
)
@nodes_option
@devices_option
@namespace_option
@read_only_options
@timeline_option
@file_option("--junit", "junit_path", help="Also write the results as JUnit XML.")
@output_option("table", "json")
def test(
    paths: tuple[str, ...],
    clusters: tuple[str, ...],
    node_groups: tuple[NodeGroup, ...],
    device_groups: tuple[DeviceGroup, ...],
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    timeline: bool,
    junit_path: Path | None,
    form: str,
) -> None:
    """Run scenarios in virtual time, and check what they expect.

    PATH is a file with scenarios, or a folder with *.scenario.yaml files. A scenario has a cluster, steps
    (apply, delete, scale, cordon, drain, fail, wait …) and expectations, such as "all pods of app=web
    spread over 3 zones" (docs/scenarios.md).

    Exits 0 if all expectations hold, 1 if not, 2 if a scenario cannot be read or run.

    \b
    Examples:
      mooring test policies/
      mooring test zone-outage.scenario.yaml --timeline
      mooring test policies/ --kubeconfig ~/.kube/config --junit results.xml
    """
    scenarios = _read_all(paths)
    source = ClusterInput(
        clusters, kubeconfig, context, node_groups, namespace, device_groups=device_groups
    )
    given = clusters or node_groups or source.live()
    base = read_cluster(source).objects if given else []
    outcomes = _played(scenarios, base, timeline=timeline)
    if junit_path is not None:
        _write_junit(junit_path, outcomes)
    passed = all(outcome.passed for outcome in outcomes)
    output.answer(
        form,
        yes=passed,
        data=lambda: {
            "passed": passed,
            "scenarios": [outcome.to_data() for outcome in outcomes],
        },
        table=lambda: _write_page(outcomes),
    )


def _read_all(paths: Iterable[str]) -> list[Scenario]:
    """Raises InputError with the problems of all files."""
    problems: list[str] = []
    scenarios: list[Scenario] = []
    for path in _files(paths):
        try:
            scenarios += read_scenarios(path)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return scenarios


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        found = sorted(_files_in(path))
        if not found:
            raise InputError([f"{path}: the folder contains no *{SUFFIX} file"])
        yield from found


def _files_in(folder: Path) -> Iterator[Path]:
    """Raises InputError if a folder in it cannot be listed."""

    def cannot_list(error: OSError) -> None:
        raise InputError([f"{error.filename}: cannot be read: {error.strerror}"]) from error

    for directory, _, files in os.walk(folder, onerror=cannot_list):
        yield from (Path(directory) / name for name in files if name.endswith(SUFFIX))


def _played(
    scenarios: Sequence[Scenario], base: Sequence[KubeObject], *, timeline: bool
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with Progress("running scenarios", total=len(scenarios)) as progress:
        for scenario in scenarios:
            outcomes.append(play(scenario, base=base, timeline=timeline))
            progress.update(len(outcomes))
    return outcomes


# Output


def _write_page(outcomes: Sequence[Outcome]) -> None:
    page = Page()
    for outcome in outcomes:
        verdict, style = ("passed", "green") if outcome.passed else ("FAILED", "bold red")
        page.line(
            f"{verdict}  {outcome.name}  ({outcome.file}:{outcome.line},"
            f" {counted(outcome.checked, 'expectation')}, {when(outcome.elapsed_s)})",
            style,
        )
        for line in outcome.report().splitlines():
            page.line(f"  {line}" if line else "")
        if outcome.timeline is not None:
            _add_timeline(page, outcome)
    failed = sum(not outcome.passed for outcome in outcomes)
    page.line()
    page.line(
        f"{counted(len(outcomes), 'scenario')}, {len(outcomes) - failed:,} passed, {failed:,} failed",
        "bold red" if failed else "bold green",
    )
    page.write()


def _add_timeline(page: Page, outcome: Outcome) -> None:
    add_timeline(page, _timeline_rows(outcome))
    page.line()


def _timeline_rows(outcome: Outcome) -> Iterator[Sequence[str | Cell]]:
    """All facts, and the steps of the scenario between them."""
    steps = list(reversed(outcome.steps))
    for i, each in enumerate((*(outcome.timeline or ()), None)):
        while steps and (each is None or steps[-1].happened <= i):
            step = steps.pop()
            yield when(step.at_s), Cell("step", "bold"), "", "", Cell(step.title, "bold")
        if each is not None:
            yield when(each.at_s), each.what.value, each.pod, each.node, each.message


def _write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    failed = sum(not outcome.passed for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite", name="mooring", tests=str(len(outcomes)), failures=str(failed)
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", name=outcome.name, classname=outcome.file, line=str(outcome.line)
        )
        if not outcome.passed:
            first = outcome.failures[0].difference
            failure = ElementTree.SubElement(
                case, "failure", message=f"expected {first.expected}; found {first.found}"
            )
            failure.text = outcome.report()
    output.write_file(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
