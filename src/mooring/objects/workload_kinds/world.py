"""The other objects of the input, which a workload may refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]


class World:
    """Objects as written, by group and kind, then by namespace and name."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[str, str], dict[tuple[str, str], Body]] = {}

    def add(self, group: str, kind: str, body: Body) -> None:
        metadata = body.get("metadata")
        if isinstance(metadata, Mapping):
            key = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
            self._bodies.setdefault((group, kind), {})[key] = body

    def find(self, group: str, kind: str, namespace: str, name: str) -> Body | None:
        """The object in this namespace, or one whose namespace is not written."""
        found = self._bodies.get((group, kind), {})
        return found.get((namespace, name)) or found.get(("", name))

    def all(self, group: str, kind: str, namespace: str) -> Iterator[Body]:
        for (where, _), body in sorted(self._bodies.get((group, kind), {}).items()):
            if where in ("", namespace):
                yield body
