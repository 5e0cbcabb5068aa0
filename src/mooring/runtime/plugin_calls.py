"""A plugin's methods, looked up once, and the guard around every call to one.

A plugin is somebody else's code: whatever it raises becomes a PluginFailure that names the plugin and the
extension point, fails the attempt of one pod, and stops there.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends
from mooring.framework.status import Code, Status, failure
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.runtime.metrics import Metrics

_LOG = logging.getLogger(__name__)

#: The methods by which a plugin takes part at a point; having any one of them is enough.
METHODS: dict[Point, tuple[str, ...]] = {
    Point.PRE_ENQUEUE: ("pre_enqueue",),
    Point.QUEUE_SORT: ("less",),
    Point.PRE_FILTER: ("pre_filter",),
    Point.FILTER: ("filter", "filter_rows"),
    Point.POST_FILTER: ("post_filter",),
    Point.PRE_SCORE: ("pre_score",),
    Point.SCORE: ("score", "score_rows"),
    Point.RESERVE: ("reserve", "unreserve"),
    Point.PERMIT: ("permit",),
    Point.PRE_BIND: ("pre_bind",),
    Point.BIND: ("bind",),
    Point.POST_BIND: ("post_bind",),
}


def points_of(plugin: object) -> frozenset[Point]:
    """Where a plugin takes part."""
    return frozenset(
        point
        for point, methods in METHODS.items()
        if any(callable(getattr(plugin, method, None)) for method in methods)
    )


class PluginFailure(MooringError):
    """A plugin raised, or said what it may not say at that point."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(text)
        self.plugin = plugin

    def as_status(self) -> Status:
        return failure(self).by(self.plugin)


class Calls:
    """One plugin as the runtime calls it; a method it does not have is None."""

    def __init__(self, name: str, plugin: object, metrics: Metrics) -> None:
        #: What it calls itself, which is how users meet it in messages.
        self.name = name
        self.plugin = plugin
        self.metrics = metrics
        #: Extension point → how often it was called there.
        self.evaluations: dict[str, int] = {}
        self.pre_enqueue = _method(plugin, "pre_enqueue")
        self.less = _method(plugin, "less")
        self.pre_filter = _method(plugin, "pre_filter")
        self.add_pod = _method(plugin, "add_pod")
        self.remove_pod = _method(plugin, "remove_pod")
        self.filter = _method(plugin, "filter")
        self.filter_rows = _method(plugin, "filter_rows")
        self.post_filter = _method(plugin, "post_filter")
        self.post_filter_repeats = _method(plugin, "post_filter_repeats")
        self.pre_score = _method(plugin, "pre_score")
        self.score = _method(plugin, "score")
        self.score_rows = _method(plugin, "score_rows")
        self.normalize_scores = _method(plugin, "normalize_scores")
        self.reserve = _method(plugin, "reserve")
        self.unreserve = _method(plugin, "unreserve")
        self.permit = _method(plugin, "permit")
        self.pre_bind_pre_flight = _method(plugin, "pre_bind_pre_flight")
        self.pre_bind = _method(plugin, "pre_bind")
        self.bind = _method(plugin, "bind")
        self.post_bind = _method(plugin, "post_bind")
        self.events_to_register = _method(plugin, "events_to_register")
        self.sign = _method(plugin, "sign")
        self.depends_on = _method(plugin, "depends_on")
        self.close = _method(plugin, "close")
        #: Kinds of objects that `depends_on` and `sign` look at.
        self.depends_on_kinds: tuple[type[KubeObject], ...] = getattr(
            plugin, "depends_on_kinds", ()
        )

    def depends(self, pod: Pod) -> Depends:
        """What the answers about a pod depend on. A plugin that does not say so may look at anything."""
        if self.depends_on is None:
            return Depends.CLUSTER
        try:
            depends: Depends = self.depends_on(pod)
        except Exception:
            _LOG.exception(
                "plugin %s cannot say what its answers about pod %s depend on", self.name, pod.key
            )
            return Depends.CLUSTER
        return depends

    def guard(self, point: str, doing: str, state: CycleState) -> _Guard:
        """Turn what a call raises into a PluginFailure; count it, and time it if this attempt is."""
        counts = self.evaluations
        counts[point] = counts.get(point, 0) + 1
        return _Guard(self, point, doing, state.record_plugin_metrics)

    def failed(self, doing: str, error: BaseException) -> PluginFailure:
        return PluginFailure(self.name, f"{doing.format(name=self.name)}: {describe(error)}")


class _Guard:
    """Around one call. A generator-based context manager would cost three times as much."""

    __slots__ = ("_call", "_doing", "_point", "_started", "_timed")

    def __init__(self, call: Calls, point: str, doing: str, timed: bool) -> None:
        self._call = call
        self._point = point
        self._doing = doing
        self._timed = timed
        self._started = 0.0

    def __enter__(self) -> None:
        if self._timed:
            self._started = self._call.metrics.timer()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if self._timed:
            metrics = self._call.metrics
            code = Code.SUCCESS if error is None else Code.ERROR
            spent_s = metrics.timer() - self._started
            metrics.plugin_duration(self._call.name, self._point, code.title, spent_s)
        if isinstance(error, Exception):
            raise self._call.failed(self._doing, error) from error


def unexpected(status: Status) -> MooringError:
    """A status that the extension point has no use for."""
    if status.error is not None:
        return MooringError(status.message)
    return MooringError(status.message or f"status {status.code.title} is not allowed here")


def describe(error: BaseException) -> str:
    """What a plugin's exception says, with its type unless it is one raised on purpose."""
    if isinstance(error, MooringError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def settle(result: Any) -> Any:
    """The result of a method that may be a coroutine."""
    return await result if inspect.isawaitable(result) else result


def _method(plugin: object, name: str) -> Callable[..., Any] | None:
    method = getattr(plugin, name, None)
    return method if callable(method) else None
