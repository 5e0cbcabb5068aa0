"""`mooring ui`: the cluster and its scheduling decisions in the browser."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.cli.config_inputs import ConfigInput
from mooring.cli.inputs import ClusterInput, check_installed
from mooring.cli.main import CANNOT_ANSWER, print_problems
from mooring.cli.options import file_option
from mooring.cli.page_inputs import PageInput, TraceInput, checked_page_input, page_input
from mooring.errors import InputError

if TYPE_CHECKING:
    from mooring.web.access import Access
    from mooring.web.service import Service

#: A mistake that is found within this time is told without an address.
_PATIENCE_S = 0.3
_LOOPBACK = "127.0.0.1"


@click.command()
@page_input
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=0,
    help="The port to listen on; by default a free one.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=_LOOPBACK,
    show_default=True,
    help="The address to listen on. One that other machines can reach needs --token-file. The page is not"
    " encrypted, so put a proxy with TLS in front of it.",
)
@file_option(
    "--token-file",
    help="A file with the access token (16 characters or more); by default a random token.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="With --listen: a host name of the page's address; can be repeated.",
)
@click.option("--no-open", is_flag=True, help="Print the address, but do not open a browser.")
def ui(
    cluster: ClusterInput,
    config: ConfigInput,
    trace: Path | None,
    seed: int | None,
    until_s: float | None,
    trace_input: TraceInput,
    what_if: Path | None,
    port: int,
    listen: str,
    token_file: Path | None,
    names: tuple[str, ...],
    no_open: bool,
) -> None:
    """Show a cluster, its scheduling decisions and what would change them in the browser.

    PATH is as for `mooring simulate`. mooring simulates the cluster and shows it as a map. You can ask for
    the explanation of every pod and try out changes: all of them are simulated, and mooring only reads a
    real cluster. Only this machine can reach the page, and only with the token in the printed address.
    Press Ctrl-C to stop.

    Exits 0 when you stop it, 2 if the input is invalid.

    \b
    Examples:
      mooring ui -f cluster/
      mooring ui -f cluster/ --config scheduler.yaml --port 8080 --no-open
      mooring ui --kubeconfig ~/.kube/config
      mooring ui --trace openb/
    """
    check_installed("web")
    access = _access(listen, token_file, names)
    source = checked_page_input(
        cluster,
        config=config,
        trace=trace,
        seed=seed,
        until_s=until_s,
        trace_input=trace_input,
        what_if=what_if,
    )
    source = replace(
        source,
        cluster=cluster.with_stdin(),
        arguments=tuple(_arguments_of_input(sys.argv[2:])),
    )
    folder = Path(tempfile.mkdtemp(prefix="mooring-ui-"))
    try:
        served = asyncio.run(
            _serve(source, folder, access, listen=listen, port=port, opens=not no_open)
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if served else CANNOT_ANSWER)


#: Options that are not about the cluster, and whether they have a value.
_OF_THE_PAGE = {
    "--port": True,
    "--listen": True,
    "--token-file": True,
    "--name": True,
    "--what-if": True,
    "--no-open": False,
}


def _arguments_of_input(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments that say what to read, for other commands to read the same."""
    left = iter(arguments)
    for argument in left:
        option, equals, _ = argument.partition("=")
        if option not in _OF_THE_PAGE:
            yield argument
        elif _OF_THE_PAGE[option] and not equals:
            next(left, None)


def _access(listen: str, token_file: Path | None, names: tuple[str, ...]) -> Access:
    from mooring.web.access import LOOPBACK_NAMES, SHORTEST_TOKEN, Access, is_loopback, new_token

    beyond = not is_loopback(listen)
    if beyond and token_file is None:
        raise click.UsageError(
            f"other machines can reach --listen {listen}; give the token that they must send with"
            " --token-file"
        )
    token = new_token() if token_file is None else _token(token_file)
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise InputError(
            [
                f"{token_file}: the token must have {SHORTEST_TOKEN} or more printable ASCII characters"
            ]
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
    source: PageInput, folder: Path, access: Access, *, listen: str, port: int, opens: bool
) -> bool:
    """False if the first run failed."""
    from mooring.web.service import serving

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no signal handlers; there, Ctrl-C interrupts the loop.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(source, folder, access, listen=listen, port=port) as service:
        await service.first_run(_PATIENCE_S)
        if not stopped.is_set() and service.first_job.state != "failed":
            click.echo(f"{source.origin().title} is at {service.address}")
            click.echo("press Ctrl-C to stop", err=True)
            if opens and _has_screen():
                webbrowser.open(service.address)
            await _stopped_or_failed(service, stopped)
        if service.first_job.state == "failed":
            print_problems([each["text"] for each in service.first_job.problems])
            return False
    return True


async def _stopped_or_failed(service: Service, stopped: asyncio.Event) -> None:
    """A first run that fails later ends the command too: there is nothing to look at."""
    stopping = asyncio.ensure_future(stopped.wait())
    await asyncio.wait(
        [stopping, asyncio.ensure_future(service.session.settled(service.first_job))],
        return_when=asyncio.FIRST_COMPLETED,
    )
    if service.first_job.state != "failed":
        await stopping
    stopping.cancel()


def _has_screen() -> bool:
    """Without a screen, Python would open a text browser in the terminal."""
    if not sys.stdout.isatty():
        return False
    on_x = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(on_x) or sys.platform in ("darwin", "win32")
