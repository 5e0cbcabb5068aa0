"""A comparison as tables: the measures side by side, which pods moved, and why."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.cli.output import Cell, Column, Page, counted
from mooring.explain.compare import (
    Comparison,
    Difference,
    Divergence,
    Regression,
    Side,
    values_of,
)

#: Values of these kinds are shares, 0..1.
_SHARES = ("utilisation.", "fragmentation.", "imbalance.", "nodeShare.")


def write_comparison(
    comparison: Comparison, worse: Sequence[Regression], *, checked: bool, rows: int
) -> None:
    page = Page()
    page.heading("MEASURES")
    header = [Column("", right=False), *(Column(run.name, right=True) for run in comparison.runs)]
    page.table(header, measure_rows(comparison))
    for difference in comparison.differences:
        _difference(page, comparison.runs[0].name, difference, rows or None)
    page.line()
    page.line(summary(comparison), "bold")
    for line in verdict(worse, checked=checked):
        page.line(line, "bold red" if worse else "bold green")
    page.write()


def measure_rows(comparison: Comparison) -> list[list[str]]:
    """One row per measure that has values: its description, then one cell per variant."""
    columns = [values_of(run) for run in comparison.runs]
    words = {key: what for column in columns for key, what, _ in column}
    values = [{key: value for key, _, value in column} for column in columns]
    rows = []
    for key, what in words.items():
        cells = [column.get(key) for column in values]
        if any(cell is not None for cell in cells):
            rows.append([what, *(shown(key, cell) for cell in cells)])
    return rows


def shown(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if key.startswith(_SHARES):
        return f"{100 * value:.1f}%"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def summary(comparison: Comparison) -> str:
    baseline = comparison.runs[0].name
    parts = [
        f"{counted(len(each.moved), 'pod')} on another node with {each.variant} than with {baseline}"
        for each in comparison.differences
    ]
    return "; ".join(parts)


def verdict(worse: Sequence[Regression], *, checked: bool) -> list[str]:
    if not checked:
        return []
    if not worse:
        return ["no regression: no limit is exceeded"]
    return [
        f"regression: {each.what} is {each.value:g} with {each.variant}, but the limit is"
        f" {each.allowed:g} (baseline {each.baseline:g})"
        for each in worse
    ]


def _difference(page: Page, baseline: str, difference: Difference, rows: int | None) -> None:
    if difference.moved:
        page.heading(f"DIFFERENT WITH {difference.variant}")
        page.table(
            (Column("POD"), Column(baseline), Column(difference.variant)),
            (
                (pod, before, Cell(after, "yellow" if after == "pending" else ""))
                for pod, before, after in difference.moved[:rows]
            ),
        )
        left_out = len(difference.moved) - len(difference.moved[:rows])
        if left_out:
            more = counted(left_out, "more pod")
            page.line(f"… and {more}; use --rows 0 or --output json to see all", "dim")
    pending_here, before = difference.only_pending_here, difference.only_pending_before
    if pending_here or before:
        page.line(
            f"pending only with {difference.variant}: {len(pending_here):,};"
            f" only with {baseline}: {len(before):,}"
        )
    for divergence in difference.why:
        _why(page, divergence)


def _why(page: Page, divergence: Divergence) -> None:
    page.heading(f"WHY {divergence.pod}")
    if not divergence.same_state:
        page.line("earlier decisions already differ, so the two clusters differ too", "dim")
    for side in divergence.sides:
        page.line(side_line(side))
        if side.scores:
            plugins = score_plugins(side)
            page.table(
                (
                    Column("  NODE"),
                    Column("TOTAL", right=True),
                    *(Column(plugin, right=True) for plugin in plugins),
                ),
                (
                    (
                        Cell(f"  {each.node}", "bold" if each.node == side.node else ""),
                        f"{each.total:,}",
                        *(str(each.by_plugin.get(plugin, 0)) for plugin in plugins),
                    )
                    for each in side.scores
                ),
            )


def side_line(side: Side) -> str:
    if side.node is None:
        return f"{side.variant}: fits nowhere: {side.message}"
    how = "the only node that fits" if side.feasible == 1 else f"of {side.feasible:,} that fit"
    return f"{side.variant}: {side.node}, {how}"


def score_plugins(side: Side) -> list[str]:
    """The plugins whose scores differ between nodes; all plugins if none does."""
    plugins = list(side.scores[0].by_plugin)
    telling = [
        plugin
        for plugin in plugins
        if len({each.by_plugin.get(plugin, 0) for each in side.scores}) > 1
    ]
    return telling or plugins
