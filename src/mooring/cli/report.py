"""`mooring report`: the page of a cluster in one file."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import click

from mooring.cli import output
from mooring.cli.config_inputs import ConfigInput
from mooring.cli.inputs import ClusterInput
from mooring.cli.options import budget_option
from mooring.cli.page_inputs import TraceInput, checked_page_input, page_input
from mooring.cli.progress import Progress
from mooring.errors import InputError

STDOUT = "-"


@click.command()
@page_input
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="The file to write, for example report.html. - is standard output.",
)
@budget_option("30s", to="make pending pods fit, all together")
def report(
    cluster: ClusterInput,
    config: ConfigInput,
    trace: Path | None,
    seed: int | None,
    until_s: float | None,
    trace_input: TraceInput,
    what_if: Path | None,
    target: str,
    budget_s: float,
) -> None:
    """Write the page of a cluster to one HTML file that you can share.

    The file has the views of `mooring ui` with their data: the map, the pending pods and what would make
    them fit, and every moment of the simulation. It needs no server and loads no other file. It contains
    the names and labels of the cluster; consider that before you share it.

    Exits 0 if the file was written, 2 if the input is invalid.

    \b
    Examples:
      mooring report -f cluster/ -o report.html
      mooring report --kubeconfig ~/.kube/config --config scheduler.yaml -o report.html
    """
    from mooring.web.report import write_report

    given = checked_page_input(
        cluster,
        config=config,
        trace=trace,
        seed=seed,
        until_s=until_s,
        trace_input=trace_input,
        what_if=what_if,
    )
    origin, run_spec = given.read()
    if not run_spec.objects:
        nothing = f"{origin.title}: there is nothing to report, as nothing in it affects scheduling"
        raise InputError([f"{nothing}; add nodes, pods or workloads"])
    with Progress("writing the report") as progress:
        text = write_report(
            origin,
            run_spec,
            budget_s=budget_s,
            on_progress=lambda _, done, total: progress.update(done, total),
            made={
                "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                "command": shlex.join(["mooring", *sys.argv[1:]]),
            },
        )
    _write(target, text)
    sys.exit(0)


def _write(target: str, text: str) -> None:
    if target == STDOUT:
        output.write(text)
        return
    output.write_file(Path(target), text.encode())
    size = len(text) / 1e6
    click.echo(f"wrote {target} ({size:.1f} MB)", err=True)
