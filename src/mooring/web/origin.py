"""The source of a page's cluster."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

#: The name under which the page offers its list of changes.
CHANGES_FILE = "changes.yaml"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the cluster was read from, as the page shows it."""

    title: str
    #: files, cluster or trace.
    source: str = "files"
    warnings: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)
    #: The arguments with which a command reads the same cluster and configuration.
    arguments: tuple[str, ...] = ()

    def with_changes(self) -> str:
        """The command that simulates this with a file of changes."""
        command = "report" if self.source == "trace" else "simulate"
        return shlex.join(["mooring", command, *self.arguments, "--what-if", CHANGES_FILE])

    def to_data(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "source": self.source,
            "warnings": list(self.warnings),
            "skipped": self.skipped,
        }
