"""Changes that may make a pod fit, for `suggest`. Plugins may add kinds of their own: see `Change`."""

from mooring.framework.changes import AddNodes as AddNodes
from mooring.framework.changes import Change as Change
from mooring.framework.changes import DeclareFeatures as DeclareFeatures
from mooring.framework.changes import DropHostPort as DropHostPort
from mooring.framework.changes import DropNodeAffinity as DropNodeAffinity
from mooring.framework.changes import DropNodeSelector as DropNodeSelector
from mooring.framework.changes import FreeRoom as FreeRoom
from mooring.framework.changes import LabelNode as LabelNode
from mooring.framework.changes import LowerRequest as LowerRequest
from mooring.framework.changes import RaiseMaxSkew as RaiseMaxSkew
from mooring.framework.changes import RemoveGates as RemoveGates
from mooring.framework.changes import SoftenPodAffinity as SoftenPodAffinity
from mooring.framework.changes import SoftenSpread as SoftenSpread
from mooring.framework.changes import Tolerate as Tolerate
from mooring.framework.changes import Uncordon as Uncordon
from mooring.framework.changes import requirement_text as requirement_text
from mooring.framework.changes import taint_text as taint_text
