"""The command itself: help, version, and what becomes of errors."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys

import click
import pytest

import mooring as package
from mooring.cli.main import COMMANDS
from tests.cli.running import mooring, mooring_process

RAISES = """
import mooring.cli.main as main
from mooring.sim import report

def raises(*args, **kwargs):
    raise {error}

import mooring.cli.simulate as simulate
simulate.simulate_objects = raises
main.main()
"""


def test_help_lists_the_commands_and_the_exit_codes():
    result = mooring("--help")

    assert result.exit_code == 0
    assert "Every command exits 0 for yes, 1 for no, and 2 if it could not answer." in result.stdout
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout


def command_of(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name):
    command, line = command_of(name), COMMANDS[name][1]

    assert command.help is not None
    assert " ".join(command.help.split("\n\n")[0].split()) == line


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "config"])
def test_every_command_says_what_its_exit_codes_mean(name):
    assert "Exits 0" in mooring(name, "--help").stdout


@pytest.mark.parametrize(
    "option", ["--context", "--filename", "--rows", "--seed", "--timeline", "--until"]
)
def test_an_option_means_the_same_in_every_command(option):
    texts = {
        parameter.help
        for parameter in (each for name in COMMANDS for each in command_of(name).params)
        if isinstance(parameter, click.Option) and option in parameter.opts
    }

    assert len(texts) == 1


def test_version_is_the_version_of_the_package():
    assert mooring("--version").stdout == f"mooring {package.__version__}\n"


def test_an_unknown_command_exits_2():
    result = mooring("sail")

    assert result.exit_code == 2
    assert "No such command 'sail'" in result.stderr


def test_help_loads_neither_numpy_nor_rich_nor_yaml():
    """They take longer to load than the help takes to print."""
    code = (
        "import sys\n"
        "from mooring.cli.main import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'rich', 'yaml', 'asyncio', 'logging'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert result.stdout.splitlines()[-1] == "[]"


def run_code(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        input="{apiVersion: v1, kind: Node, metadata: {name: n-1}}",
        timeout=60,
    )


def test_a_bug_is_not_mistaken_for_an_answer():
    result = run_code(RAISES.format(error="ZeroDivisionError('oops')"), "simulate", "-")

    assert result.returncode == 2
    assert "ZeroDivisionError: oops" in result.stderr
    assert result.stderr.endswith(
        "error: this is a bug in mooring; please report it with the lines above\n"
    )


def test_an_interrupted_command_exits_130_with_one_line():
    result = run_code(RAISES.format(error="KeyboardInterrupt"), "simulate", "-")

    assert result.returncode == 128 + signal.SIGINT
    assert result.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_reader_that_has_seen_enough_does_not_change_the_answer(tmp_path, form):
    """As `mooring simulate … | head -1` does: the pipe is closed while there is more to write."""
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec: {replicas: 2000, selector: {matchLabels: {a: b}}, template: {metadata: {labels:"
        " {a: b}}, spec: {schedulerName: none, containers: [{name: c, image: i}]}}}\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "mooring", "simulate", cluster, "-o", form, "--rows", "0"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)

    assert result.returncode == 1
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())


def test_mooring_runs_as_a_module():
    assert mooring_process("--version").returncode == 0
