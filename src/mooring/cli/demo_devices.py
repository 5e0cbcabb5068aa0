"""`mooring demo devices`: pods that claim GPUs, slices of a GPU, and a share of a network card."""

from __future__ import annotations

from importlib import resources

import msgspec

from mooring.cli.explain_tables import write_devices
from mooring.cli.output import Cell, Column, Page, counted
from mooring.cli.simulation_tables import add_tables
from mooring.explain.devices import device_reasons
from mooring.objects.decoding import decode_json
from mooring.objects.devices import ResourceClaim, ResourceClaimTemplate
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import KubeObject, canonical_hook
from mooring.sim.report import build_report
from mooring.sim.simulation import Simulation

#: The pod that gets no device, and what its template asks for and could ask for instead.
_HOPELESS = "ml/finetune"
_TEMPLATE, _WANTED, _LESS = "very-big", "96Gi", "80Gi"


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
            _holders(page, simulation)
            pod = simulation.scheduler.pod(_HOPELESS)
            assert pod is not None
            page.heading(f"WHY IS {_HOPELESS} PENDING?")
            page.line(f"It claims a GPU with {_WANTED}, and every device is refused:")
            write_devices(page, device_reasons(simulation.scheduler.cluster, pod))
        node = _placed_with_less(manifests.objects)
        page.line()
        page.line(f"What would help: a GPU with {_LESS} is enough for it to be placed on {node}.")
        page.line(f"To ask so of any pod: mooring explain {_HOPELESS} {folder}")
        page.write()


def _holders(page: Page, simulation: Simulation) -> None:
    page.heading("DEVICES IN USE")
    rows = [
        (
            ", ".join(user.name for user in claim.status.reserved_for),
            result.request,
            Cell(f"{result.driver}/{result.pool}/{result.device}", "green"),
            ", ".join(f"{name} {amount}" for name, amount in result.consumed_capacity.items()),
        )
        for claim in simulation.api.all(ResourceClaim)
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    ]
    page.table(
        (Column("POD"), Column("REQUEST"), Column("DEVICE"), Column("SHARE")), sorted(rows, key=str)
    )


def _placed_with_less(objects: list[KubeObject]) -> str:
    """Try it: where the pod goes if its template asks for less."""
    with Simulation() as simulation:
        simulation.load(map(_asking_for_less, objects))
        simulation.run()
        pod = simulation.scheduler.pod(_HOPELESS)
        assert pod is not None
        return pod.node_name


def _asking_for_less(obj: KubeObject) -> KubeObject:
    if not isinstance(obj, ResourceClaimTemplate) or obj.name != _TEMPLATE:
        return obj
    text = msgspec.json.encode(obj, enc_hook=canonical_hook).decode()
    return decode_json(text.replace(_WANTED, _LESS).encode(), ResourceClaimTemplate)
