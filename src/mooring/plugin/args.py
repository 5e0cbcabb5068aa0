"""The arguments of the built-in plugins, as configurations have them, for plugins that extend these."""

from mooring.config.args import CPU_AND_MEMORY as CPU_AND_MEMORY
from mooring.config.args import LEAST_ALLOCATED as LEAST_ALLOCATED
from mooring.config.args import MOST_ALLOCATED as MOST_ALLOCATED
from mooring.config.args import REQUESTED_TO_CAPACITY_RATIO as REQUESTED_TO_CAPACITY_RATIO
from mooring.config.args import SYSTEM_DEFAULTING as SYSTEM_DEFAULTING
from mooring.config.args import DefaultPreemptionArgs as DefaultPreemptionArgs
from mooring.config.args import DynamicResourcesArgs as DynamicResourcesArgs
from mooring.config.args import InterPodAffinityArgs as InterPodAffinityArgs
from mooring.config.args import NodeAffinityArgs as NodeAffinityArgs
from mooring.config.args import (
    NodeResourcesBalancedAllocationArgs as NodeResourcesBalancedAllocationArgs,
)
from mooring.config.args import NodeResourcesFitArgs as NodeResourcesFitArgs
from mooring.config.args import PodTopologySpreadArgs as PodTopologySpreadArgs
from mooring.config.args import ResourceSpec as ResourceSpec
from mooring.config.args import ScoringStrategy as ScoringStrategy
from mooring.config.args import UtilizationShapePoint as UtilizationShapePoint
from mooring.config.args import VolumeBindingArgs as VolumeBindingArgs
