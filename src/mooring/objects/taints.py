"""Taints of nodes, and the tolerations of pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mooring.objects.meta import Part

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Part, frozen=True):
    """A node's taint: it refuses or discourages pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def refuses(self) -> bool:
        """Whether the taint keeps a pod off the node; PreferNoSchedule only discourages it."""
        return self.effect in ("NoSchedule", "NoExecute")


class Toleration(Part, frozen=True):
    """A pod's toleration of taints; an empty key or effect matches every key or effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """The operators `Lt` and `Gt` never match: their feature gate is off."""
        return (
            self.effect in ("", taint.effect)
            and self.key in ("", taint.key)
            and (
                self.operator == "Exists"
                or (self.operator in ("", "Equal") and self.value == taint.value)
            )
        )


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that keeps a pod with these tolerations away, if there is one."""
    for taint in taints:
        if taint.refuses and not tolerated(taint, tolerations):
            return taint
    return None
