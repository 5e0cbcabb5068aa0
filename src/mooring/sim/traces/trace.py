"""A trace: the nodes of a cluster, and the pods that came to it with their times."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod and its times, in seconds since the trace began.

    arrives ──▶ placed ──▶ runs for `run_s` ──▶ gone
       └────────── gone at `leaves_s`, placed or not
    """

    pod: Pod
    arrives_s: float
    #: How long it runs once it has a node; None runs until it leaves, or for ever.
    run_s: float | None = None
    #: When it goes in any case; None never.
    leaves_s: float | None = None

    @property
    def ends_s(self) -> float:
        """When it is over if it is placed at once; its arrival if it never ends."""
        ends = [self.arrives_s + self.run_s] if self.run_s is not None else []
        ends += [self.leaves_s] if self.leaves_s is not None else []
        return max(self.arrives_s, min(ends, default=self.arrives_s))


@dataclass(frozen=True, slots=True)
class Trace:
    """What a reader makes of its files."""

    #: Where it came from, for people.
    name: str
    nodes: list[Node]
    #: By arrival; pods that arrive at one moment in the order of their file.
    pods: list[TracePod]
    #: What was assumed where the files do not say.
    notes: tuple[str, ...] = field(default=())

    @property
    def ends_s(self) -> float:
        return max((each.ends_s for each in self.pods), default=0.0)

    @property
    def last_arrival_s(self) -> float:
        return self.pods[-1].arrives_s if self.pods else 0.0

    def objects(self) -> list[KubeObject]:
        """All nodes and all pods at one moment, for commands that know no time."""
        return [*self.nodes, *(each.pod for each in self.pods)]
