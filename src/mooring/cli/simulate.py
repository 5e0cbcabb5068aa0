"""`mooring simulate`: where would these pods go?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import click

from mooring.cli import output
from mooring.cli.inputs import (
    ClusterInput,
    cluster_input,
    config_option,
    duration,
    naming,
    read_cluster,
    read_config,
    seed_option,
)
from mooring.cli.main import NO
from mooring.cli.progress import Progress
from mooring.cli.simulation_tables import rows_option, write_tables
from mooring.garbage import seldom_collecting
from mooring.objects.manifests import Manifests
from mooring.scheduler.journal import NOTHING, TIMELINE
from mooring.scheduler.scheduling_cycle import Decision
from mooring.sim.report import SimulationReport, simulate_objects
from mooring.sim.simulation import SimOptions


@click.command()
@cluster_input
@config_option
@seed_option
@click.option(
    "--until",
    "until_s",
    type=duration,
    metavar="DURATION",
    help="Stop at this virtual time: 1h30m, 90s or 5400. Otherwise when nothing can change.",
)
@click.option("--timeline", is_flag=True, help="Show everything that happens, in virtual time.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json", "yaml", "csv"]),
    default="table",
    show_default=True,
    help="csv has one line a pod, or one line an event with --timeline.",
)
@rows_option
def simulate(
    cluster: ClusterInput,
    config_path: str | None,
    seed: int | None,
    until_s: float | None,
    timeline: bool,
    form: str,
    rows: int,
) -> None:
    """Say where the pods of a cluster would go, and why some would not.

    PATH is a file or a folder with ordinary Kubernetes YAML or JSON, or - for standard input: nodes,
    pods, and whatever makes pods (Deployments, StatefulSets, DaemonSets, Jobs, …). Pods with a node
    stay where they are. Decisions are those of kube-scheduler, taken in virtual time. A pod with the
    annotation mooring.dev/run-seconds succeeds after so many seconds and frees its place.

    Exits 0 if every pod is placed or finished, 1 if some are pending, 2 if the input cannot be used.

    \b
    Examples:
      mooring simulate cluster.yaml workloads/
      kubectl get nodes,pods -A -o json | mooring simulate -
      mooring simulate -f cluster.yaml -f jobs.yaml --until 2h --timeline
      mooring simulate cluster.yaml --config scheduler.yaml -o json | jq .pending
    """
    manifests = read_cluster(cluster)
    keeps = TIMELINE if timeline else NOTHING
    options = SimOptions(config=read_config(config_path), seed=seed, keeps=keeps)
    with naming(config_path):
        report = run(manifests, options, until_s)
    match form:
        case "json":
            output.write_json(report.to_data())
        case "yaml":
            output.write_yaml(report.to_data())
        case "csv" if report.timeline is not None:
            output.write_csv(*_timeline_csv(report))
        case "csv":
            output.write_csv(_POD_COLUMNS, _pod_rows(report))
        case _:
            write_tables(report, rows=rows)
    sys.exit(0 if report.all_placed else NO)


def run(manifests: Manifests, options: SimOptions, until_s: float | None) -> SimulationReport:
    """Simulate, showing progress if it takes long; what went wrong on the side is told."""
    waiting = sum(1 for pod in manifests.pods if not pod.node_name and not pod.finished)
    tried = 0

    with Progress("placing pods", total=waiting) as progress, seldom_collecting():

        def count(decision: Decision) -> None:
            nonlocal tried
            tried += 1
            progress.update(min(tried, waiting))

        options = replace(options, on_decision=count)
        report = simulate_objects(manifests.objects, options, until_s=until_s)
    for error in report.errors:
        click.echo(f"warning: {error}", err=True)
    return report


_POD_COLUMNS = ("pod", "state", "node", "at_seconds", "attempts", "message")


def _pod_rows(report: SimulationReport) -> Iterator[tuple[object, ...]]:
    for placed in report.placements:
        yield placed.pod, placed.state, placed.node, placed.at_s, "", ""
    for pending in report.pending:
        yield (
            pending.pod,
            pending.state,
            pending.nominated_node,
            "",
            pending.attempts,
            pending.message,
        )


def _timeline_csv(
    report: SimulationReport,
) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
    assert report.timeline is not None
    columns = ("at_seconds", "event", "pod", "node", "message")
    return columns, ((h.at_s, h.what.value, h.pod, h.node, h.message) for h in report.timeline)
