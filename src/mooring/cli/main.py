"""`mooring`: the list of commands, and how their errors are reported.

Every command answers a question, and its exit code is the answer: 0 is yes, 1 is no, 2 means that the command
could not answer. Every error ends with 2; an interrupt by the user ends with 130.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast

import click

import mooring
from mooring.errors import MooringError
from mooring.garbage import collect_seldom, spare_what_stays

#: Name → the command's module and attribute, and its line in the list of commands. A module is imported only
#: when its command runs: most modules need NumPy, which takes longer to load than the help takes to print.
COMMANDS = {
    "simulate": (
        "mooring.cli.simulate:simulate",
        "Show where the pods of a cluster would go, and why some stay pending.",
    ),
    "explain": (
        "mooring.cli.explain:explain",
        "Explain why a pod goes to its node or stays pending, and what would make it fit.",
    ),
    "compare": (
        "mooring.cli.compare:compare",
        "Show what changes with another configuration, or on another cluster.",
    ),
    "capacity": (
        "mooring.cli.capacity:capacity",
        "Show how many more pods fit, how many nodes to add, and which nodes the cluster can lose.",
    ),
    "test": (
        "mooring.cli.test:test",
        "Run scenarios in virtual time, and check what they expect.",
    ),
    "ui": (
        "mooring.cli.ui:ui",
        "Show a cluster, its scheduling decisions and what would change them in the browser.",
    ),
    "report": (
        "mooring.cli.report:report",
        "Write the page of a cluster to one HTML file that you can share.",
    ),
    "replay": (
        "mooring.cli.replay:replay",
        "Replay a recorded trace, and measure the cluster over virtual time.",
    ),
    "sweep": (
        "mooring.cli.sweep:sweep",
        "Run a grid of configurations, inputs, seeds and loads, and compare them.",
    ),
    "run": (
        "mooring.cli.run:run",
        "Schedule the pods of a real cluster.",
    ),
    "shadow": (
        "mooring.cli.shadow:shadow",
        "Watch another scheduler, and show where mooring would decide differently.",
    ),
    "snapshot": (
        "mooring.cli.snapshot:snapshot",
        "Save the state of a real cluster to a file, to simulate it.",
    ),
    "config": (
        "mooring.cli.config:config",
        "Check a scheduler configuration, or show it with its defaults and plugins.",
    ),
    "plugin": (
        "mooring.cli.plugin:plugin",
        "Check that a plugin keeps its promises, or start a package with one.",
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

#: A large broken file can have thousands of problems.
_MOST_LINES = 100


class LazyGroup(click.Group):
    """A group that imports a command when it runs, and prints mooring's errors as lines."""

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
    """Schedule pods as kube-scheduler does, on a simulated cluster or on a real one.

    Every command exits 0 for yes, 1 for no, and 2 if it could not answer.

    \b
    Start here:
      mooring demo
      mooring simulate cluster.yaml workloads/
    """
    import logging

    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING)


def main() -> NoReturn:
    """The entry point. A crash exits 2, so that it is not mistaken for an answer."""
    # NumPy's linear algebra starts a thread for each core: a tenth of a second. Nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collect_seldom()
    try:
        cli.main(prog_name="mooring")
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        import traceback

        traceback.print_exc()
        click.echo(
            "error: this is a bug in mooring; please report it with the lines above", err=True
        )
        sys.exit(CANNOT_ANSWER)
    finally:
        # The interpreter looks for cycles once more at its end: a tenth of a second for 20,000 pods.
        spare_what_stays()
    sys.exit(0)


def print_warnings(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def print_notes(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"note: {line}", err=True)


def print_problems(lines: Sequence[str]) -> None:
    """Print each line on standard error; past `_MOST_LINES`, print only how many more there are."""
    for line in lines[:_MOST_LINES]:
        click.echo(f"error: {line}", err=True)
    if len(lines) > _MOST_LINES:
        click.echo(f"error: … and {len(lines) - _MOST_LINES:,} more problems", err=True)
