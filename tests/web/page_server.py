"""`mooring ui` as a process of its own, as people start it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ADDRESS = re.compile(r"(http://[^/\s]+/)\?token=(\S+)")


@dataclass(frozen=True, slots=True)
class PageServer:
    """A running one."""

    #: As it was printed, with the token.
    address: str
    #: Where it listens, with a slash at the end.
    root: str
    token: str

    def view(self, view: str) -> str:
        """The address that opens at a view, such as `pod/shop/web-1`."""
        return f"{self.address}#/{view}"


@contextmanager
def page_server(cluster: Path | None, *options: str) -> Iterator[PageServer]:
    """Serve a cluster, or what the options name, until the end of the block."""
    read = ("-f", str(cluster)) if cluster is not None else ()
    command = [sys.executable, "-m", "mooring", "ui", *read, "--no-open", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )
    try:
        yield _started(process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _started(process: subprocess.Popen[str]) -> PageServer:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        found = _ADDRESS.search(line)
        if found:
            return PageServer(found[0], found[1], found[2])
    raise AssertionError(f"mooring ui ended before it told its address: {''.join(said)}")
