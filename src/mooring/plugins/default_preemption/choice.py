"""Which of the nodes where preemption would help to take."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mooring.objects.pod import Pod
from mooring.plugins.default_preemption.candidates import Candidate

#: Added to every priority, so that more victims never cost less than fewer.
_PRIORITY_OFFSET = 2**31


def best(candidates: Iterable[Candidate], now: datetime) -> list[Candidate]:
    """The candidates that are equally good and better than all others, by name of their node."""
    costs = [(_cost(candidate, now), candidate) for candidate in candidates]
    if not costs:
        return []
    lowest = min(cost for cost, _ in costs)
    return sorted(
        (candidate for cost, candidate in costs if cost == lowest), key=lambda c: c.node_name
    )


def _cost(candidate: Candidate, now: datetime) -> tuple[int, int, int, int, float]:
    """What is compared, in this order; less is better."""
    victims = candidate.victims
    return (
        candidate.violations,
        victims[0].priority,
        sum(victim.priority + _PRIORITY_OFFSET for victim in victims),
        len(victims),
        # Of two nodes, the one whose most important victims have run for the shorter time.
        -_earliest_start(victims, now).timestamp(),
    )


def _earliest_start(victims: Iterable[Pod], now: datetime) -> datetime:
    """Of the victims of the highest priority; one that has not started would start now."""
    highest = max(victim.priority for victim in victims)
    return min(victim.status.start_time or now for victim in victims if victim.priority == highest)
