"""The devices of a simulation as tables: how many of each class are in use, and who has them."""

from __future__ import annotations

from mooring.cli.output import Cell, Column, Page, counted
from mooring.sim.report import DeviceReport, SimulationReport


def add_devices(page: Page, report: SimulationReport, rows: int | None) -> None:
    """At most `rows` rows of each table; None writes all."""
    page.heading("DEVICES")
    page.table(
        (
            Column("CLASS"),
            Column("IN USE", right=True),
            Column("SHARED", right=True),
            Column("FREE", right=True),
            Column("BLOCKED", right=True),
            Column("ALL", right=True),
            Column("CAPACITY IN USE", wraps=True),
        ),
        (
            (
                each.device_class,
                _number(each.in_use),
                _number(each.shared),
                _number(each.free),
                _number(each.blocked),
                f"{each.total:,}",
                _capacity(each),
            )
            for each in report.devices
        ),
    )
    if report.devices_held:
        _held(page, report, rows)


def _held(page: Page, report: SimulationReport, rows: int | None) -> None:
    page.heading("DEVICES IN USE")
    shown = report.devices_held[:rows]
    page.table(
        (
            Column("NODE"),
            Column("DEVICE"),
            Column("POD", wraps=True),
            Column("REQUEST"),
            Column("SHARE"),
        ),
        (
            (
                each.node or "-",
                Cell(each.device, "green"),
                ", ".join(each.pods) or f"no pod; claim {each.claim}",
                each.request,
                ", ".join(f"{name} {amount}" for name, amount in (each.share or {}).items()),
            )
            for each in shown
        ),
    )
    left_out = len(report.devices_held) - len(shown)
    if left_out > 0:
        page.line(
            f"… and {counted(left_out, 'more device')}; use --rows 0 or --output json to see all",
            "dim",
        )


def _capacity(each: DeviceReport) -> str:
    return ", ".join(
        f"{name} {amount['consumed']} of {amount['total']}"
        for name, amount in each.capacity.items()
    )


def _number(count: int) -> str:
    return f"{count:,}" if count else "-"
