"""`mooring demo`: the main job, on a cluster that comes with mooring."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from mooring.cli.output import Page, counted
from mooring.cli.simulate import run
from mooring.cli.simulation_tables import add_tables
from mooring.objects.manifests import Manifests, read_manifests
from mooring.sim.report import SimulationReport
from mooring.sim.simulation import SimOptions

#: The pod of the demo that fits nowhere.
_HOPELESS = "ml/finetune"


@click.command()
def demo() -> None:
    """Simulate a small cluster that comes with mooring.

    It has three zones, a pool with GPUs, a web shop, training jobs, a pod that fits nowhere and one
    that is important enough to evict another. Nothing is needed and nothing is changed.

    Exits 0 once it has shown how it went, or 2 if it could not.
    """
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
        " configuration of kube-scheduler. The same by hand:"
    )
    page.line()
    page.line(f"  mooring simulate {folder}", "cyan")


def _explain(page: Page, report: SimulationReport) -> None:
    for pending in report.pending:
        if pending.pod == _HOPELESS:
            page.heading(f"WHY IS {pending.pod} PENDING?")
            page.line(
                "It asks for eight GPUs on one machine, and the largest has four. The scheduler says"
                f" so in its own way: {pending.message}"
            )
            page.line(
                f"In the way: {', '.join(pending.plugins)}. Whatever finishes or is evicted, no machine"
                " is large enough."
            )
    page.line()
    page.line("More: add --timeline to the command above, or --output json.")
