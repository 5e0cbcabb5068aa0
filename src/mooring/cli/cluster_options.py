"""What every command is given that speaks to a real cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mooring.errors import MooringError

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
