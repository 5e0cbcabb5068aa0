"""docs/plugins.md, word for word: files are written and commands run in order, and print what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
SOURCES = Path(__file__).parents[2] / "src"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Command(NamedTuple):
    line: str
    #: What it prints; `...` stands for anything.
    shown: str


def blocks() -> Iterator[tuple[str, str]]:
    return iter(_BLOCK.findall(PAGE.read_text(encoding="utf-8")))


def test_every_block_is_a_file_or_a_command():
    """A block of another kind would not be run, and would go out of date."""
    for language, text in blocks():
        if language == "console":
            assert text.startswith("$ ")
        else:
            assert language in ("python", "yaml")
            assert re.match(r"# [\w.]+\.(py|yaml)\n", text), text


@pytest.mark.long
def test_the_manual_does_what_it_says(tmp_path):
    scripts = Path(sys.executable).parent
    environment = {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCES),
        "PYTEST_ADDOPTS": "-p no:mooring -p mooring.pytest_plugin -p no:cacheprovider",
        "NO_COLOR": "1",
    }
    # For a plugin of pytest that mooring's own tests use, which warns without it.
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
    )

    for language, text in blocks():
        if language != "console":
            name, _, content = text.partition("\n")
            (tmp_path / name.removeprefix("# ")).write_text(content)
            continue
        for command in (Command(*found) for found in _COMMAND.findall(text)):
            printed = _run(command.line, tmp_path, environment)
            assert _matches(command.shown, printed), f"$ {command.line}\n{printed}"


def _run(line: str, folder: Path, environment: dict[str, str]) -> str:
    """What is printed. Of a pipe, only standard output: the order of the two is by chance."""
    result = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if "|" in line else subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return result.stdout


def _matches(shown: str, printed: str) -> bool:
    """`...` stands for anything on its line, with the blanks around it."""
    pattern = r"[^\n]*".join(re.escape(part) for part in re.split(r" *\.\.\. *", shown))
    return re.fullmatch(pattern, printed) is not None
