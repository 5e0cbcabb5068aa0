"""`mooring snapshot`: write down a real cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from mooring.cli import output
from mooring.cli.cluster_options import check_installed, kubeconfig_options
from mooring.errors import InputError


@click.command()
@kubeconfig_options
@click.option(
    "-o",
    "--output",
    "target",
    default="-",
    metavar="FILE",
    help="Where to write; JSON if it ends in .json, else YAML. - is standard output.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json"]),
    help="Instead of what the name of the file says. JSON is much faster to read.",
)
def snapshot(kubeconfig: str | None, context: str | None, target: str, form: str | None) -> None:
    """Write down a real cluster, to simulate it.

    Only reads. Written are nodes, unfinished pods, and whatever decides where pods may go: claims,
    volumes, classes, services, disruption budgets, namespaces and priorities. Never written are
    Secrets and ConfigMaps, the environment and commands of containers, image pull secrets, and
    annotations that no rule reads. Names and labels are written as they are.

    Exits 0 if the cluster was written, 2 if it could not be read.

    \b
    Examples:
      mooring snapshot --kubeconfig ~/.kube/config -o cluster.yaml
      mooring simulate -f cluster.yaml -f new-workload.yaml
    """
    check_installed()
    import asyncio

    from mooring.live.session import connector
    from mooring.live.snapshot import counts, read_from, to_data

    connect = connector(Path(kubeconfig) if kubeconfig else None, context)
    objects, left_out = asyncio.run(read_from(connect))
    for line in left_out:
        click.echo(f"warning: {line}", err=True)
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
    try:
        Path(target).write_bytes(text)
    except OSError as error:
        raise InputError([f"{target}: cannot be written: {error.strerror or error}"]) from error
