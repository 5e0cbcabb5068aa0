"""`mooring ui`: the cluster and its decisions on a page."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.cli.inputs import ClusterInput, check_installed
from mooring.cli.main import CANNOT_ANSWER, print_problems
from mooring.cli.options import file_option
from mooring.cli.page_inputs import page_input, read_page_input
from mooring.cli.progress import Progress
from mooring.errors import InputError

if TYPE_CHECKING:
    from mooring.web.access import Access
    from mooring.web.origin import Origin
    from mooring.web.premise import Premise
    from mooring.web.service import Service

#: The address is told once there is something to see; while pods are being placed, no later than this.
_PATIENCE_S = 10.0
_LOOPBACK = "127.0.0.1"


@click.command()
@page_input
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=0,
    help="Where to listen; without it, on a port that is free.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=_LOOPBACK,
    show_default=True,
    help="Another address of this machine. Beyond this machine only with --token-file: the page is"
    " not encrypted, so put something in front of it that is.",
)
@file_option(
    "--token-file",
    help="A file with the token to ask for (16 characters or more), instead of one made up.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="With --listen: a name by which the page is reached; may be repeated.",
)
@click.option("--no-open", is_flag=True, help="Only print the address; open no browser.")
def ui(
    cluster: ClusterInput,
    config_path: str | None,
    trace: Path | None,
    seed: int | None,
    until_s: float | None,
    port: int,
    listen: str,
    token_file: Path | None,
    names: tuple[str, ...],
    no_open: bool,
) -> None:
    """Show a cluster, its decisions and what would change them, on a page in the browser.

    PATH is as for `mooring simulate`. The cluster is simulated, and shown as a map; every pod can be
    explained, and anything tried out: it is all simulation, and a real cluster is only ever read. The
    page is served to this machine alone, and to nobody without the token in the address that is
    printed. It ends with Ctrl-C.

    Exits 0 when it is ended, 2 if the input cannot be used.

    \b
    Examples:
      mooring ui -f cluster/
      mooring ui -f cluster/ --config scheduler.yaml --port 8080 --no-open
      mooring ui --kubeconfig ~/.kube/config
      mooring ui --trace openb/
    """
    check_installed("web")
    access = _access(listen, token_file, names)
    origin, folder = _put_down(
        *read_page_input(cluster, config_path=config_path, trace=trace, seed=seed, until_s=until_s)
    )
    try:
        served = asyncio.run(
            _serve(origin, folder, access, listen=listen, port=port, opens=not no_open)
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if served else CANNOT_ANSWER)


def _put_down(origin: Origin, premise: Premise) -> tuple[Origin, Path]:
    """The workers read it from there: here it would only take memory."""
    from mooring.web.premise import put_down

    return origin, put_down(premise)


def _access(listen: str, token_file: Path | None, names: tuple[str, ...]) -> Access:
    from mooring.web.access import LOOPBACK_NAMES, SHORTEST_TOKEN, Access, is_loopback, new_token

    beyond = not is_loopback(listen)
    if beyond and token_file is None:
        raise click.UsageError(
            f"--listen {listen} can be reached from other machines; give a token with --token-file"
            " that they must know"
        )
    token = new_token() if token_file is None else _token(token_file)
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise InputError(
            [f"{token_file}: has no token of {SHORTEST_TOKEN} or more printable characters in it"]
        )
    known = LOOPBACK_NAMES | {listen.lower()} | {name.lower() for name in names}
    return Access(token, frozenset(known), anywhere=beyond)


def _token(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError([f"{path}: cannot be read: {why}"]) from error


async def _serve(
    origin: Origin, folder: Path, access: Access, *, listen: str, port: int, opens: bool
) -> bool:
    """False if the first run failed before there was anything to see."""
    from mooring.web.service import serving

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has none; there an interrupt ends it less gently.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(origin, folder, access, listen=listen, port=port) as service:
        await _first_run(service, stopped)
        job = service.first_job
        if job.state == "failed":
            print_problems([each["text"] for each in job.problems])
            return False
        if not stopped.is_set():
            click.echo(f"{origin.title} is at {service.address}")
            click.echo("it ends with Ctrl-C", err=True)
            if opens and _has_screen():
                webbrowser.open(service.address)
            await stopped.wait()
    return True


async def _first_run(service: Service, stopped: asyncio.Event) -> None:
    waited_s, step_s = 0.0, 0.1
    with Progress("placing pods") as progress:
        while waited_s < _PATIENCE_S and not stopped.is_set():
            if await service.first_run(step_s):
                return
            job = service.first_job
            # What cannot be used at all is found before the first pod is tried.
            waited_s += step_s if job.done else 0.0
            progress.update(job.done, job.total)


def _has_screen() -> bool:
    """Without one, Python would take the terminal for a browser."""
    if not sys.stdout.isatty():
        return False
    on_x = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(on_x) or sys.platform in ("darwin", "win32")
