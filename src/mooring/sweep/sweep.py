"""A sweep in one call, for programs; the command `mooring sweep` makes the same call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.explain.frames import Frame, make_frame
from mooring.sweep.grid import Grid, read_grid
from mooring.sweep.loading import LoadedGrid, load_grid
from mooring.sweep.results import Line, open_results
from mooring.sweep.run import OnProgress, Plan, plan, run_missing
from mooring.sweep.statistics import Group, groups_of
from mooring.sweep.tables import columns_and_rows
from mooring.sweep.workers import open_workers


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results of a sweep, a line for each cell."""

    grid: Grid
    lines: tuple[Line, ...]

    @property
    def failed(self) -> list[Line]:
        return [line for line in self.lines if line.error]

    @property
    def groups(self) -> list[Group]:
        """Means and spread over the seeds."""
        return groups_of(self.lines)

    def to_data(self) -> dict[str, Any]:
        return {
            "cells": [line.to_data() for line in self.lines],
            "groups": [_group_data(group) for group in self.groups],
            "failed": len(self.failed),
        }

    def to_frame(self) -> Frame:
        """A row for each cell. Raises MissingFrames without pandas and polars."""
        return make_frame(*columns_and_rows(self.lines))


def run_sweep(
    source: str | Path | Mapping[str, Any],
    *,
    results: str | Path | None = None,
    jobs: int | None = None,
    dask: str | None = None,
) -> Sweep:
    """Run a grid: the path of a YAML file, or a mapping with the same fields. See `docs/sweep.md`.

    With a `results` file, a sweep that was interrupted goes on where it was. `jobs` is the number of
    processes, by default one for each core; 1 runs the cells in this process. `dask` is the address of
    the scheduler of a Dask cluster. Raises InputError and WorkersError; a cell that fails is in `failed`.
    """
    given = Path(source) if isinstance(source, str) else source
    loaded = load_grid(read_grid(given))
    path = Path(results) if results is not None else None
    return run_loaded(loaded, results=path, jobs=jobs, dask=dask)


def run_loaded(
    loaded: LoadedGrid,
    *,
    results: Path | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    on_plan: Callable[[Plan], None] = lambda planned: None,
    on_progress: OnProgress = lambda done, total: None,
) -> Sweep:
    """As `run_sweep`. `on_plan` is told what is missing before the first cell runs."""
    with open_results(results) as opened:
        planned = plan(loaded, opened.found)
        on_plan(planned)
        if not planned.missing:
            lines = [planned.done[cell] for cell in loaded.grid.cells()]
        else:
            with open_workers(dask=dask, jobs=jobs) as workers:
                lines = run_missing(planned, workers, opened, on_progress)
    return Sweep(loaded.grid, tuple(lines))


def _group_data(group: Group) -> dict[str, Any]:
    return {
        "config": group.config,
        "input": group.input,
        "load": group.load,
        "measures": {
            name: {
                "count": each.count,
                "mean": each.mean,
                "deviation": each.deviation,
                "least": each.least,
                "most": each.most,
            }
            for name, each in group.statistics.items()
        },
    }
