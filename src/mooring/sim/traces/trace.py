"""A trace: the nodes of a cluster, and its pods with their times."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod and its times, in seconds since the start of the trace.

    arrives ──▶ placed ──▶ runs for `run_s` ──▶ gone
       └────────── gone at `leaves_s`, placed or not
    """

    pod: Pod
    arrives_s: float
    #: How long it runs once it has a node; with None, it runs until it leaves, or forever.
    run_s: float | None = None
    #: When it is deleted, with or without a node; None means never.
    leaves_s: float | None = None

    @property
    def ends_s(self) -> float:
        """When it ends if it is placed at once; its arrival if it never ends."""
        ends = [self.arrives_s + self.run_s] if self.run_s is not None else []
        ends += [self.leaves_s] if self.leaves_s is not None else []
        return max(self.arrives_s, min(ends, default=self.arrives_s))


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that has been read."""

    #: The file, for messages.
    name: str
    nodes: list[Node]
    #: In the order of arrival; pods that arrive at the same time are in the order of the file.
    pods: list[TracePod]
    #: The assumptions that the reader made.
    notes: tuple[str, ...] = field(default=())

    @property
    def ends_s(self) -> float:
        return max((each.ends_s for each in self.pods), default=0.0)

    @property
    def last_arrival_s(self) -> float:
        return self.pods[-1].arrives_s if self.pods else 0.0

    def objects(self) -> list[KubeObject]:
        """All nodes and all pods, for commands that do not use times."""
        return [*self.nodes, *(each.pod for each in self.pods)]
