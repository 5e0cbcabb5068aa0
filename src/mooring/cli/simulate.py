"""`mooring simulate`: where would these pods go?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from mooring.cli import output
from mooring.cli.config_inputs import ConfigInput, naming
from mooring.cli.inputs import (
    ClusterInput,
    check_something_to_place,
    read_cluster,
    skipped_data,
)
from mooring.cli.main import print_warnings
from mooring.cli.options import (
    cluster_input,
    config_input,
    output_option,
    rows_option,
    seed_option,
    timeline_option,
    until_option,
    what_if_option,
)
from mooring.cli.progress import Progress
from mooring.cli.simulation_tables import write_tables
from mooring.objects.manifests import Manifests
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.scheduler.journal import NOTHING, TIMELINE
from mooring.sim.build_report import simulate_objects
from mooring.sim.report import SimulationReport
from mooring.sim.simulation import SimOptions


@click.command()
@cluster_input
@config_input
@seed_option
@until_option
@what_if_option
@timeline_option
@output_option(
    "table",
    "json",
    "yaml",
    "csv",
    help="csv has one line per pod, or with --timeline one line per event.",
)
@rows_option
def simulate(
    cluster: ClusterInput,
    config: ConfigInput,
    seed: int | None,
    until_s: float | None,
    what_if: Path | None,
    timeline: bool,
    form: str,
    rows: int,
) -> None:
    """Show where the pods of a cluster would go, and why some stay pending.

    PATH is a file or a folder with Kubernetes YAML or JSON, or - for standard input. It contains nodes,
    pods and workloads (Deployments, StatefulSets, DaemonSets, Jobs, …). Pods that have a node stay
    there. mooring places the others as kube-scheduler does, in virtual time. A pod with the annotation
    mooring.dev/run-seconds succeeds after that many seconds and frees its resources.

    Folders with a kustomization and Helm charts are rendered with kubectl, kustomize or helm. Custom
    resources such as a RayCluster or an Argo Rollout become the pods that their controllers create.

    Exits 0 if every pod is placed or finished, 1 if some are pending or would not be created, 2 if the
    input is invalid or holds nothing to place.

    \b
    Examples:
      mooring simulate cluster.yaml workloads/
      kubectl get nodes,pods -A -o json | mooring simulate -
      mooring simulate -f cluster.yaml -f jobs.yaml --until 2h --timeline
      mooring simulate cluster.yaml --config scheduler.yaml -o json | jq .pending
    """
    loaded = config.read()
    manifests = read_cluster(cluster, kinds=loaded.kinds)
    check_something_to_place(manifests, cluster.options.selector)
    keeps = TIMELINE if timeline else NOTHING
    objects, scheduler_config = list(config.choose_pods(manifests.objects, loaded)), loaded.config
    if what_if is not None:
        from mooring.cli.page_inputs import changed_by_file

        objects, scheduler_config = changed_by_file(objects, loaded.config, what_if)
    manifests = replace(manifests, objects=objects)
    options = SimOptions(
        config=scheduler_config, seed=seed, keeps=keeps, tries_without_nodes=timeline
    )
    with naming(loaded.path):
        report = run(manifests, options, until_s)
    output.answer(
        form,
        yes=report.all_placed,
        data=lambda: {
            **loaded.to_data(),
            **report.to_data(),
            "skipped": skipped_data(manifests),
        },
        csv=lambda: _write_csv(report),
        table=lambda: write_tables(report, rows=rows),
    )


def run(manifests: Manifests, options: SimOptions, until_s: float | None) -> SimulationReport:
    """Simulate with a progress bar, and print the errors of the run as warnings."""
    with placing_pods(manifests.pods, options) as watched:
        report = simulate_objects(manifests.objects, watched, until_s=until_s)
    print_warnings(report.errors)
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    return report.without(manifests.refused)


@contextmanager
def placing_pods(pods: Iterable[Pod], options: SimOptions) -> Iterator[SimOptions]:
    """The options, extended by a progress bar for the placing of these pods."""
    waiting = sum(1 for pod in pods if not pod.node_name and not pod.finished)
    tried = 0

    def count(decision: Decision) -> None:
        nonlocal tried
        tried += 1
        progress.update(min(tried, waiting))

    with Progress("placing pods", total=waiting) as progress:
        yield replace(options, on_decision=count)


_TIMELINE_COLUMNS = ("at_seconds", "event", "pod", "node", "message")
_POD_COLUMNS = ("pod", "state", "node", "at_seconds", "attempts", "message")


def _write_csv(report: SimulationReport) -> None:
    if report.timeline is None:
        output.write_csv(_POD_COLUMNS, _pod_rows(report))
        return
    happened = ((h.at_s, h.what.value, h.pod, h.node, h.message) for h in report.timeline)
    output.write_csv(_TIMELINE_COLUMNS, happened)


def _pod_rows(report: SimulationReport) -> Iterator[tuple[object, ...]]:
    for placed in report.placements:
        yield placed.pod, placed.state, placed.node, placed.at_s, "", ""
    for pending in report.unplaced:
        yield (
            pending.pod,
            pending.state,
            pending.nominated_node,
            "",
            pending.attempts,
            pending.message,
        )
    for missing in report.not_created:
        yield missing.object, "not created", "", "", "", missing.reason
