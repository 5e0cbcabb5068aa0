"""What the framework and the scheduler report about themselves; by default to nobody."""

from __future__ import annotations


class Metrics:
    """Every method may be overridden. The base measures nothing and keeps nothing."""

    def timer(self) -> float:
        """Seconds of a clock that only durations are taken from."""
        return 0.0

    def plugin_duration(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One call of one plugin, in the attempts that are sampled."""

    def point_duration(self, point: str, status: str, profile: str, seconds: float) -> None:
        """All plugins of one extension point."""

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt ended: `scheduled`, `unschedulable` or `error`."""

    def permit_wait(self, result: str, seconds: float) -> None:
        """A pod stopped waiting on Permit."""
