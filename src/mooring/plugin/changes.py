"""Changes that may make a pod fit, for `suggest`. Plugins may add kinds of their own: see `Change`."""

from mooring.framework.changes import Change as Change
from mooring.framework.changes import requirement_text as requirement_text
from mooring.framework.changes import taint_text as taint_text
from mooring.framework.node_changes import AddNodes as AddNodes
from mooring.framework.node_changes import DeclareFeatures as DeclareFeatures
from mooring.framework.node_changes import FreeRoom as FreeRoom
from mooring.framework.node_changes import LabelNode as LabelNode
from mooring.framework.node_changes import Uncordon as Uncordon
from mooring.framework.pod_changes import DropHostPort as DropHostPort
from mooring.framework.pod_changes import DropNodeAffinity as DropNodeAffinity
from mooring.framework.pod_changes import DropNodeSelector as DropNodeSelector
from mooring.framework.pod_changes import LowerRequest as LowerRequest
from mooring.framework.pod_changes import RaiseMaxSkew as RaiseMaxSkew
from mooring.framework.pod_changes import RemoveGates as RemoveGates
from mooring.framework.pod_changes import SoftenPodAffinity as SoftenPodAffinity
from mooring.framework.pod_changes import SoftenSpread as SoftenSpread
from mooring.framework.pod_changes import Tolerate as Tolerate
