"""`mooring demo`: a simulation of a cluster that comes with mooring."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from mooring.cli.demo_devices import demo_devices
from mooring.cli.output import Page, counted
from mooring.cli.simulate import run
from mooring.cli.simulation_tables import add_tables
from mooring.objects.manifests import Manifests, read_manifests
from mooring.sim.report import SimulationReport
from mooring.sim.simulation import SimOptions

#: The pod of the demo that fits on no node.
_HOPELESS = "ml/finetune"


@click.command()
@click.argument("which", type=click.Choice(["cluster", "devices"]), default="cluster")
def demo(which: str) -> None:
    """Simulate a small cluster that comes with mooring.

    The cluster has three zones, a pool of GPU nodes, a web shop, training jobs, a pod that fits on no
    node and a pod that preempts another. `mooring demo devices` is another one: GPUs, slices of a GPU and
    shared network cards, which pods claim (Dynamic Resource Allocation). The demo needs no cluster and
    changes nothing.

    Exits 0, or 2 if the demo failed.
    """
    if which == "devices":
        demo_devices()
        return
    with resources.as_file(resources.files("mooring") / "demo") as folder:
        manifests = read_manifests([str(folder)])
        report = run(manifests, SimOptions(), None)
        page = Page()
        _introduce(page, folder, manifests)
        add_tables(page, report, rows=None)
        _explain(page, report)
        page.write()


def _introduce(page: Page, folder: Path, manifests: Manifests) -> None:
    page.line(
        f"Simulating {counted(len(manifests.nodes), 'node')} and"
        f" {counted(len(manifests.pods), 'pod')} of a small cluster in three zones, with the default"
        " configuration of kube-scheduler. The same command:"
    )
    page.line()
    page.line(f"  mooring simulate {folder}", "cyan")


def _explain(page: Page, report: SimulationReport) -> None:
    for pending in report.pending:
        if pending.pod == _HOPELESS:
            page.heading(f"WHY IS {pending.pod} PENDING?")
            page.line(
                "It requests eight GPUs on one node, but the largest node has four. The scheduler"
                f" reports: {pending.message}"
            )
            page.line(
                f"Rejected by: {', '.join(pending.plugins)}. Evicting pods cannot help, because no node"
                " is large enough."
            )
    page.line()
    page.line("To see more, add --timeline or --output json to the command above.")
