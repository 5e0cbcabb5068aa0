"""The report of a simulation as tables. The most important table is last, next to the prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mooring.cli.device_tables import add_devices
from mooring.cli.options import DEFAULT_ROWS
from mooring.cli.output import Cell, Column, Page, counted
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.config import Duration
from mooring.scheduler.journal import Fact, FactKind
from mooring.sim.report import NodeUsage, NotCreated, Pending, SimulationReport, Usage

#: The number of nodes in a message: `3 Insufficient cpu`, `0/5 nodes`.
_COUNT = re.compile(r"\b\d+(?=[ /])")
_SEPARATOR = re.compile(r"[,:.] |\.$")

_STYLES = {
    FactKind.BOUND: "green",
    FactKind.FINISHED: "green",
    FactKind.FAILED: "yellow",
    FactKind.GATED: "yellow",
    FactKind.IGNORED: "yellow",
    FactKind.PREEMPTED: "red",
    FactKind.DELETED: "red",
    FactKind.QUEUED: "dim",
}
_BINARY = ((2**50, "Pi"), (2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1, ""))
_ALL_NODES = "all nodes"
#: A node above this utilisation counts as full, and has the colour of a warning.
_FULL_PERCENT = 90.0


def write_tables(report: SimulationReport, *, rows: int = DEFAULT_ROWS) -> None:
    """At most `rows` rows of each table; 0 writes all."""
    page = Page()
    add_tables(page, report, rows=rows or None)
    page.write()


def add_tables(page: Page, report: SimulationReport, *, rows: int | None) -> None:
    if report.timeline is not None:
        add_timeline(page, _timeline_rows(report.timeline))
    if report.placements:
        _placements(page, report, rows)
    if report.preemptions:
        _preemptions(page, report, rows)
    if report.volumes:
        _volumes(page, report, rows)
    if report.utilisation:
        _nodes(page, report, rows)
    if report.devices:
        add_devices(page, report, rows)
    if report.other_schedulers:
        _other_schedulers(page, report.other_schedulers, rows)
    if report.pending:
        _pending(page, report.pending, rows)
    if report.not_created:
        _not_created(page, report.not_created, rows)
    page.line()
    page.line(summary(report), "bold green" if report.all_placed else "bold yellow")


def summary(report: SimulationReport) -> str:
    """The answer in one line."""
    placed = f"{len(report.placements):,} placed"
    if report.already_placed:
        placed += f" ({report.already_placed:,} more had a node already)"
    parts = [placed, f"{len(report.pending):,} pending"]
    if report.not_created:
        parts.append(f"{len(report.not_created):,} not created")
    if report.other_schedulers:
        parts.append(f"{len(report.other_schedulers):,} for other schedulers")
    if report.finished:
        parts.append(f"{len(report.finished):,} finished")
    evicted = sum(len(each.victims) for each in report.preemptions)
    if evicted:
        parts.append(f"{evicted:,} preempted")
    where = counted(report.nodes, "node")
    return f"{', '.join(parts)}; on {where}, in {when(report.elapsed_s)} of virtual time"


def when(at_s: float) -> str:
    """`1m30s`, to the millisecond."""
    return str(Duration(round(at_s * 1000) * 1_000_000))


# The tables, in their order


def add_timeline(page: Page, rows: Iterable[Sequence[str | Cell]]) -> None:
    page.heading("TIMELINE")
    page.table(
        (
            Column("TIME", right=True),
            Column("EVENT"),
            Column("POD"),
            Column("NODE"),
            Column("DETAILS", wraps=True),
        ),
        rows,
    )


def _timeline_rows(timeline: Sequence[Fact]) -> Iterator[Sequence[str | Cell]]:
    """A row per fact. A repeated failure for the same reason is shortened to `as before`."""
    said: dict[str, str] = {}
    for each in timeline:
        message = each.message
        if each.what == FactKind.FAILED:
            message = "as before" if said.get(each.pod) == message else message
            said[each.pod] = each.message
        style = _STYLES.get(each.what, "")
        yield when(each.at_s), Cell(each.what, style), each.pod, each.node, message


def _placements(page: Page, report: SimulationReport, rows: int | None) -> None:
    page.heading("PLACEMENTS")
    columns = [Column("POD"), Column("NODE"), Column("WHEN", right=True)]
    ended = any(placed.ended_at_s is not None for placed in report.placements)
    if ended:
        columns.append(Column("THEN"))
    shown = report.placements[:rows]
    page.table(
        columns,
        (
            (placed.pod, placed.node, when(placed.at_s))
            + ((_ending(placed.state, placed.ended_at_s),) if ended else ())
            for placed in shown
        ),
    )
    _more(page, len(report.placements) - len(shown), "pod")


def _ending(state: str, at_s: float | None) -> str:
    return "" if at_s is None else f"{state} at {when(at_s)}"


def _preemptions(page: Page, report: SimulationReport, rows: int | None) -> None:
    page.heading("PREEMPTIONS")
    shown = report.preemptions[:rows]
    page.table(
        (
            Column("WHEN", right=True),
            Column("PREEMPTOR"),
            Column("EVICTED", wraps=True),
            Column("NODE"),
            Column("WHY THIS NODE", wraps=True),
        ),
        (
            (
                when(each.at_s),
                f"{each.preemptor} ({each.priority})",
                ", ".join(f"{victim.pod} ({victim.priority})" for victim in each.victims),
                each.node,
                each.why,
            )
            for each in shown
        ),
    )
    _more(page, len(report.preemptions) - len(shown), "preemption")


def _volumes(page: Page, report: SimulationReport, rows: int | None) -> None:
    page.heading("VOLUMES BOUND")
    shown = report.volumes[:rows]
    page.table(
        (
            Column("CLAIM"),
            Column("VOLUME"),
            Column("CLASS"),
            Column("CAPACITY", right=True),
            Column("WHEN", right=True),
        ),
        (
            (bound.claim, bound.volume, bound.storage_class, bound.capacity, when(bound.at_s))
            for bound in shown
        ),
    )
    _more(page, len(report.volumes) - len(shown), "volume")


def _nodes(page: Page, report: SimulationReport, rows: int | None) -> None:
    nodes = report.utilisation
    if rows is not None and len(nodes) > rows:
        page.heading("NODES, fullest first")
        nodes = tuple(sorted(nodes, key=lambda each: -each.fullest_percent)[:rows])
    else:
        page.heading("NODES")
    _usage_table(page, (*nodes, NodeUsage(_ALL_NODES, report.totals)))
    _more(page, report.nodes - len(nodes), "node")


def _usage_table(page: Page, nodes: Sequence[NodeUsage]) -> None:
    """Requested and allocatable with the percentage; only the percentage where the page is narrow."""
    in_full, in_short = [Column("NODE")], [Column("NODE")]
    for usage in nodes[0].usages:
        in_full += [Column(_title(usage), right=True), Column("", right=True)]
        in_short.append(Column(_title(usage), right=True))
    rows = [_usage_row(each) for each in nodes]
    if page.fits(in_full, rows):
        page.table(in_full, rows)
    else:
        page.table(in_short, ((row[0], *row[2::2]) for row in rows))


def _title(usage: Usage) -> str:
    """Devices are counted by class, under the name that Kubernetes gives the class as a resource."""
    return usage.resource.removeprefix(DEVICE_CLASS_PREFIX).upper()


def _usage_row(each: NodeUsage) -> list[Cell]:
    style = "bold" if each.node == _ALL_NODES else ""
    cells = [Cell(each.node, style)]
    for usage in each.usages:
        offered = usage.allocatable or usage.requested
        cells += [Cell(amounts(usage) if offered else "-", style), _percent(usage)]
    return cells


def _percent(usage: Usage) -> Cell:
    percent = usage.percent
    if percent is None:
        return Cell("")
    style = "red" if percent > 100 else "yellow" if percent >= _FULL_PERCENT else ""
    return Cell(f"{percent:.0f}%", style or ("dim" if not percent else ""))


def _other_schedulers(page: Page, pods: Sequence[Pending], rows: int | None) -> None:
    page.heading("FOR OTHER SCHEDULERS")
    shown = pods[:rows]
    page.table(
        (Column("POD"), Column("WHY", wraps=True)),
        ((each.pod, Cell(each.message, "yellow")) for each in shown),
    )
    _more(page, len(pods) - len(shown), "pod")


def _pending(page: Page, pending: Sequence[Pending], rows: int | None) -> None:
    page.heading("PENDING")
    if rows is not None and len(pending) > rows:
        _pending_by_reason(page, pending, rows)
        return
    page.table(
        (Column("POD"), Column("TRIED", right=True), Column("WHY", wraps=True)),
        ((each.pod, f"{each.attempts}×", Cell(each.message, "yellow")) for each in pending),
    )


def _pending_by_reason(page: Page, pending: Sequence[Pending], rows: int) -> None:
    """Group pods whose messages differ only in the numbers of nodes."""
    examples: dict[tuple[str, ...], Pending] = {}
    alike: Counter[tuple[str, ...]] = Counter()
    for each in pending:
        reasons = _reasons(each.message)
        examples.setdefault(reasons, each)
        alike[reasons] += 1
    groups = alike.most_common()
    page.table(
        (Column("PODS", right=True), Column("EXAMPLE"), Column("WHY", wraps=True)),
        (
            (f"{count:,}", examples[reasons].pod, Cell(examples[reasons].message, "yellow"))
            for reasons, count in groups[:rows]
        ),
    )
    _more(page, len(groups) - len(groups[:rows]), "reason")
    page.line("use --output json to see every pod", "dim")


def _not_created(page: Page, missing: Sequence[NotCreated], rows: int | None) -> None:
    """Objects of one kind that are refused for the same reason are one row."""
    page.heading("NOT CREATED")
    alike: dict[tuple[str, str], list[NotCreated]] = {}
    for each in missing:
        alike.setdefault((each.kind, each.reason), []).append(each)
    groups = list(alike.items())
    page.table(
        (
            Column("KIND"),
            Column("NUMBER", right=True),
            Column("EXAMPLE"),
            Column("WHY", wraps=True),
        ),
        (
            (kind, f"{len(group):,}", group[0].object, Cell(reason, "yellow"))
            for (kind, reason), group in groups[:rows]
        ),
    )
    _more(page, len(groups) - len(groups[:rows]), "reason")


def _reasons(message: str) -> tuple[str, ...]:
    """The reasons without their counts, sorted: a message lists them by count."""
    return tuple(sorted(_SEPARATOR.split(_COUNT.sub("", message))))


def _more(page: Page, left_out: int, what: str) -> None:
    if left_out > 0:
        page.line(
            f"… and {counted(left_out, f'more {what}')}; use --rows 0 or --output json to see all",
            "dim",
        )


# Amounts


def amounts(usage: Usage) -> str:
    """`1.5/4`, `3.2/8Gi`, `12/110`: requested and allocatable, in the unit of the larger one."""
    match usage.unit:
        case "millicores":
            return f"{_cores(usage.requested)}/{_cores(usage.allocatable)}"
        case "bytes":
            largest = max(usage.requested, usage.allocatable)
            size, suffix = next((s, name) for s, name in _BINARY if largest >= s or s == 1)
            return f"{_short(usage.requested / size)}/{_short(usage.allocatable / size)}{suffix}"
        case _:
            return f"{usage.requested:,}/{usage.allocatable:,}"


def _cores(milli: int) -> str:
    return f"{milli / 1000:,.3f}".rstrip("0").rstrip(".")


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")
