"""What commands are given: files of a cluster, a configuration, a length of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from mooring.cli.cluster_options import read_live, read_only_options
from mooring.cli.progress import Progress
from mooring.config import KubeSchedulerConfiguration, load_config, parse_duration
from mooring.errors import ConfigError, InputError
from mooring.objects.manifests import Manifests, read_manifests
from mooring.objects.meta import KubeObject
from mooring.runtime.plugin_folder import find_plugins_beside

STDIN = "-"

Command = Callable[..., Any]


@dataclass(slots=True)
class ClusterInput:
    """Where a cluster is to be read from: files, and a real cluster."""

    paths: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    #: Read once, however many clusters it is part of.
    _live: list[KubeObject] | None = None

    def live(self) -> list[KubeObject]:
        """Nothing if no kubeconfig was named. Raises MooringError."""
        if self.kubeconfig is None:
            if self.context is not None:
                raise click.UsageError("--context is of a --kubeconfig; name one")
            return []
        if self._live is None:
            self._live = read_live(self.kubeconfig, self.context)
        return self._live


def cluster_input(command: Command) -> Command:
    """`PATH…`, `-f PATH`, `--kubeconfig` and `--context`, for every command that reads a cluster.

    The command gets all of them as one ClusterInput, `cluster`.
    """

    @wraps(command)
    def with_cluster(
        *arguments: Any,
        paths: tuple[str, ...],
        filenames: tuple[str, ...],
        kubeconfig: str | None,
        context: str | None,
        **others: Any,
    ) -> Any:
        cluster = ClusterInput((*paths, *filenames), kubeconfig, context)
        return command(*arguments, cluster=cluster, **others)

    return _cluster_paths(read_only_options(with_cluster))


def _cluster_paths(command: Command) -> Command:
    command = click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        metavar="PATH",
        help="A file or folder to read, as kubectl takes it; may be repeated. - is standard input.",
    )(command)
    return click.argument("paths", nargs=-1, metavar="PATH…")(command)


def config_option(command: Command) -> Command:
    return click.option(
        "--config",
        "config_path",
        metavar="FILE",
        help="A KubeSchedulerConfiguration; without it, the default one. Plugins that it names as"
        " module:Class may lie beside it.",
    )(command)


seed_option = click.option(
    "--seed", type=int, help="Spread ties between equally good nodes by this number."
)


def duration(text: str) -> float:
    """The seconds in a length of time as Go writes it, or in a bare number of them."""
    digits = text.replace(".", "", 1)
    try:
        if digits.isascii() and digits.isdigit():
            return float(text)
        seconds = parse_duration(text).seconds
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise click.BadParameter(f"{text!r} is not a length of time; write 1h30m, 90s or 5400")
    return seconds


def read_cluster(cluster: ClusterInput, *more: str) -> Manifests:
    """Read all that was named, and tell of the kinds that were left out. Raises InputError.

    What a file says takes the place of the same object of a real cluster.
    """
    named = [*more, *cluster.paths]
    live = cluster.live()
    if not named and cluster.kubeconfig is None:
        raise click.UsageError(
            "nothing to read: name files or folders with Kubernetes YAML, - for standard input, or"
            " --kubeconfig for a real cluster"
        )
    with Progress("reading files") as progress:
        manifests = read_manifests(
            named, stdin=sys.stdin.buffer, progress=progress.update, among=live
        )
    if live:
        written = {(type(obj), obj.key) for obj in manifests.objects}
        kept = [obj for obj in live if (type(obj), obj.key) not in written]
        manifests = replace(manifests, objects=[*kept, *manifests.objects])
    if not manifests.objects:
        click.echo("warning: there is no object to be found in what was named", err=True)
    for warning in manifests.warnings:
        click.echo(f"warning: {warning}", err=True)
    if manifests.skipped:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(manifests.skipped.items()))
        click.echo(f"skipped, as mooring does not read these kinds: {kinds}", err=True)
    return manifests


def read_config(path: str | None) -> KubeSchedulerConfiguration | None:
    """None without a path. Raises ConfigError."""
    if path is None:
        return None
    text = read_bytes(path)
    if path != STDIN:
        find_plugins_beside(Path(path))
    with naming(path):
        return load_config(text)


@contextmanager
def naming(path: str | None) -> Iterator[None]:
    """Begin every line of a ConfigError with the file that it is about."""
    try:
        yield
    except ConfigError as error:
        if path is None:
            raise
        raise ConfigError([f"{shown(path)}: {line}" for line in error.problems]) from error


def read_bytes(path: str) -> bytes:
    """Raises InputError if it cannot be read at all."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error


def shown(path: str) -> str:
    return "standard input" if path == STDIN else path
