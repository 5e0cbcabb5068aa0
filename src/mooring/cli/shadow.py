"""`mooring shadow`: would mooring decide as the scheduler of a cluster does?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from mooring.cli import output
from mooring.cli.inputs import check_installed, given_gates
from mooring.cli.main import NO
from mooring.cli.options import (
    config_option,
    duration_option,
    kubeconfig_options,
    log_options,
    number_option,
    output_option,
)

if TYPE_CHECKING:
    from mooring.live.shadow import Comparison
    from mooring.live.shadow_run import ShadowReport


@click.command()
@kubeconfig_options
@config_option
@duration_option("--for", "for_s", help="Stop after this time; by default, run until interrupted.")
@number_option("--pods", help="Stop after this many pods.")
@click.option("--all", "show_all", is_flag=True, help="Also show the pods where both agree.")
@output_option("table", "json", help="json has one line per pod, and a last line with the totals.")
@log_options
def shadow(
    kubeconfig: str | None,
    context: str | None,
    config_path: str | None,
    for_s: float | None,
    pods: int | None,
    show_all: bool,
    form: str,
    verbosity: int,
    logging_format: str,
) -> None:
    """Watch another scheduler, and show where mooring would decide differently.

    Only reads: mooring binds no pod and writes nothing. For every pod that the other scheduler binds or
    rejects, mooring decides too, on the cluster as it was then, and explains each difference. Another
    node with the same score is no difference.

    Exits 0 if both agreed on every pod, 1 if they differed, 2 if mooring cannot watch the cluster.

    \b
    Examples:
      mooring shadow --kubeconfig ~/.kube/config --for 10m
      mooring shadow --config scheduler.yaml -o json | jq 'select(.agrees == false)'
    """
    check_installed("live")
    import asyncio

    from mooring.live import logs
    from mooring.live.reload import ConfigSource
    from mooring.live.session import connector
    from mooring.live.shadow_run import ShadowOptions, run_shadow

    logs.set_up(logging_format, verbosity)
    path = None if config_path is None else Path(config_path)
    config = ConfigSource(path, given_gates()).load()
    named = kubeconfig or config.client_connection.kubeconfig
    write = _write_json if form == "json" else _write_row

    def tell(comparison: Comparison) -> None:
        if show_all or form == "json" or not comparison.verdict.agrees:
            write(comparison)

    report = asyncio.run(
        run_shadow(
            config,
            connector(Path(named) if named else None, context),
            ShadowOptions(for_s=for_s, pods=pods),
            tell,
        )
    )
    _write_sums(report, form)
    sys.exit(0 if report.agreed == report.compared else NO)


def _write_json(comparison: Comparison) -> None:
    output.write(msgspec.json.encode(comparison.to_data()).decode() + "\n")


def _write_row(comparison: Comparison) -> None:
    """Each line is written at once, so columns have fixed widths."""
    best = ", ".join(comparison.best)
    if comparison.best_count > len(comparison.best):
        best += f", … ({comparison.best_count})"
    line = (
        f"{comparison.verdict.value:<12} {comparison.pod:<44}"
        f" {comparison.actual or '-':<24} {best or '-'}\n"
    )
    if comparison.explanation:
        line += f"{'':<13}{comparison.explanation}\n"
    output.write(line)


def _write_sums(report: ShadowReport, form: str) -> None:
    if form == "json":
        output.write(msgspec.json.encode(report.to_data()).decode() + "\n")
        return
    share = f" ({100 * report.agreed / report.compared:.1f} %)" if report.compared else ""
    sums = ", ".join(f"{count} {name}" for name, count in report.by_verdict.items())
    output.write(
        f"{output.counted(report.compared, 'pod')} compared, {report.agreed} agreed{share}"
        f"{': ' + sums if sums else ''}\n"
    )
