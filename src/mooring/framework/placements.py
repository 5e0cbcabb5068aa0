"""Placements: sets of nodes to which a pod group may go as a whole.

A PlacementGenerate plugin proposes placements, the group is tried in each of them, and PlacementScore
plugins choose among those where it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.framework.status import Status
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """The group that is being scheduled, as plugins see it."""

    namespace: str
    name: str
    #: The pods to place, in the order in which they are tried.
    unscheduled: tuple[Pod, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Some nodes, by name; all of them if `nodes` is None."""

    name: str
    nodes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PodGroupAssignments:
    """Where the pods of a group would go within one placement."""

    placement: Placement
    #: The nodes of the placement.
    nodes: Sequence[NodeInfo]
    #: UID of a pod → (pod, name of its node).
    proposed: Mapping[str, tuple[Pod, str]]


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    def generate_placements(
        self, group: PodGroupInfo, snapshot: Snapshot
    ) -> Sequence[Placement] | Status:
        """The placements to try, in this order. A profile has at most one such plugin."""
        ...


@runtime_checkable
class PlacementScorePlugin(Protocol):
    def score_placement(
        self, group: PodGroupInfo, assignments: PodGroupAssignments
    ) -> int | Status: ...


@runtime_checkable
class NormalizePlacementsPlugin(Protocol):
    def normalize_placement_scores(
        self, group: PodGroupInfo, scores: Sequence[int]
    ) -> Sequence[int] | Status:
        """The scores scaled to 0..100."""
        ...


@runtime_checkable
class PlacementBoundsPlugin(Protocol):
    def placement_score_bounds(
        self, group: PodGroupInfo, placements: Sequence[Placement], snapshot: Snapshot
    ) -> Sequence[int] | None:
        """The most that each placement can score, after normalizing, before the group is tried there.

        With this, placements that cannot be the best are not tried. None if it cannot be said.
        """
        ...
