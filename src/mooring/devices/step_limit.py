"""A time-out for searches that counts steps: in a simulation, the clock stands still during a search."""

from __future__ import annotations

from collections.abc import Callable

#: How many steps of a search stand for a second. A step is a decision on a device, or 16 devices that are
#: passed. Python makes more than that in a second, so with a real clock, too, a search usually ends by its
#: steps, and at the same step in every run.
STEPS_PER_SECOND = 10_000


def after_steps_of(seconds: float) -> Callable[[], bool]:
    """For `Allocator.allocate`: whether more steps were made than stand for so many seconds."""
    left = int(seconds * STEPS_PER_SECOND)

    def expired() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return expired
