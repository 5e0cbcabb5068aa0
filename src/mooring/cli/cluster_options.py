"""What every command is given that speaks to a real cluster, and how those that only look at it read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mooring.errors import MooringError
from mooring.objects.meta import KubeObject

Command = Callable[..., Any]

_MISSING = (
    "this command needs packages that are not installed ({}); install them with"
    " pip install 'mooring[live]'"
)


class NotInstalled(MooringError):
    """The packages for live clusters are an extra."""


def kubeconfig_options(command: Command) -> Command:
    """`--kubeconfig` and `--context`."""
    command = click.option(
        "--context", metavar="NAME", help="The context of the kubeconfig; else its current one."
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the API server; without it, the service account of the pod that this"
        " runs in.",
    )(command)


def read_only_options(command: Command) -> Command:
    """`--kubeconfig` and `--context`, for commands that answer questions about a real cluster."""
    command = click.option(
        "--context",
        metavar="NAME",
        help="With --kubeconfig: the context to use; otherwise its current one.",
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        help="Read the real cluster that this file leads to; what other files say is added to it."
        " Nothing is written there.",
    )(command)


def read_live(kubeconfig: str, context: str | None) -> list[KubeObject]:
    """What `mooring snapshot` would write down. Raises NotInstalled, CredentialsError and ApiError."""
    check_installed()
    import asyncio

    from mooring.live.session import connector
    from mooring.live.snapshot import read_from

    objects, left_out = asyncio.run(read_from(connector(Path(kubeconfig), context)))
    for line in left_out:
        click.echo(f"warning: {line}", err=True)
    return objects


def log_options(command: Command) -> Command:
    """`-v` and `--logging-format`."""
    command = click.option(
        "--logging-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For people, or one JSON object a line.",
    )(command)
    return click.option(
        "-v",
        "--v",
        "verbosity",
        type=click.IntRange(min=0),
        default=2,
        show_default=True,
        help="How much to log; from 4 on, every detail.",
    )(command)


def check_installed() -> None:
    """Raises NotInstalled."""
    try:
        import aiohttp  # noqa: F401
        import kubernetes_asyncio  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise NotInstalled(_MISSING.format(error.name)) from error
