"""Keys that are forgotten after a time."""

from __future__ import annotations

from mooring.plugin import Clock


class ExpiringKeys:
    """A set of keys, each with a time to live."""

    def __init__(self, clock: Clock, default_s: float) -> None:
        self._clock = clock
        #: For keys that are added with no time to live.
        self._default_s = default_s
        #: Key → when it is forgotten.
        self._until: dict[str, float] = {}

    def __contains__(self, key: str) -> bool:
        until = self._until.get(key)
        if until is None:
            return False
        if self._clock.now() > until:
            del self._until[key]
            return False
        return True

    def add(self, key: str, seconds: float) -> None:
        """A key that is there already keeps its time."""
        if key not in self:
            self._until[key] = self._clock.now() + (seconds or self._default_s)

    def discard(self, key: str) -> None:
        self._until.pop(key, None)
