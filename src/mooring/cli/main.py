"""`mooring`: the commands, and what becomes of their errors.

Every command answers a question, and its exit code is the answer: 0 is yes, 1 is no, 2 means that it could
not be answered. So whatever goes wrong ends with 2, and with 130 if the user interrupted.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast

import click

import mooring
from mooring.errors import MooringError

#: Name → where the command lives, and its line in the list of commands. The modules are imported when they
#: are asked for: most of them need NumPy, which takes longer to load than the help takes to print.
COMMANDS = {
    "simulate": (
        "mooring.cli.simulate:simulate",
        "Say where the pods of a cluster would go, and why some would not.",
    ),
    "explain": (
        "mooring.cli.explain:explain",
        "Say why a pod goes where it goes, or nowhere, and what would make it fit.",
    ),
    "compare": (
        "mooring.cli.compare:compare",
        "Say what changes with another configuration, or on another cluster.",
    ),
    "capacity": (
        "mooring.cli.capacity:capacity",
        "Say how many more pods fit, how many nodes are missing, and what may be lost.",
    ),
    "test": (
        "mooring.cli.test:test",
        "Play scenarios in virtual time, and say where they come out otherwise than expected.",
    ),
    "ui": (
        "mooring.cli.ui:ui",
        "Show a cluster, its decisions and what would change them, on a page in the browser.",
    ),
    "report": (
        "mooring.cli.report:report",
        "Write the page of a cluster into one file, to be shared.",
    ),
    "replay": (
        "mooring.cli.replay:replay",
        "Play a recorded cluster again, and measure it over virtual time.",
    ),
    "run": (
        "mooring.cli.run:run",
        "Schedule the pods of a real cluster.",
    ),
    "shadow": (
        "mooring.cli.shadow:shadow",
        "Watch another scheduler at work, and say where mooring would decide otherwise.",
    ),
    "snapshot": (
        "mooring.cli.snapshot:snapshot",
        "Write down a real cluster, to simulate it.",
    ),
    "config": (
        "mooring.cli.config:config",
        "Check a scheduler configuration, or see what it comes to.",
    ),
    "conformance": (
        "mooring.cli.conformance:conformance",
        "Compare mooring's decisions with those of kube-scheduler.",
    ),
    "demo": (
        "mooring.cli.demo:demo",
        "Simulate a small cluster that comes with mooring.",
    ),
}

NO, CANNOT_ANSWER, INTERRUPTED = 1, 2, 130

#: A broken file of ten megabytes can have a great many problems.
_MOST_LINES = 100


class LazyGroup(click.Group):
    """A group that loads a command when it is run, and turns mooring's errors into lines."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return cast(click.Command, getattr(importlib.import_module(module), name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MooringError as error:
            print_problems(str(error).splitlines() or [type(error).__name__])
            ctx.exit(CANNOT_ANSWER)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(mooring.__version__, "-V", "--version", message="mooring %(version)s")
def cli() -> None:
    """Decide as kube-scheduler does, on any cluster that you can write down.

    Every command exits 0 for yes, 1 for no, and 2 if it could not answer.

    \b
    Start here:
      mooring demo
      mooring simulate cluster.yaml workloads/
    """
    import logging

    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING)


def main() -> NoReturn:
    """The entry point; whatever happens, a crash is not mistaken for an answer."""
    try:
        cli.main(prog_name="mooring")
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo(
            "error: this is a bug in mooring; please report it with the lines above", err=True
        )
        sys.exit(CANNOT_ANSWER)
    sys.exit(0)


def print_warnings(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def print_problems(lines: Sequence[str]) -> None:
    """One line each on standard error; a great many are summed up."""
    for line in lines[:_MOST_LINES]:
        click.echo(f"error: {line}", err=True)
    if len(lines) > _MOST_LINES:
        click.echo(f"error: … and {len(lines) - _MOST_LINES:,} more problems", err=True)
