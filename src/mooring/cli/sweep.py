"""`mooring sweep`: run a grid of configurations, inputs, seeds and loads, and compare them."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from mooring.cli import output
from mooring.cli.main import print_notes, print_warnings
from mooring.cli.options import file_option, number_option, output_option
from mooring.cli.output import Cell, Column, Page, counted
from mooring.cli.progress import Progress
from mooring.cli.sweep_plot import plot_groups
from mooring.errors import InputError
from mooring.sweep.grid import read_grid
from mooring.sweep.loading import load_grid
from mooring.sweep.measure_names import is_share, measure_problem
from mooring.sweep.results import Line
from mooring.sweep.run import Plan
from mooring.sweep.statistics import Group, Statistic, usual_measures
from mooring.sweep.sweep import Sweep, run_loaded
from mooring.sweep.tables import check_parquet, check_suffix, columns_and_rows, write_results

_MOST_FAILED = 20


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@file_option(
    "--results",
    "results_path",
    help="The file with a line for each finished cell; a sweep that is run again goes on from it."
    " By default, FILE with the ending .results.jsonl.",
)
@number_option(
    "-j", "--jobs", help="How many processes run cells; by default one for each core. 1 uses none."
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run the cells on the Dask cluster with this scheduler, such as tcp://127.0.0.1:8786. Its workers"
    " need mooring, but no files.",
)
@click.option(
    "--write",
    "written",
    multiple=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a row for each cell to a file that ends in .parquet, .csv or .jsonl; can be repeated.",
)
@file_option("--plot", "plot_path", help="Draw means and spread as SVG.")
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="A measure to show, such as utilisation.cpu; can be repeated. docs/sweep.md lists them.",
)
@output_option("table", "json", "csv", help="csv has one line per cell.")
def sweep(
    path: Path,
    results_path: Path | None,
    jobs: int | None,
    dask: str | None,
    written: tuple[Path, ...],
    plot_path: Path | None,
    measures: tuple[str, ...],
    form: str,
) -> None:
    """Run a grid of configurations, inputs, seeds and loads, and compare them.

    FILE is YAML of the kind Sweep (docs/sweep.md). Each combination is a cell: a trace that is replayed or
    a cluster that is simulated, with one configuration and one seed. The result of a cell is written as
    soon as it has ended. If a sweep is interrupted, run it again: only missing and failed cells run.

    Exits 0 if every cell has a result, 1 if some failed, 2 if the sweep cannot run.

    \b
    Examples:
      mooring sweep policies.yaml --plot policies.svg
      mooring sweep policies.yaml --write policies.parquet --measure utilisation.cpu
      mooring sweep policies.yaml --dask tcp://127.0.0.1:8786
    """
    if dask is not None and jobs is not None:
        raise click.UsageError("--jobs is for this machine; a Dask cluster has its own workers")
    _check(measures, written)
    if dask is not None:
        _keep_dask_quiet()
    grid = read_grid(path)
    with Progress("reading inputs"):
        loaded = load_grid(grid)
    print_notes(loaded.notes)
    results = results_path or path.with_suffix(".results.jsonl")
    with Progress("running cells", total=len(grid)) as progress:
        try:
            found = run_loaded(
                loaded,
                results=results,
                jobs=jobs,
                dask=dask,
                on_plan=lambda planned: _tell_plan(planned, results),
                on_progress=progress.update,
            )
        except KeyboardInterrupt:
            click.echo(f"finished cells are in {results}; run the sweep again to go on", err=True)
            raise
    shown = measures or grid.measures or usual_measures(found.lines)
    for each in written:
        write_results(each, found.lines)
    if plot_path is not None:
        output.write_file(plot_path, plot_groups(grid.name, found.groups, shown).encode())
    output.answer(
        form,
        yes=not found.failed,
        data=found.to_data,
        csv=lambda: output.write_csv(*_csv(found.lines)),
        table=lambda: _write_tables(found, shown),
    )


def _check(measures: Sequence[str], written: Sequence[Path]) -> None:
    """Before hours of work. Raises InputError."""
    problems = [problem for name in measures if (problem := measure_problem(name))]
    if problems:
        raise InputError(problems)
    for path in written:
        check_suffix(path)
        check_parquet(path)


def _keep_dask_quiet() -> None:
    """A lost connection is told in one line; Dask logs its tracebacks, too."""
    with suppress(ImportError):
        # Dask sets the levels of its loggers when it is imported.
        importlib.import_module("distributed")
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _tell_plan(planned: Plan, results: Path) -> None:
    if planned.outdated:
        print_warnings(
            [
                f"{results}: {counted(planned.outdated, 'result')} of another grid, or of input that has"
                " changed since, will not be used"
            ]
        )
    if planned.done:
        have = "has a result" if len(planned.done) == 1 else "have results"
        cells = f"{len(planned.done):,} of {counted(len(planned.loaded.grid), 'cell')}"
        print_notes([f"{cells} {have} in {results} already"])


# Output


def _write_tables(found: Sweep, shown: Sequence[str]) -> None:
    page = Page()
    groups = [group for group in found.groups if group.statistics]
    loads = any(group.load is not None for group in groups)
    if groups:
        page.heading("MEANS AND STANDARD DEVIATIONS")
        page.table(
            (
                Column("CONFIG"),
                Column("INPUT"),
                *([Column("LOAD", right=True)] if loads else []),
                Column("CELLS", right=True),
                *(Column(name.upper(), right=True) for name in shown),
            ),
            (_table_row(group, shown, loads=loads) for group in groups),
        )
    if found.failed:
        page.heading("FAILED")
        page.table(
            (Column("CELL"), Column("WHY", wraps=True)),
            ((str(line.cell), line.error) for line in found.failed[:_MOST_FAILED]),
        )
        if len(found.failed) > _MOST_FAILED:
            page.line(
                f"… and {len(found.failed) - _MOST_FAILED:,} more; use -o json to see all", "dim"
            )
    page.line()
    finished = len(found.lines) - len(found.failed)
    summary = f"{finished:,} of {counted(len(found.lines), 'cell')} finished"
    if found.failed:
        page.line(f"{summary}, {len(found.failed):,} failed", "bold yellow")
    else:
        page.line(summary, "bold green")
    page.write()


def _table_row(group: Group, shown: Sequence[str], *, loads: bool) -> list[str | Cell]:
    count = max((each.count for each in group.statistics.values()), default=0)
    return [
        group.config,
        group.input,
        *(["-" if group.load is None else f"{group.load:g}"] if loads else []),
        f"{count:,}",
        *(_mean_and_spread(name, group.statistics.get(name)) for name in shown),
    ]


def _mean_and_spread(name: str, found: Statistic | None) -> str:
    """`93.21% ± 0.32`, `8,040.0 ± 3.1`."""
    if found is None:
        return "-"
    share = is_share(name)
    scale = 100 if share else 1
    mean = f"{scale * found.mean:,.2f}%" if share else f"{found.mean:,.1f}"
    if found.deviation is None:
        return mean
    return f"{mean} ± {scale * found.deviation:,.{2 if share else 1}f}"


def _csv(lines: Sequence[Line]) -> tuple[list[str], list[list[object]]]:
    columns, rows = columns_and_rows(lines)
    return columns, [["" if value is None else value for value in row] for row in rows]
