"""Commands of mooring that look at the cluster of a test, and what they print."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from control_plane import DIE_WITH_PARENT

#: Longer than any command of a test takes.
MOST_S = 120.0


@dataclass(frozen=True)
class Printed:
    exit_code: int
    output: str
    errors: str


def run(*arguments: str | Path) -> Printed:
    done = subprocess.run(
        [sys.executable, "-m", "mooring", *arguments],
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=False,
    )
    return Printed(done.returncode, done.stdout, done.stderr)


@dataclass
class Running:
    """A command that goes on beside the test; its output and its log are in files."""

    folder: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, *arguments: str | Path) -> None:
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*DIE_WITH_PARENT, sys.executable, "-m", "mooring", *arguments],
                stdout=output,
                stderr=log,
            )

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def end(self) -> Printed:
        """Ask it to stop, as Ctrl-C does, and say what it printed."""
        self.process.send_signal(2)
        code = self.process.wait(MOST_S)
        return Printed(code, self.output.read_text(), self.log.read_text())
