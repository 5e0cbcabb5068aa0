"""Trimaran: scores by the measured load of nodes instead of what pods request.

The four plugins of scheduler-plugins, with their names and arguments. `sources` says where the load
comes from.
"""

from mooring_policies.trimaran.load_variation import (
    LoadVariationRiskBalancing as LoadVariationRiskBalancing,
)
from mooring_policies.trimaran.low_risk import LowRiskOverCommitment as LowRiskOverCommitment
from mooring_policies.trimaran.peaks import Peaks as Peaks
from mooring_policies.trimaran.target_load import TargetLoadPacking as TargetLoadPacking
