"""DefaultPreemption: a pod that fits nowhere may evict pods of lower priority.

`plugin` has the steps in order. `candidates` tries one node at a time: the form to read.
`many_nodes` tries many at once, with the same results. `outcomes` has what was found by row, finds the
best, and `kept_outcomes` keeps it for the next pod that is alike. `budgets` counts what disruption budgets
allow, `agreement` asks the extenders, `choice` picks the node, `eviction` evicts the victims.
"""

from mooring.plugins.default_preemption.candidates import Candidate as Candidate
from mooring.plugins.default_preemption.choice import Cost as Cost
from mooring.plugins.default_preemption.choice import cost_of as cost_of
from mooring.plugins.default_preemption.plugin import DefaultPreemption as DefaultPreemption
from mooring.plugins.default_preemption.plugin import PreemptionDetail as PreemptionDetail
