"""One attempt to place one pod, from the queue to its end.

    SEARCHING ──▶ ASSUMED ──▶ BINDING ──▶ BOUND
        │            │           │
        └────────────┴───────────┴──────▶ FAILED

`scheduling_cycle` leads it to BINDING, `binding_cycle` to BOUND. `failure` leads it to FAILED from any phase,
and undoes what the attempt has done until then.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from mooring.framework.cycle_state import CycleState
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework


class Phase(Enum):
    """How far an attempt has come."""

    #: A node is looked for.
    SEARCHING = auto()
    #: The pod counts on its node; Reserve and Permit run. No other pod is tried meanwhile.
    ASSUMED = auto()
    #: The binding cycle runs, beside the attempts at other pods.
    BINDING = auto()
    BOUND = auto()
    FAILED = auto()


class Attempt(msgspec.Struct, eq=False):
    framework: Framework
    queued: QueuedPodInfo
    #: The pod as it was popped; once it is assumed, with its node.
    pod: Pod
    state: CycleState
    #: By the timer of the metrics.
    started: float
    phase: Phase = Phase.SEARCHING

    @property
    def node_name(self) -> str:
        """The node that the pod is assumed on."""
        return self.pod.node_name
