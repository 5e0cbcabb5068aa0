"""Taints on nodes, and the tolerations with which pods run beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mooring.objects.meta import Part

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Part, frozen=True):
    """A node's wish to be left alone, unless tolerated."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def refuses(self) -> bool:
        """Whether an untolerated taint keeps a pod off the node, and not merely discourages it."""
        return self.effect in ("NoSchedule", "NoExecute")


class Toleration(Part, frozen=True):
    """A pod's leave to run beside a taint; an empty key or effect matches every one."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """The comparison operators `Lt` and `Gt` sit behind a gate that is off: they never match."""
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
