"""Why devices were not taken: recorded only when somebody asks, so that a decision pays nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mooring.devices.allocated import DeviceID, PoolID

Reason = Literal[
    "in use",
    "taken by this pod",
    "selector",
    "node",
    "capacity",
    "counters",
    "taint",
    "constraint",
    "feature gate",
]


@dataclass(frozen=True, slots=True)
class DeviceRefusal:
    """A device that a request did not get. In a search with backtracking it may get it later."""

    #: `namespace/name` of the claim.
    claim: str
    #: `request` or `request/subrequest`.
    request: str
    device: DeviceID
    reason: Reason
    #: What exactly: the claims that use it, the selector, the taint, the capacity, or the constraint.
    detail: str


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """A pool that no device is taken from on this node."""

    pool: PoolID
    #: `incomplete`, or what makes the pool invalid.
    reason: str


Refusal = DeviceRefusal | PoolRefusal
