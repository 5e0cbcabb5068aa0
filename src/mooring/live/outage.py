"""An API server that does not answer: one log line when it begins, and one when it is over.

A dozen watches notice it at the same moment, and each tries again every few seconds. Their own messages are
logged at the level of debugging.
"""

from __future__ import annotations

import logging

from mooring.framework.clock import Clock

_LOG = logging.getLogger(__name__)


class Outage:
    """Shared by everyone who watches one API server."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        #: When it began; None while the API server answers.
        self._since: float | None = None

    def noticed(self, problem: object) -> None:
        if self._since is None:
            self._since = self._clock.now()
            _LOG.warning(
                "the API server at %s does not answer: %s; trying again until it does",
                self._server,
                problem,
            )

    def answered(self) -> None:
        if self._since is not None:
            lasted_s = max(0.0, self._clock.now() - self._since)
            self._since = None
            _LOG.info("the API server at %s answers again, after %.1f s", self._server, lasted_s)
