"""Refusals: a pod that fits nowhere is not looked at again for its twin while nothing changes.

A backlog is mostly made of twins, and they are tried one after another in one and the same cluster. What
was found out for the first of them, PostFilter's answer included, is then true of all the others. One
change of any node, placed pod or listed object, and everything is found out afresh.

Plugins that do not say what they depend on may look at anything, a clock or a web service among it: in a
profile that has one at the points concerned, nothing is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.cluster.cache import Cluster
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.runtime import Framework
from mooring.framework.status import Status
from mooring.objects.pod import Pod

if TYPE_CHECKING:
    from mooring.scheduler.scheduling_cycle import Decision

#: How many makes of pods are remembered; the one that was refused first is forgotten first.
MOST_REFUSALS = 256

_POINTS = (Point.PRE_FILTER, Point.FILTER, Point.POST_FILTER)

#: Positions in the logs of changes and the generation of the listed objects.
_World = tuple[int, int, int]
_Make = tuple[str, str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class _Refusal:
    decision: Decision
    world: _World
    #: What the attempt came to once PostFilter had had its say; None as long as it has not.
    conclusion: Status | None = None


class Refusals:
    """Those of one profile."""

    def __init__(self, framework: Framework, cluster: Cluster) -> None:
        self._framework = framework
        self._cluster = cluster
        self._refusals: dict[_Make, _Refusal] = {}
        self._may_remember = all(
            call.depends_on is not None for point in _POINTS for call in framework.points[point]
        )

    def recall(self, pod: Pod) -> tuple[Decision, Status | None] | None:
        """What was decided about a twin of this pod, and what came of it, if it still holds."""
        known = self._refusals.get(_make(pod))
        if (
            known is None
            or known.world != self._world()
            or self._framework.nominator.has_any
            or not _are_twins(known.decision.pod, pod)
        ):
            return None
        return known.decision, known.conclusion

    def keep(self, decision: Decision) -> None:
        """A decision by which a pod fits nowhere."""
        pod = decision.pod
        if not self._may_remember or self._framework.nominator.has_any or not _is_ordinary(pod):
            return
        make = _make(pod)
        self._refusals.pop(make, None)
        if len(self._refusals) >= MOST_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[make] = _Refusal(decision, self._world())

    def conclude(self, decision: Decision, conclusion: Status) -> None:
        """PostFilter did not help: what the pod is told is what its twins are to be told."""
        known = self._refusals.get(_make(decision.pod))
        if known is not None and known.decision is decision:
            known.conclusion = conclusion

    def _world(self) -> _World:
        cluster = self._cluster
        return (
            cluster.node_changes.position,
            cluster.usage_changes.position,
            cluster.listers.generation,
        )


def _make(pod: Pod) -> _Make:
    owner = pod.metadata.controller
    return pod.namespace, owner.uid if owner is not None else "", pod.label_items


def _are_twins(one: Pod, other: Pod) -> bool:
    """Whether nothing that a plugin may look at tells two pods of one make apart."""
    return (
        _is_ordinary(other)
        and one.spec == other.spec
        and one.metadata.annotations == other.metadata.annotations
    )


def _is_ordinary(pod: Pod) -> bool:
    """Without a node that is held for it, and without claims: some are found by the pod's own name."""
    return not (
        pod.nominated_node_name
        or pod.spec.resource_claims
        or any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None
            for volume in pod.spec.volumes
        )
    )
