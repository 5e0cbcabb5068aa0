"""Why preemption chose a node, in words.

The plugin compares candidates by one criterion after another until one is left. The criterion that
decides against the last other candidate is the reason.
"""

from __future__ import annotations

from datetime import datetime

from mooring.plugins.default_preemption.choice import Cost, cost_of
from mooring.plugins.default_preemption.plugin import PreemptionDetail

#: Criterion → why the best candidate is better.
_REASONS = {
    "violations": "fewest violations of disruption budgets",
    "highest_priority": "least important victims",
    "sum_of_priorities": "fewest and least important victims",
    "victims": "fewest victims",
    "minus_earliest_start_s": "victims that started last",
}


def reason_for_node(detail: PreemptionDetail, now: datetime) -> str:
    costs = {name: cost_of(each, now) for name, each in detail.candidates.items()}
    taken = costs.pop(detail.nominated_node)
    others = list(costs.values())
    if not others:
        return "the only node where evicting pods makes room"
    for i, part in enumerate(Cost._fields):
        equal = [cost for cost in others if cost[i] == taken[i]]
        if not equal:
            return f"{_REASONS[part]}, of {len(detail.candidates)} nodes that could make room"
        others = equal
    return f"first by name of {len(others) + 1} equally good nodes"
