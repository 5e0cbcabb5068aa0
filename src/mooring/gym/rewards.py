"""Rewards: what changed from one choice to the next, in terms of the measures of `mooring.explain.measures`.

    placed          + the pods that were placed, as a share of all pods of the episode
    utilisation     + the change of the utilisation, mean over the resources
    fragmentation   - the change of the fragmentation, mean over the resources
    waiting         - the seconds that pods have waited, divided by the number of all pods

The sum of a reward over an episode is the measure at its end minus the measure at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.errors import ConfigError
from mooring.explain.measures import ResourceMeasures, Shapes, measure_amounts


@dataclass(frozen=True)
class Moment:
    """The cluster before a choice, or at the end."""

    at_s: float
    #: The number of pods of the episode, of those placed so far, and of those that wait now.
    pods: int
    placed: int
    pending: int
    #: The seconds that all pods together have waited so far.
    waited_s: float
    #: int64[resource, node], in the order of `shapes.resources`.
    allocatable: NDArray[np.int64] = field(repr=False)
    requested: NDArray[np.int64] = field(repr=False)
    #: The requests of the pods of the episode.
    shapes: Shapes = field(repr=False)

    @cached_property
    def resources(self) -> tuple[ResourceMeasures, ...]:
        return measure_amounts(self.allocatable, self.requested, self.shapes)

    @property
    def utilisation(self) -> float:
        """Mean over the resources that nodes have, 0..1."""
        return _mean([each.utilisation for each in self.resources])

    @property
    def fragmentation(self) -> float:
        """Mean over the resources that pods request, 0..1."""
        return _mean([each.fragmentation for each in self.resources])


#: From the moment before a choice and the moment before the next one.
Reward = Callable[[Moment, Moment], float]


def _placed(before: Moment, after: Moment) -> float:
    return (after.placed - before.placed) / max(after.pods, 1)


def _utilisation(before: Moment, after: Moment) -> float:
    return after.utilisation - before.utilisation


def _fragmentation(before: Moment, after: Moment) -> float:
    return before.fragmentation - after.fragmentation


def _waiting(before: Moment, after: Moment) -> float:
    return (before.waited_s - after.waited_s) / max(after.pods, 1)


REWARDS: dict[str, Reward] = {
    "placed": _placed,
    "utilisation": _utilisation,
    "fragmentation": _fragmentation,
    "waiting": _waiting,
}


def reward_of(chosen: str | Mapping[str, float] | Reward) -> Reward:
    """A reward by name, a weighted sum of several, or a function. Raises ConfigError."""
    if callable(chosen):
        return chosen
    weights = {chosen: 1.0} if isinstance(chosen, str) else dict(chosen)
    unknown = [name for name in weights if name not in REWARDS]
    if unknown or not weights:
        named = ", ".join(map(repr, unknown)) or "nothing"
        raise ConfigError([f"reward: must be one of {', '.join(REWARDS)}, not {named}"])
    terms = [(weight, REWARDS[name]) for name, weight in weights.items()]
    return lambda before, after: sum(weight * term(before, after) for weight, term in terms)


def _mean(shares: list[float | None]) -> float:
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else 0.0
