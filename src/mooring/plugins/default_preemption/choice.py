"""Which of the nodes where preemption would help to take."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from mooring.objects.pod import Pod
from mooring.plugins.default_preemption.candidates import Candidate

#: Added to every priority, so that more victims never cost less than fewer.
_PRIORITY_OFFSET = 2**31


def best(candidates: Iterable[Candidate], now: datetime) -> list[Candidate]:
    """The candidates that are equally good and better than all others, by name of their node."""
    costs = [(cost_of(candidate, now), candidate) for candidate in candidates]
    if not costs:
        return []
    lowest = min(cost for cost, _ in costs)
    return sorted(
        (candidate for cost, candidate in costs if cost == lowest), key=lambda c: c.node_name
    )


class Cost(NamedTuple):
    """What is compared, in this order; less is better."""

    #: How many victims a disruption budget would not let go.
    violations: int
    highest_priority: int
    #: Each raised so that it is never below 0.
    sum_of_priorities: int
    victims: int
    #: Of two nodes, the one whose most important victims have run for the shorter time.
    minus_earliest_start_s: float


def cost_of(candidate: Candidate, now: datetime) -> Cost:
    victims = candidate.victims
    return Cost(
        candidate.violations,
        victims[0].priority,
        sum(victim.priority + _PRIORITY_OFFSET for victim in victims),
        len(victims),
        -_earliest_start(victims, now).timestamp(),
    )


def _earliest_start(victims: Iterable[Pod], now: datetime) -> datetime:
    """Of the victims of the highest priority; one that has not started would start now."""
    highest = max(victim.priority for victim in victims)
    return min(victim.status.start_time or now for victim in victims if victim.priority == highest)
