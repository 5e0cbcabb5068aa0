"""Read the input of `mooring ui` and `mooring report`: files, a real cluster, or a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.cli.inputs import ClusterInput, naming, read_cluster, read_config, refusals
from mooring.cli.options import Command, cluster_input, config_option, seed_option, until_option
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.traces.reading import read_trace

if TYPE_CHECKING:
    from mooring.web.origin import Origin
    from mooring.web.run_spec import RunSpec


def page_input(command: Command) -> Command:
    """The options for `read_page_input`."""
    command = click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="TRACE",
        help="Replay this trace instead of reading a cluster, as `mooring replay` does.",
    )(seed_option(until_option(command)))
    return cluster_input(config_option(command))


def read_page_input(
    cluster: ClusterInput,
    *,
    config_path: str | None,
    trace: Path | None,
    seed: int | None,
    until_s: float | None,
) -> tuple[Origin, RunSpec]:
    """Raises InputError, ConfigError, ApiError and CredentialsError."""
    if trace is not None and (cluster.paths or cluster.kubeconfig is not None):
        raise click.UsageError("--trace brings its own cluster; give no PATH, -f or --kubeconfig")
    config = read_config(config_path)
    with naming(config_path):
        # Plugins check their own arguments. Report a mistake before anything that takes long.
        Simulation(SimOptions(config=config)).close()
    origin, run_spec = _of_cluster(cluster) if trace is None else _of_trace(trace)
    return origin, replace(run_spec, config=config, seed=seed, until_s=until_s)


def _of_cluster(cluster: ClusterInput) -> tuple[Origin, RunSpec]:
    from mooring.web.origin import Origin
    from mooring.web.run_spec import RunSpec

    manifests = read_cluster(cluster)
    live = [cluster.context or "a real cluster"] if cluster.kubeconfig is not None else []
    origin = Origin(
        title=", ".join([*live, *cluster.paths]),
        source="cluster" if live else "files",
        warnings=(*manifests.warnings, *refusals(manifests.refused)),
        skipped=manifests.skipped,
    )
    return origin, RunSpec(tuple(manifests.objects))


def _of_trace(path: Path) -> tuple[Origin, RunSpec]:
    from mooring.web.origin import Origin
    from mooring.web.run_spec import RunSpec

    trace = read_trace(path)
    return Origin(str(path), "trace", trace.notes), RunSpec.of_trace(trace)
