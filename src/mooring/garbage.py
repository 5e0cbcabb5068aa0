"""Garbage collection, held off while a great many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (200_000, 50, 50)


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Looking for cycles among objects that hold none took 60 % of the time at 5,000 nodes.

    Seldom and not never: a simulation may be long, and plugins may leave cycles.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
