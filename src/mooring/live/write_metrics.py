"""What the writers report about waiting writes. By default the reports are ignored."""

from __future__ import annotations

from mooring.live.line import Priority

#: What metrics call each kind of write.
KINDS = {
    Priority.BIND: "bind",
    Priority.EVICTION: "eviction",
    Priority.NOMINATION: "nomination",
    Priority.NORMAL: "other",
    Priority.CONDITION: "condition",
    Priority.EVENT: "event",
}


class WriteMetrics:
    """Every method may be overridden. The base measures nothing and keeps nothing."""

    def write_waits(self, kind: str, change: int) -> None:
        """So many more, or fewer, writes wait to be sent."""

    def write_waited(self, kind: str, seconds: float) -> None:
        """A write was sent, so long after it was asked for."""

    def write_superseded(self, kind: str) -> None:
        """A write was not sent, as a newer one says all that matters."""

    def write_dropped(self, kind: str, count: int = 1) -> None:
        """So many writes were not sent, or not taken, and are not tried again."""
