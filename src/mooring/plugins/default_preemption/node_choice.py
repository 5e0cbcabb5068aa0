"""Why preemption took one node and no other, in words.

The plugin compares its candidates by one thing after another until one is left; the first thing that set the
chosen node apart from the last of the others is the answer.
"""

from __future__ import annotations

from datetime import datetime

from mooring.plugins.default_preemption.choice import Cost, cost_of
from mooring.plugins.default_preemption.plugin import PreemptionDetail

#: What it means to be the best by each part of the plugin's cost.
_REASONS = {
    "violations": "fewest violations of disruption budgets",
    "highest_priority": "least important victims",
    "sum_of_priorities": "fewest and least important victims",
    "victims": "fewest victims",
    "minus_earliest_start_s": "victims that started last",
}


def why_that_node(detail: PreemptionDetail, now: datetime) -> str:
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
