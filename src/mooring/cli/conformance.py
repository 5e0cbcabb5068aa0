"""`mooring conformance`: does mooring decide as kube-scheduler does?"""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import msgspec

from mooring.cli import output
from mooring.cli.main import CANNOT_ANSWER, NO, print_problems
from mooring.cli.options import number_option, output_option
from mooring.cli.output import counted
from mooring.cli.progress import Progress
from mooring.conformance.report import COLD, WARM, Difference, FileReport, check_file
from mooring.errors import InputError, MooringError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@number_option(
    "--show",
    default=3,
    least=0,
    help="How many differing answers to show in full for each file.",
)
@output_option("table", "json", help="json has every difference.")
def conformance(files: tuple[str, ...], show: int, form: str) -> None:
    """Compare mooring's decisions with those of kube-scheduler.

    FILE is a golden file: cases with the decisions that kube-scheduler made. mooring decides each case
    with its real engine, with ties broken by name, and compares everything that the file holds: PreFilter
    and Filter verdicts for every node, scores, winners, victims and messages; in cases about requeuing,
    when each pod is tried, and in which queue the others wait; in cases about the allocator, the devices that
    claims get on each node; in cases about CEL, whether an expression selects a device, and its cost. It
    does not compare the text of errors, except those of the allocator.

    mooring decides each case twice: cold, and warm, with answers kept from a similar pod. A difference that
    only the warm replay has is marked "warm replay". Cases about requeuing, the allocator and CEL are
    replayed once.

    Exits 0 if all decisions are equal, 1 if any differs, 2 if a file cannot be read.

    \b
    Examples:
      mooring conformance tests/golden/*.jsonl.gz
      mooring conformance taints.jsonl.gz --show 10
      mooring conformance taints.jsonl.gz -o json | jq '.files[].differences[0]'
    """
    reports: list[FileReport] = []
    unreadable: list[str] = []
    for file in files:
        try:
            reports.append(_check(file))
        except InputError as error:
            unreadable += error.problems
        except MooringError as error:
            unreadable.append(f"{file}: {error}")
        else:
            if form == "table":
                _write_report(reports[-1], show)
    if form == "json":
        output.write_json({"files": [_data(report) for report in reports], "errors": unreadable})
    print_problems(unreadable)
    if unreadable:
        sys.exit(CANNOT_ANSWER)
    sys.exit(NO if any(report.passed < report.total for report in reports) else 0)


def _check(file: str) -> FileReport:
    with Progress(Path(file).name) as progress:
        return check_file(Path(file), progress=progress.update)


def _write_report(report: FileReport, show: int) -> None:
    page = output.Page()
    all_pass = report.passed == report.total
    page.line(f"{report.area} {report.passed}/{report.total}", "green" if all_pass else "red")
    answers = [list(found) for _, found in groupby(report.differences, _which_answer)]
    for differences in answers[:show]:
        _add_answer(page, differences)
    if len(answers) > show:
        page.line(
            f"  … and {counted(len(answers) - show, 'more answer')} that differ;"
            f" use --show {len(answers)} or --output json to see all",
            "dim",
        )
    page.write()


def _which_answer(difference: Difference) -> tuple[str, int, str]:
    return difference.case, difference.position, difference.replay


def _add_answer(page: output.Page, differences: list[Difference]) -> None:
    """One attempt or step of one case, or the state at its end."""
    first = differences[0]
    only = f" ({first.replay} replay)" if first.replay in (COLD, WARM) else ""
    page.line(f"  {first.case}: {first.answer}{only}", "bold")
    for difference in differences:
        page.line(f"    {difference.field}")
        page.line(f"      expected  {_shown(difference.expected)}", "green")
        page.line(f"      got       {_shown(difference.got)}", "red")


def _shown(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def _data(report: FileReport) -> dict[str, Any]:
    return {
        "area": report.area,
        "path": str(report.path),
        "total": report.total,
        "passed": report.passed,
        "attempts": report.attempts,
        "differences": [asdict(difference) for difference in report.differences],
    }
