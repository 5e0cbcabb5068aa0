"""`mooring demo devices`: pods that claim GPUs, slices of a GPU, and a share of a network card."""

from __future__ import annotations

from importlib import resources

from mooring.cli.explain_tables import write_changes, write_devices
from mooring.cli.output import Page, counted
from mooring.cli.simulation_tables import add_tables
from mooring.explain.counterfactuals import find_counterfactuals
from mooring.explain.devices import device_reasons
from mooring.explain.what_if import WhatIf
from mooring.objects.manifests import read_manifests
from mooring.sim.build_report import build_report
from mooring.sim.simulation import Simulation

#: The pod that gets no device, and what its template asks for.
_HOPELESS, _WANTED = "ml/finetune", "96Gi"


def demo_devices() -> None:
    with resources.as_file(resources.files("mooring") / "demo_devices") as folder:
        manifests = read_manifests([str(folder)])
        page = Page()
        page.line(
            f"Simulating {counted(len(manifests.nodes), 'node')} with devices, and"
            f" {counted(len(manifests.pods), 'pod')} that claim some. The same command:"
        )
        page.line()
        page.line(f"  mooring simulate {folder}", "cyan")
        with Simulation() as simulation:
            simulation.load(manifests.objects)
            simulation.run()
            add_tables(page, build_report(simulation), rows=None)
            pod = simulation.scheduler.pod(_HOPELESS)
            assert pod is not None
            page.heading(f"WHY IS {_HOPELESS} PENDING?")
            page.line(f"It claims a GPU with {_WANTED}, and every device is refused:")
            write_devices(page, device_reasons(simulation.scheduler.cluster, pod))
            write_changes(page, find_counterfactuals(WhatIf(simulation), _HOPELESS))
        page.line()
        page.line(f"To ask so of any pod: mooring explain {_HOPELESS} {folder}")
        page.write()
