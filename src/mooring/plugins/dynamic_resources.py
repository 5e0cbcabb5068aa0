"""DynamicResources: devices that pods claim. Only pods without claims are supported yet.

The plugin also runs for pods without claims, which users can see: it adds a remark on claims to
every message about a pod that fits nowhere, and gives every node the score 0. It refuses pods with
claims, and nodes that would need devices of a class for an extended resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint
from mooring.framework.interface import Depends, Handle, NodeStatuses, PostFilterResult
from mooring.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from mooring.objects.devices import DeviceClass
from mooring.objects.pod import Pod
from mooring.objects.requests import is_extended

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
NOTHING_TO_DEALLOCATE = unschedulable("no new claims to deallocate")
STILL_NOT_SCHEDULABLE = unschedulable("still not schedulable")
NO_STATE = Status(Code.ERROR, ("not found",))
CANNOT_FIT = unresolvable("cannot fit resource")
NOT_SIGNABLE = unschedulable("pods with dra resource claims are not signable")

#: These texts are mooring's own: the reference would look for devices.
CLAIMS_UNSUPPORTED = unresolvable("mooring does not support resource claims (devices) yet")
DEVICES_UNSUPPORTED = unresolvable(
    "mooring does not support extended resources served by device classes yet"
)

_STATE = "DynamicResources"

_NODE_EVENTS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
_CLASS_EVENTS = Action.ADD | Action.UPDATE


@dataclass(frozen=True, slots=True)
class _Asked:
    """The state of PreFilter: the requested extended resources, if device classes serve any."""

    resources: tuple[str, ...] = ()


class DynamicResources:
    name = "DynamicResources"
    #: Device classes decide which resources devices serve.
    depends_on_kinds = (DeviceClass,)

    def __init__(self, args: object, handle: Handle) -> None:
        self._served = handle.cluster.device_classes

    def pre_enqueue(self, pod: Pod) -> Status:
        return CLAIMS_UNSUPPORTED if pod.spec.resource_claims else SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        state.write(_STATE, _Asked())
        if pod.spec.resource_claims:
            return CLAIMS_UNSUPPORTED
        if not self._served.serve_any_of(pod.requests):
            return SKIP
        asked = (name for name, amount in pod.requests.items() if amount > 0 and _is_counted(name))
        state.write(_STATE, _Asked(tuple(asked)))
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """A node that offers all requested resources itself needs no devices."""
        asked = state.read(_STATE, _Asked) or _Asked()
        offered = node.allocatable
        missing = [name for name in asked.resources if not offered.get(name, 0)]
        if any(name not in offered and name not in self._served for name in missing):
            return CANNOT_FIT
        return DEVICES_UNSUPPORTED if any(name in self._served for name in missing) else SUCCESS

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Without state, return an error, so that no other PostFilter runs, not even preemption.

        There is no state if an earlier PreFilter ended the attempt. The reference does the same.
        """
        asked = state.read(_STATE, _Asked)
        if asked is None:
            return None, NO_STATE
        return None, STILL_NOT_SCHEDULABLE if asked.resources else NOTHING_TO_DEALLOCATE

    def post_filter_repeats(self, pod: Pod) -> bool:
        """A pod without claims has none to deallocate."""
        return not pod.spec.resource_claims

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return np.zeros(len(columns.alive[rows]), np.int64)

    def depends_on(self, pod: Pod) -> Depends:
        served = pod.spec.resource_claims or self._served.serve_any_of(pod.requests)
        return Depends.CLUSTER if served else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return NOT_SIGNABLE if pod.spec.resource_claims else {}

    def events_to_register(self) -> Sequence[EventWithHint]:
        """No event helps a pod with claims. These help a pod whose resource devices would serve."""
        return (
            EventWithHint(ClusterEvent(EventResource.NODE, _NODE_EVENTS)),
            EventWithHint(ClusterEvent(EventResource.DEVICE_CLASS, _CLASS_EVENTS)),
        )


def _is_counted(resource: str) -> bool:
    """Whether devices can serve the resource: it is extended, or named after a device class."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_PREFIX)
