"""`mooring snapshot`: save the state of a real cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from mooring.cli import output
from mooring.cli.inputs import read_live
from mooring.cli.options import kubeconfig_options


@click.command()
@kubeconfig_options
@click.option(
    "-o",
    "--output",
    "target",
    default="-",
    metavar="FILE",
    help="The file to write: JSON if its name ends in .json, otherwise YAML. - is standard output.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json"]),
    help="Overrides the format of the file name. JSON is much faster to read.",
)
def snapshot(kubeconfig: str | None, context: str | None, target: str, form: str | None) -> None:
    """Save the state of a real cluster to a file, to simulate it.

    Only reads the cluster. The file contains nodes, unfinished pods, and the objects that affect
    scheduling: volumes and claims, classes, services, disruption budgets, namespaces and priorities. It
    never contains Secrets, ConfigMaps, the environment and commands of containers, image pull secrets,
    or annotations that scheduling does not read. Names and labels are not changed.

    Exits 0 if the file was written, 2 if the cluster could not be read.

    \b
    Examples:
      mooring snapshot --kubeconfig ~/.kube/config -o cluster.yaml
      mooring simulate -f cluster.yaml -f new-workload.yaml
    """
    objects = read_live(kubeconfig, context)
    from mooring.live.snapshot import counts, to_data

    _write(target, form or _form_of(target), to_data(objects))
    if target != "-":
        found = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts(objects).items()))
        click.echo(f"{target}: {found or 'an empty cluster'}", err=True)
    sys.exit(0)


def _form_of(target: str) -> str:
    return "json" if target.endswith(".json") else "yaml"


def _write(target: str, form: str, data: object) -> None:
    if target == "-":
        (output.write_json if form == "json" else output.write_yaml)(data)
        return
    text = msgspec.json.encode(data) if form == "json" else output.to_yaml(data).encode()
    output.write_file(Path(target), text)
