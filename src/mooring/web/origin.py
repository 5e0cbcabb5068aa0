"""The source of a page's cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the cluster was read from, as the page shows it."""

    title: str
    #: files, cluster or trace.
    source: str = "files"
    warnings: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "source": self.source,
            "warnings": list(self.warnings),
            "skipped": self.skipped,
        }
