"""Requests of the page that wait until a test lets them go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


class HeldRequests:
    def __init__(self, page: Page, pattern: str | re.Pattern[str]) -> None:
        self._page = page
        self._held: list[Route] = []
        page.route(pattern, self._hold)

    def first(self) -> Route:
        """Wait for the first one: it comes a moment after the page has asked."""
        while not self._held:
            # Playwright hands requests over while it waits for an answer.
            self._page.evaluate("() => null")
        return self._held[0]

    def let_go(self) -> None:
        for route in self._held:
            route.continue_()

    def _hold(self, route: Route) -> None:
        self._held.append(route)
