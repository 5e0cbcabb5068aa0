"""Gang: pods of a group start together or not at all. The smallest one that works.

A pod says which gang it is in, and how many pods make it whole:

    metadata: {labels: {gang: training, gang-size: "3"}}
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.pod import Pod
from mooring.plugin import SUCCESS, CycleState, Handle, Status, wait


class Gang:
    name = "Gang"

    def __init__(self, args: Mapping[str, float] | None, handle: Handle) -> None:
        self.handle = handle
        self.timeout_s = (args or {}).get("timeoutSeconds", 60.0)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float] | Status:
        gang, size = pod.labels.get("gang"), int(pod.labels.get("gang-size", "1"))
        if gang is None:
            return SUCCESS
        mates = [w for w in self.handle.waiting_pods() if _same_gang(w.pod, pod)]
        if len(mates) + 1 < size:
            return wait(f"{len(mates) + 1} of {size} pods of the gang have a node"), self.timeout_s
        for mate in mates:
            mate.allow(self.name)
        return SUCCESS


def _same_gang(a: Pod, b: Pod) -> bool:
    return a.namespace == b.namespace and a.labels.get("gang") == b.labels.get("gang")
