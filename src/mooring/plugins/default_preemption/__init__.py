"""DefaultPreemption: a pod that fits nowhere takes the place of pods that matter less.

`plugin` tells the story. The steps, in its order: `candidates` tries the nodes one at a time and is the
form to read; `many_nodes` tries many at once and says the same; `budgets` counts what disruption budgets
allow; `agreement` asks the extenders; `choice` picks the node; `eviction` sends the victims away.
"""

from mooring.plugins.default_preemption.candidates import Candidate as Candidate
from mooring.plugins.default_preemption.choice import Cost as Cost
from mooring.plugins.default_preemption.choice import cost_of as cost_of
from mooring.plugins.default_preemption.plugin import DefaultPreemption as DefaultPreemption
from mooring.plugins.default_preemption.plugin import PreemptionDetail as PreemptionDetail
