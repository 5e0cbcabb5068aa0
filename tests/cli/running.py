"""Running mooring from a test: in this process, or as its users do."""

from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner, Result

from mooring.cli.main import cli


def mooring(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """In this process, with its output caught as in a pipe; what is no answer is raised."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def mooring_process(
    *arguments: object, stdin: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mooring", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=environment or None,
        timeout=120,
    )
