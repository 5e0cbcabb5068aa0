"""Codes for repeated values: each distinct value is stored once and referenced by number."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)


@dataclass(slots=True)
class Codes(Generic[H]):
    """Numbers each distinct value, from 0."""

    _numbers: dict[H, int] = field(default_factory=dict)

    def code(self, value: H) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[H]:
        return list(self._numbers)
