"""What commands are given: files of a cluster, a configuration, a length of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from mooring.cli.output import counted
from mooring.cli.progress import Progress
from mooring.config import KubeSchedulerConfiguration, load_config, parse_duration
from mooring.errors import ConfigError, InputError
from mooring.objects.manifests import Manifests, read_manifests

STDIN = "-"

Command = Callable[..., Any]


def cluster_paths(command: Command) -> Command:
    """`PATH…` and `-f PATH`, for every command that reads a cluster; it gets both as `paths`."""
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
        help="A KubeSchedulerConfiguration; without it, the default one.",
    )(command)


class DurationType(click.ParamType):
    """A length of time as Go writes it, or a bare number of seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = float(value) if _is_number(value) else parse_duration(value).seconds
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            self.fail(f"{value!r} is not a length of time; write 1h30m, 90s or 5400", param, ctx)
        return seconds


def read_cluster(paths: Sequence[str], filenames: Sequence[str]) -> Manifests:
    """Read all that was named, and tell of the kinds that were left out. Raises InputError."""
    named = [*paths, *filenames]
    if not named:
        raise click.UsageError(
            "nothing to read: name files or folders with Kubernetes YAML, or - for standard input"
        )
    with Progress("reading files") as progress:
        manifests = read_manifests(named, stdin=sys.stdin.buffer, progress=progress.update)
    if manifests.skipped:
        kinds = ", ".join(f"{kind} ({n:,})" for kind, n in sorted(manifests.skipped.items()))
        number = counted(sum(manifests.skipped.values()), "object")
        click.echo(f"skipped {number} of kinds that do not matter here: {kinds}", err=True)
    return manifests


def read_config(path: str | None) -> KubeSchedulerConfiguration | None:
    """None without a path. Raises ConfigError, each line of which begins with the file."""
    if path is None:
        return None
    try:
        return load_config(read_bytes(path))
    except ConfigError as error:
        raise in_file(path, error) from error


def in_file(path: str, error: ConfigError) -> ConfigError:
    return ConfigError([f"{shown(path)}: {line}" for line in error.problems])


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


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit()
