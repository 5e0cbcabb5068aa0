"""`mooring run`: schedule the pods of a real cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from mooring.cli.inputs import check_installed, given_gates
from mooring.cli.options import (
    config_option,
    duration_option,
    kubeconfig_options,
    log_options,
    seed_option,
)
from mooring.config import (
    Duration,
    KubeSchedulerConfiguration,
    config_problems,
)
from mooring.errors import ConfigError


@click.command()
@kubeconfig_options
@config_option
@click.option(
    "--leader-elect/--no-leader-elect",
    "leader_election__leader_elect",
    default=None,
    help="Whether to schedule only while holding the lease; by default as in the configuration, whose"
    " default is yes.",
)
@duration_option("--leader-elect-lease-duration", "leader_election__lease_duration")
@duration_option("--leader-elect-renew-deadline", "leader_election__renew_deadline")
@duration_option("--leader-elect-retry-period", "leader_election__retry_period")
@click.option("--leader-elect-resource-name", "leader_election__resource_name", metavar="NAME")
@click.option(
    "--leader-elect-resource-namespace", "leader_election__resource_namespace", metavar="NAME"
)
@click.option(
    "--kube-api-qps",
    "client_connection__qps",
    type=float,
    metavar="N",
    help="The maximum number of requests per second.",
)
@click.option(
    "--kube-api-burst",
    "client_connection__burst",
    type=int,
    metavar="N",
    help="The maximum number of requests at once.",
)
@click.option(
    "--bind-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address that serves /healthz, /readyz, /metrics and so on, without authentication unless"
    " --authorize is set.",
)
@click.option(
    "--port",
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=10259,
    show_default=True,
    metavar="N",
    help="The port of these endpoints; 0 serves none.",
)
@click.option(
    "--tls-cert-file", default="", metavar="FILE", help="Serve HTTPS with this certificate."
)
@click.option("--tls-private-key-file", default="", metavar="FILE")
@click.option(
    "--authorize",
    is_flag=True,
    help="Serve metrics and configuration only to clients that the API server authorizes for those paths."
    " Needs --tls-cert-file, because clients send tokens.",
)
@duration_option(
    "--drain-timeout", default="20s", help="How long to wait for running bindings on SIGTERM."
)
@seed_option
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write everything that the scheduler is told to this file, up to 256 MB and the file before it;"
    " `mooring replay FILE` makes the same decisions again. Pods and nodes are in it as they are."
    " Without this option, the latest inputs are written to a temporary file after an internal error.",
)
@log_options
def run(
    kubeconfig: str | None,
    context: str | None,
    config_path: str | None,
    bind_address: str,
    port: int,
    tls_cert_file: str,
    tls_private_key_file: str,
    authorize: bool,
    drain_timeout: float,
    seed: int | None,
    journal: Path | None,
    verbosity: int,
    logging_format: str,
    **flags: Any,
) -> None:
    """Schedule the pods of a real cluster.

    SIGTERM and SIGINT stop it gracefully; a second signal stops it at once. SIGHUP, or a change of the
    configuration file, reloads the configuration and its plugins. SIGUSR2 logs the queue and the nodes.

    Exits 0 if a signal stopped it; 1 if it lost its lease, ran without leader election (as
    kube-scheduler does) or had to stop because of an error; 2 if it could not start.

    \b
    Examples:
      mooring run --kubeconfig ~/.kube/config
      mooring run --config scheduler.yaml --no-leader-elect -v 4
    """
    check_installed("live")
    if authorize and not tls_cert_file:
        raise click.UsageError(
            "--authorize needs --tls-cert-file: clients must not send tokens unencrypted"
        )
    import asyncio

    from mooring.live import logs
    from mooring.live.input_journal import JournalFile, recent_inputs
    from mooring.live.operations import Listen
    from mooring.live.reload import ConfigSource
    from mooring.live.runner import RunOptions
    from mooring.live.runner import run as run_live
    from mooring.live.session import connector

    logs.set_up(logging_format, verbosity)
    path = None if config_path is None else Path(config_path)
    source = ConfigSource(path, given_gates(), override(flags))
    config = source.load()
    named = kubeconfig or config.client_connection.kubeconfig
    options = RunOptions(
        source=source,
        listen=Listen(bind_address, port, tls_cert_file, tls_private_key_file),
        drain_s=drain_timeout,
        authorize=authorize,
        seed=seed,
        make_journal=recent_inputs if journal is None else lambda: JournalFile(journal),
    )
    connect = connector(Path(named) if named else None, context)
    sys.exit(asyncio.run(run_live(options, config, connect)))


def override(
    flags: dict[str, Any],
) -> Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]:
    """Flags override the file. Raises ConfigError if the result is invalid.

    A flag has the name of the field that it overrides: `part__field`.
    """

    def overridden(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        for flag, value in flags.items():
            if value is None:
                continue
            part_name, _, field = flag.partition("__")
            part = getattr(config, part_name)
            if isinstance(getattr(part, field), Duration):
                value = Duration(int(value * 1_000_000_000))
            config = replace(config, **{part_name: replace(part, **{field: value})})
        problems = config_problems(config, config.gates)
        if problems:
            raise ConfigError(problems)
        return config

    return overridden
