"""What plugins are asked: about one pod, with the state of its attempt, in the cluster as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.objects.pod import Pod


@dataclass(slots=True)
class Question:
    state: CycleState
    pod: Pod
    snapshot: Snapshot

    @property
    def size(self) -> int:
        """How many rows there are, free ones included."""
        return self.snapshot.columns.size
