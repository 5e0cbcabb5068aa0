"""What the framework and the scheduler report about themselves. By default nothing receives it."""

from __future__ import annotations

from mooring.framework.metrics import PluginMetrics


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

    def algorithm_duration(self, seconds: float) -> None:
        """A node was looked for, from PreFilter to the pick."""

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt at a pod group ended; `waiting_on_preemption` is a result of its own."""

    def group_algorithm_duration(self, seconds: float) -> None:
        """Nodes were looked for, for all members of a group."""

    def permit_wait(self, result: str, seconds: float) -> None:
        """A pod stopped waiting on Permit."""

    def preemption_attempt(self) -> None:
        """Preemption was asked to make room for a pod."""

    def preemption_victims(self, count: int) -> None:
        """So many pods are to leave for one."""

    def evicted(self, result: str, seconds: float) -> None:
        """The victims of a preemption have been sent away: `success`, or `error` if not all were."""

    def evaluations_of(self, plugin: str, profile: str) -> dict[str, int]:
        """Where to count how often a plugin is called at each extension point."""
        return {}

    def show_plugin_metrics(self, metrics: PluginMetrics) -> None:
        """The metrics of the plugins themselves, which take the place of earlier ones."""
