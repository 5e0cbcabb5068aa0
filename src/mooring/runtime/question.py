"""What plugins are asked: about one pod, with the state of its attempt, in the cluster as it is now."""

from __future__ import annotations

from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.objects.pod import Pod


class Question:
    """Asked once per attempt, and handed from one extension point to the next."""

    __slots__ = ("pod", "position", "size", "snapshot", "state")

    def __init__(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        self.state = state
        self.pod = pod
        self.snapshot = snapshot
        #: How many rows there are, free ones included.
        self.size = snapshot.columns.size
        #: Where the log of changes was when PreFilter ran: what follows is true as long as it stays there.
        self.position = 0
