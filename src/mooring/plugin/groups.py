"""Pod groups: their state, and the placements that are tried for a group as a whole."""

from mooring.cluster.pod_groups import NoGroupError as NoGroupError
from mooring.cluster.pod_groups import PodGroupState as PodGroupState
from mooring.cluster.pod_groups import PodGroupStates as PodGroupStates
from mooring.framework.placements import NormalizePlacementsPlugin as NormalizePlacementsPlugin
from mooring.framework.placements import Placement as Placement
from mooring.framework.placements import PlacementBoundsPlugin as PlacementBoundsPlugin
from mooring.framework.placements import PlacementGeneratePlugin as PlacementGeneratePlugin
from mooring.framework.placements import PlacementScorePlugin as PlacementScorePlugin
from mooring.framework.placements import PodGroupAssignments as PodGroupAssignments
from mooring.framework.placements import PodGroupInfo as PodGroupInfo
