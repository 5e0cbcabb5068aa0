"""Logs for people (text) and for machines (one JSON object a line), by kube-scheduler's verbosity.

Verbosity 0 to 1 tells of what an operator must know, 2 to 3 what happens, 4 and more every detail; errors and
warnings are told at any verbosity.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

#: From this verbosity on, debug lines are told.
DETAILED = 4

#: The attributes that every record has; all others were added by the caller.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A line such as `{"ts":…,"level":"info","logger":…,"msg":…}`, and whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line.update((k, v) for k, v in vars(record).items() if k not in _OWN)
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextFormatter(logging.Formatter):
    """A line such as `2026-01-31T12:00:00.000Z info mooring.live: message key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        added = "".join(f" {k}={v}" for k, v in vars(record).items() if k not in _OWN)
        line = (
            f"{_time(record)} {record.levelname.lower():<8}"
            f"{record.name.removeprefix('mooring.')}: {record.getMessage()}{added}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def set_up(form: str, verbosity: int, stream: TextIO | None = None) -> None:
    """Send all logs of this process there, to standard error unless told otherwise."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for known in list(root.handlers):
        root.removeHandler(known)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("mooring").setLevel(logging.DEBUG if verbosity >= DETAILED else logging.INFO)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
