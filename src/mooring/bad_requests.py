"""Requests that are no HTTP, in the log: one line, at level debug, instead of a traceback for each.

Every client that reaches a port can send them, as often as it likes.
"""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError


def log_bad_requests_briefly() -> None:
    """For all servers of this process."""
    logging.getLogger("aiohttp.server").addFilter(_brief)


def _brief(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        record.msg, record.args = f"{record.getMessage()}: {first[:200]}", ()
        record.exc_info, record.exc_text = None, None
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)
    return True
