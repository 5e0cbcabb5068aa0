"""Why preemption took one node and no other, in words.

The plugin compares its candidates by one thing after another until one is left; the first thing that set the
chosen node apart from the last of the others is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mooring.plugins.default_preemption import Candidate, PreemptionDetail

#: What is compared, in the plugin's order; less is better.
Criterion = tuple[str, Callable[[Candidate, datetime], float]]


def why_that_node(detail: PreemptionDetail, now: datetime) -> str:
    taken = detail.candidates[detail.nominated_node]
    others = [each for each in detail.candidates.values() if each is not taken]
    if not others:
        return "the only node where evicting pods makes room"
    for reason, cost in _CRITERIA:
        equal = [each for each in others if cost(each, now) == cost(taken, now)]
        if not equal:
            return f"{reason}, of {len(detail.candidates)} nodes that could make room"
        others = equal
    return f"first by name of {len(others) + 1} equally good nodes"


def _violations(candidate: Candidate, now: datetime) -> float:
    return candidate.violations


def _highest_priority(candidate: Candidate, now: datetime) -> float:
    return candidate.victims[0].priority


def _sum_of_priorities(candidate: Candidate, now: datetime) -> float:
    return sum(victim.priority + 2**31 for victim in candidate.victims)


def _victims(candidate: Candidate, now: datetime) -> float:
    return len(candidate.victims)


def _running_since(candidate: Candidate, now: datetime) -> float:
    highest = max(victim.priority for victim in candidate.victims)
    starts = (v.status.start_time or now for v in candidate.victims if v.priority == highest)
    return -min(starts).timestamp()


_CRITERIA: tuple[Criterion, ...] = (
    ("fewest violations of disruption budgets", _violations),
    ("least important victims", _highest_priority),
    ("fewest and least important victims", _sum_of_priorities),
    ("fewest victims", _victims),
    ("victims that started last", _running_since),
)
