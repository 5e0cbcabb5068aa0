"""The structured allocator: which devices claims get on a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.refusals import Refusal
from mooring.devices.slice_index import SliceIndex
from mooring.errors import MooringError
from mooring.objects.devices import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.node import Node


class AllocationError(MooringError):
    """The claims cannot be allocated on any node: the attempt ends with this text."""


class NodeOnlyError(MooringError):
    """The claims cannot be allocated on this node; others may do."""


class AllocationTimeout(MooringError):
    """The search took too long."""


class Allocator:
    """Finds devices for claims, for one pod on many nodes. It changes none of what it is given."""

    def __init__(
        self,
        allocated: AllocatedDevices,
        classes: Mapping[str, DeviceClass],
        slices: SliceIndex | Sequence[ResourceSlice],
        *,
        new_share_id: Callable[[], str] | None = None,
    ) -> None: ...

    def allocate(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        expired: Callable[[], bool] | None = None,
        *,
        refusals: list[Refusal] | None = None,
    ) -> list[Allocation] | None:
        """The first solution, one allocation for each claim; None if there is none on this node.

        Raises AllocationError, NodeOnlyError or AllocationTimeout. With `refusals`, why devices were
        not taken is appended to that list.
        """
        raise NotImplementedError
