"""Means and spread of measures over the seeds of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.sweep.results import Line

#: Shown if the user names no measures: those that the sweep has, and not all of which are 0.
_USUAL = (
    "placed",
    "pending",
    "utilisation.cpu",
    "utilisation.memory",
    "utilisation.mooring.dev/gpu-milli",
    "fragmentation.cpu",
    "fragmentation.mooring.dev/gpu-milli",
    "waiting_mean_s",
)
_MOST_USUAL = 6


@dataclass(frozen=True, slots=True)
class Statistic:
    """One measure of one configuration, input and load, over the seeds."""

    count: int
    mean: float
    #: The standard deviation of a sample; None for a single seed.
    deviation: float | None
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that differ only in their seeds."""

    config: str
    input: str
    load: float | None
    #: By measure; measures without a value are missing.
    statistics: dict[str, Statistic]


def groups_of(lines: Iterable[Line]) -> list[Group]:
    """In the order of the lines; failed cells do not count."""
    values: dict[tuple[str, str, float | None], dict[str, list[float]]] = {}
    for line in lines:
        found = values.setdefault((line.config, line.input, line.load), {})
        for name, value in line.measures.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return [
        Group(*key, {name: statistic(each) for name, each in found.items()})
        for key, found in values.items()
    ]


def statistic(values: Sequence[float]) -> Statistic:
    array = np.array(values, np.float64)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else None
    return Statistic(
        len(array), float(array.mean()), deviation, float(array.min()), float(array.max())
    )


def measure_names(lines: Iterable[Line]) -> list[str]:
    """All measures of the lines, in their order."""
    return list(dict.fromkeys(name for line in lines for name in line.measures))


def usual_measures(lines: Sequence[Line]) -> list[str]:
    known = {
        name for line in lines for name, value in line.measures.items() if value not in (None, 0)
    }
    return [name for name in _USUAL if name in known][:_MOST_USUAL]
