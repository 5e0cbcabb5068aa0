"""Waiting for what a real cluster will show sooner or later, with a limit to later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

#: On two busy cores, what takes a tenth of a second takes ten at times.
PATIENCE_S = 60.0

Answer = TypeVar("Answer")


def wait_for(
    look: Callable[[], Answer], what: str | Callable[[], str], *, within_s: float = PATIENCE_S
) -> Answer:
    """Look again and again until there is something to see, and return it; fail, saying what it was."""
    deadline = time.monotonic() + within_s
    while True:
        if seen := look():
            return seen
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"after {within_s:g} s, still not: {told}")
        time.sleep(0.05)


def hold_for(look: Callable[[], bool], what: str, *, seconds: float) -> None:
    """Look again and again for a time: it must hold each time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert look(), f"no longer: {what}"
        time.sleep(0.1)
