"""The choice among the nodes where preemption helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from mooring.objects.pod import Pod
from mooring.plugins.default_preemption.candidates import Candidate

#: Added to every priority, so that more victims never cost less.
PRIORITY_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class Best:
    """The best candidates, which are equally good."""

    #: The first by node name.
    first: Candidate
    #: The names of all of them, in order. Hundreds can be equal, and few preemptions are explained.
    names: Callable[[], tuple[str, ...]]


def best(candidates: Iterable[Candidate], now: datetime) -> list[Candidate]:
    """The best candidates, which are equally good, by node name."""
    costs = [(cost_of(candidate, now), candidate) for candidate in candidates]
    if not costs:
        return []
    lowest = min(cost for cost, _ in costs)
    return sorted(
        (candidate for cost, candidate in costs if cost == lowest), key=lambda c: c.node_name
    )


class Cost(NamedTuple):
    """The criteria, in this order; less is better."""

    #: How many evictions violate a disruption budget.
    violations: int
    highest_priority: int
    #: Each priority is raised so that it is never negative.
    sum_of_priorities: int
    victims: int
    #: Prefer the node whose most important victims started last.
    minus_earliest_start_s: float


def cost_of(candidate: Candidate, now: datetime) -> Cost:
    victims = candidate.victims
    return Cost(
        candidate.violations,
        victims[0].priority,
        sum(victim.priority + PRIORITY_OFFSET for victim in victims),
        len(victims),
        -_earliest_start(victims, now).timestamp(),
    )


def _earliest_start(victims: Iterable[Pod], now: datetime) -> datetime:
    """The earliest start of the victims with the highest priority; `now` if not started."""
    highest = max(victim.priority for victim in victims)
    return min(victim.status.start_time or now for victim in victims if victim.priority == highest)
