"""`mooring replay`: replay a recorded trace, and measure the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from mooring.cli import output
from mooring.cli.config_inputs import ignore_unknown_option, naming, read_config
from mooring.cli.journal import is_journal_file, replay_live
from mooring.cli.main import print_warnings
from mooring.cli.options import (
    config_option,
    file_option,
    output_option,
    priority_of,
    seed_option,
    until_option,
)
from mooring.cli.output import Column, Page, counted
from mooring.cli.plots import Line, Panel, plot
from mooring.cli.progress import Progress
from mooring.cli.simulation_tables import when
from mooring.explain.over_time import ReplayReport, Sample
from mooring.explain.over_time import replay as replay_trace
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import encode_hook
from mooring.objects.node_groups import node_documents, parse_node_group
from mooring.scheduler.decision import Decision
from mooring.sim.simulation import SimOptions
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.openb import Sharing
from mooring.sim.traces.reading import TraceOptions, read_trace
from mooring.sim.traces.trace import Trace

_TABLE_ROWS = 12
_MOST_PENDING = 10


@click.command()
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "--nodes",
    "nodes_text",
    metavar="FILE|[COUNTx]TYPE[,OPTION…]",
    help="The file with the nodes, if it is not in the folder of the pods; or nodes to use instead, such as"
    " 100x8cpu,32Gi (docs/nodes.md).",
)
@config_option
@ignore_unknown_option
@seed_option
@click.option(
    "--load",
    type=click.FloatRange(min=0, min_open=True, max=1000),
    help="Instead of the recorded arrivals: draw pods of the trace at random, with replacement, until they"
    " request this multiple of all GPUs, such as 1.3. They never end; --seed draws others.",
)
@until_option
@click.option("--endless", is_flag=True, help="Pods never end, so the cluster fills up.")
@click.option(
    "--gpu-sharing",
    type=click.Choice([each.value for each in Sharing]),
    default=Sharing.POOL.value,
    show_default=True,
    help="OpenB: pods share the sum of a node's GPUs, or each pod takes whole GPUs.",
)
@click.option(
    "--priority",
    "priorities",
    multiple=True,
    metavar="QOS=N",
    help="OpenB: the priority of a quality of service, such as LS=1000; can be repeated. By default 0.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1, max=100_000),
    default=200,
    show_default=True,
    help="The number of moments at which to measure.",
)
@file_option("--plot", "plot_path", help="Draw the measures over time as SVG.")
@file_option(
    "--manifests",
    "manifests_path",
    help="Write the nodes and pods of the trace as Kubernetes JSON for other commands, and replay nothing.",
)
@output_option("table", "json", "csv", help="csv has one line per moment.")
def replay(
    path: Path,
    nodes_text: str | None,
    config_path: str | None,
    ignores_unknown: bool,
    seed: int | None,
    load: float | None,
    until_s: float | None,
    endless: bool,
    gpu_sharing: str,
    priorities: tuple[str, ...],
    samples: int,
    plot_path: Path | None,
    manifests_path: Path | None,
    form: str,
) -> None:
    """Replay a recorded trace, and measure the cluster over virtual time.

    Or replay the journal of `mooring run --journal`: the same decisions are made again, and compared.

    TRACE is a folder or a file with pods: the OpenB GPU trace, or mooring's own format in CSV or Parquet
    (docs/traces.md). Pods arrive at the recorded times. Once placed, they run as long as recorded.

    Exits 0 if every pod was placed, 1 if some were not, 2 if the trace is invalid.

    \b
    Examples:
      mooring replay openb/ --plot openb.svg
      mooring replay openb/ --endless --config most-allocated.yaml -o csv > filling.csv
      mooring replay openb/ --load 1.3 --seed 42 --config packing.yaml
      mooring replay openb/ --manifests openb.json && mooring simulate openb.json
      mooring replay mooring.journal
    """
    if is_journal_file(path):
        replay_live(path, form)
        return
    options = TraceOptions(Sharing(gpu_sharing), dict(map(priority_of, priorities)))
    trace = _read(path, nodes_text, options)
    if load is not None:
        pods = draw_load(trace.pods, trace.nodes, load=load, seed=seed or 0)
        trace = replace(trace, pods=pods)
    if not trace.nodes:
        print_warnings(["the trace has no nodes, so no pod can be placed; give --nodes"])
    if manifests_path is not None:
        output.write_file(manifests_path, _manifests(trace))
        what = f"{counted(len(trace.nodes), 'node')} and {counted(len(trace.pods), 'pod')}"
        click.echo(f"wrote {what} to {manifests_path}", err=True)
        return
    loaded = read_config(config_path, ignores_unknown=ignores_unknown)
    sim_options = SimOptions(config=loaded.config, seed=seed)
    with naming(config_path):
        report = _played(trace, sim_options, samples=samples, endless=endless, until_s=until_s)
    if plot_path is not None:
        output.write_file(plot_path, _plot(report).encode())
    output.answer(
        form,
        yes=report.placed == report.arrived,
        data=lambda: {**loaded.to_data(), **report.to_data()},
        csv=lambda: output.write_csv(*_csv(report)),
        table=lambda: _write_tables(report),
    )


def _played(
    trace: Trace, options: SimOptions, *, samples: int, endless: bool, until_s: float | None
) -> ReplayReport:
    with Progress("replaying", total=len(trace.pods)) as progress:
        seen: set[str] = set()

        def count(decision: Decision) -> None:
            seen.add(decision.pod.uid)
            progress.update(len(seen))

        report = replay_trace(
            trace,
            SimOptions(config=options.config, seed=options.seed, on_decision=count),
            samples=samples,
            pods_end=not endless,
            until_s=until_s,
        )
    print_warnings(report.errors)
    return report


def _read(path: Path, nodes_text: str | None, options: TraceOptions) -> Trace:
    """With nodes of another file, or with described nodes instead of those of the trace."""
    if nodes_text is None or Path(nodes_text).exists() or "/" in nodes_text:
        nodes_path = None if nodes_text is None else Path(nodes_text)
        return read_trace(path, nodes_path=nodes_path, options=options)
    try:
        group = parse_node_group(nodes_text)
    except ValueError as error:
        raise click.BadParameter(
            f"{nodes_text!r} is not a file, and describes no nodes: {error}", param_hint="--nodes"
        ) from error
    described = read_manifests([], documents=node_documents([group])).nodes
    return replace(read_trace(path, options=options), nodes=described)


def _manifests(trace: Trace) -> bytes:
    items = trace.objects()
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    return msgspec.json.encode(document, enc_hook=encode_hook) + b"\n"


# Output


def _write_tables(report: ReplayReport) -> None:
    page = Page()
    if report.samples:
        page.heading("OVER TIME")
        resources = [each.resource for each in report.samples[0].resources]
        page.table(
            (
                Column("TIME", right=True),
                Column("RUNNING", right=True),
                Column("PENDING", right=True),
                Column("PREEMPTED", right=True),
                Column("NODES", right=True),
                *(Column(f"{name.upper()}", right=True) for name in resources),
                *(Column(f"{name.upper()} FRAGM.", right=True) for name in resources),
            ),
            (_table_row(sample) for sample in _some(report.samples)),
        )
    if report.pending:
        page.heading("PENDING AT THE END")
        page.table(
            (Column("POD"), Column("WHY", wraps=True)),
            ((each.pod, each.message) for each in report.pending[:_MOST_PENDING]),
        )
        if len(report.pending) > _MOST_PENDING:
            more = counted(len(report.pending) - _MOST_PENDING, "more pod")
            page.line(f"… and {more}; use --output json to see all", "dim")
    page.line()
    for note in report.notes:
        page.line(f"note: {note}", "dim")
    page.line(_summary(report), "bold green" if report.placed == report.arrived else "bold yellow")
    page.write()


def _some(samples: tuple[Sample, ...]) -> Iterator[Sample]:
    """Evenly spaced samples, with the first and the last."""
    count = min(_TABLE_ROWS, len(samples))
    last = len(samples) - 1
    yield from (samples[round(i * last / max(count - 1, 1))] for i in range(count))


def _table_row(sample: Sample) -> list[str]:
    return [
        when(sample.at_s),
        f"{sample.running:,}",
        f"{sample.pending:,}",
        f"{sample.preempted:,}",
        f"{sample.nodes_in_use:,}",
        *(_percent(each.utilisation) for each in sample.resources),
        *(_percent(each.fragmentation) for each in sample.resources),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _summary(report: ReplayReport) -> str:
    parts = [f"{report.placed:,} of {counted(report.arrived, 'pod')} placed"]
    if report.pending:
        parts.append(f"{len(report.pending):,} pending")
    if report.never_placed:
        parts.append(f"{report.never_placed:,} never placed")
    if report.preempted:
        parts.append(f"{report.preempted:,} preempted")
    waiting = report.waiting
    if waiting is not None:
        parts.append(f"waited {when(waiting.mean_s)} on average, {when(waiting.longest_s)} at most")
    return (
        f"{', '.join(parts)}; on {counted(report.nodes, 'node')}, {when(report.elapsed_s)} of virtual"
        f" time in {report.took_s:.1f} s"
    )


def _csv(report: ReplayReport) -> tuple[list[str], Iterator[list[object]]]:
    resources = [each.resource for each in report.samples[0].resources] if report.samples else []
    columns = ["at_seconds", "arrived", "ended", "running", "pending", "preempted", "nodes_in_use"]
    for kind in ("utilisation", "imbalance", "fragmentation"):
        columns += [f"{kind}.{name}" for name in resources]
    return columns, map(_csv_row, report.samples)


def _csv_row(sample: Sample) -> list[object]:
    shares = [
        *(each.utilisation for each in sample.resources),
        *(each.imbalance for each in sample.resources),
        *(each.fragmentation for each in sample.resources),
    ]
    return [
        sample.at_s,
        sample.arrived,
        sample.ended,
        sample.running,
        sample.pending,
        sample.preempted,
        sample.nodes_in_use,
        *("" if share is None else share for share in shares),
    ]


def _plot(report: ReplayReport) -> str:
    samples = report.samples
    resources = [each.resource for each in samples[0].resources] if samples else []

    def shares(kind: str) -> list[Line]:
        return [
            Line(name, [getattr(sample.resources[i], kind) for sample in samples])
            for i, name in enumerate(resources)
        ]

    return plot(
        f"{report.trace}: {report.placed:,} of {report.arrived:,} pods placed",
        [sample.at_s for sample in samples],
        [
            Panel("Utilisation", shares("utilisation"), shares=True),
            Panel("Fragmentation of free resources", shares("fragmentation"), shares=True),
            Panel(
                "Pods",
                [
                    Line("running", [sample.running for sample in samples]),
                    Line("pending", [sample.pending for sample in samples]),
                    Line("preempted so far", [sample.preempted for sample in samples]),
                ],
            ),
            Panel("Nodes in use", [Line("nodes", [each.nodes_in_use for each in samples])]),
        ],
    )
