"""The data that plugins pass from one extension point to the next within one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, cast

from mooring.objects.pod import Pod

#: A reserved key: the pods to activate, by `namespace/name`.
PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"

T = TypeVar("T")


class Clonable(Protocol):
    """A value that a dry run may change: each dry run works on a clone. Other values are shared."""

    def clone(self) -> Any: ...


class CycleState:
    """The data of one attempt, under keys that plugins choose."""

    __slots__ = (
        "_values",
        "_written",
        "parallel_pre_bind",
        "record_plugin_metrics",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
    )

    def __init__(self, *, record_plugin_metrics: bool = False) -> None:
        self._values: dict[str, object] = {PODS_TO_ACTIVATE: {}}
        #: Where what is written is noted as well.
        self._written: dict[str, object] | None = None
        #: Whether each plugin call of this attempt is timed.
        self.record_plugin_metrics = record_plugin_metrics
        #: Plugins whose PreFilter, PreScore or PreBindPreFlight returned Skip.
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()
        self.skip_pre_bind: frozenset[str] = frozenset()
        #: Plugins whose PreBind may run in parallel with others.
        self.parallel_pre_bind: frozenset[str] = frozenset()

    def write(self, key: str, value: object) -> None:
        self._values[key] = value
        if self._written is not None:
            self._written[key] = value

    def read(self, key: str, kind: type[T]) -> T | None:
        """The value under this key; None if there is none."""
        value = self._values.get(key)
        return value if isinstance(value, kind) else None

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    @property
    def pods_to_activate(self) -> dict[str, Pod]:
        return cast("dict[str, Pod]", self._values[PODS_TO_ACTIVATE])

    def values(self) -> dict[str, object]:
        """A copy of all values."""
        return dict(self._values)

    def note_writes(self, written: dict[str, object] | None) -> None:
        """From now on, note in this map what is written; None ends that."""
        self._written = written

    def take(self, values: Mapping[str, object]) -> None:
        """Add values of an earlier attempt for an equal pod; the values are shared."""
        self._values.update(values)

    def adopt(self, other: CycleState) -> None:
        """Add everything of an earlier attempt for an equal pod; the values are shared."""
        activate = self._values[PODS_TO_ACTIVATE]
        self._values.update(other._values)
        self._values[PODS_TO_ACTIVATE] = activate
        self.skip_filter = other.skip_filter
        self.skip_score = other.skip_score

    def clone(self) -> CycleState:
        other = CycleState(record_plugin_metrics=self.record_plugin_metrics)
        other._values = {
            # `isinstance` with the protocol takes ten times as long, and dry runs clone for every
            # node.
            key: cast(Clonable, value).clone() if hasattr(value, "clone") else value
            for key, value in self._values.items()
        }
        other.skip_filter = self.skip_filter
        other.skip_score = self.skip_score
        other.skip_pre_bind = self.skip_pre_bind
        other.parallel_pre_bind = self.parallel_pre_bind
        return other
