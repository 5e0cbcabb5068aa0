"""Watching the calls of a plugin: how long each method takes, and whether it blocks.

Methods of the scheduling cycle must not wait: while one waits, nothing is scheduled. Python reports sleeping,
sockets, files and processes to an audit hook; other waiting shows as a thread that gave up the processor by
itself for a while.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from mooring.framework.events import EventWithHint
from mooring.runtime.promises import STANDS_FOR

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # Only Linux counts by thread.
    _COUNTS_SWITCHES = False
else:
    _COUNTS_SWITCHES = True

#: The methods that the scheduling cycle calls.
METHODS = (
    "pre_enqueue",
    "less",
    "pre_filter",
    "add_pod",
    "remove_pod",
    "filter",
    "filter_rows",
    "post_filter",
    "pre_score",
    "score",
    "score_rows",
    "normalize_scores",
    "reserve",
    "unreserve",
    "permit",
    "sign",
    "depends_on",
)

_WAITS = {
    "time.sleep": "sleeps",
    "open": "opens a file",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "socket.connect": "opens a connection",
    "socket.getaddrinfo": "looks up a host",
    "socket.gethostbyname": "looks up a host",
    "socket.sendto": "sends to a socket",
    "socket.bind": "opens a socket",
    "urllib.Request": "asks a URL",
}

#: A thread that gave up the processor by itself for this long was waiting. (Before Python 3.13, this is how
#: a sleep shows.)
_WAITED_S = 0.002
#: One such call may be the machine's fault.
_WAITS_SEEN = 3


@dataclass
class Spent:
    """What one method cost so far, in seconds of processor time of this thread."""

    calls: int = 0
    cpu_s: float = 0.0


@dataclass
class Watch:
    """What was seen of one plugin class."""

    #: Extension point → what its calls cost; hints are under `hint`.
    spent: dict[str, Spent] = field(default_factory=dict)
    #: Method and what it did that may block, each once.
    blocked: dict[tuple[str, str], None] = field(default_factory=dict)
    #: Method → how often it waited for something that no audit event told of.
    waited: dict[str, int] = field(default_factory=dict)
    #: What the first hint raised: the queue goes on, and tries the pod.
    hint_raised: Exception | None = None

    def problem(self) -> str | None:
        """The first way in which a method blocks."""
        for method, does in self.blocked:
            return f"{method} {does}"
        for method, count in self.waited.items():
            if count >= _WAITS_SEEN:
                return f"{method} waits: {count} calls gave up the processor for 2 ms or more"
        return None

    def reset(self) -> None:
        self.spent.clear()
        self.blocked.clear()
        self.waited.clear()
        self.hint_raised = None

    def call(self, method: str, function: Callable[..., Any], *args: Any) -> Any:
        outer = _CURRENT.copy()
        _CURRENT[:] = [(self, method)]
        switches, wall, cpu = _switches(), time.perf_counter(), time.thread_time()
        try:
            return function(*args)
        finally:
            cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
            _CURRENT[:] = outer
            spent = self.spent.get(method)
            if spent is None:
                spent = self.spent[method] = Spent()
            spent.calls += 1
            spent.cpu_s += cpu
            if wall - cpu > _WAITED_S and _switches() > switches:
                self.waited[method] = self.waited.get(method, 0) + 1


def watched(plugin: type, watch: Watch) -> type:
    """A subclass whose methods are watched. Everything else is as in the class."""
    _install_hook()
    body: dict[str, Any] = {
        method: _relay(method, getattr(plugin, method), watch)
        for method in METHODS
        if callable(getattr(plugin, method, None))
    }
    if callable(getattr(plugin, "events_to_register", None)):
        body["events_to_register"] = _hints_relay(plugin, watch)
    body[STANDS_FOR] = plugin
    body["__module__"] = plugin.__module__
    body["__qualname__"] = plugin.__qualname__
    return type(plugin.__name__, (plugin,), body)


def _relay(method: str, function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def relay(self: object, *args: Any) -> Any:
        return watch.call(method, function, self, *args)

    return relay


def _hints_relay(plugin: Any, watch: Watch) -> Callable[..., Any]:
    def events_to_register(self: object) -> list[EventWithHint]:
        return [_watched_hint(each, watch) for each in plugin.events_to_register(self)]

    return events_to_register


def _watched_hint(event: EventWithHint, watch: Watch) -> EventWithHint:
    hint = event.hint
    if hint is None:
        return event

    def watched_hint(*args: Any) -> Any:
        try:
            return watch.call("hint", hint, *args)
        except Exception as error:
            watch.hint_raised = watch.hint_raised or error
            raise

    return replace(event, hint=watched_hint)


#: The watch and the method that run, or nothing.
_CURRENT: list[tuple[Watch, str]] = []
_INSTALLED: list[bool] = []


def _install_hook() -> None:
    """Once: Python cannot take an audit hook away again. It does nothing unless a method is watched."""
    if not _INSTALLED:
        _INSTALLED.append(True)
        sys.addaudithook(_hear)


def _hear(event: str, args: tuple[object, ...]) -> None:
    if not _CURRENT or event not in _WAITS:
        return
    if event == "open" and _is_importing(sys._getframe(1)):
        return
    watch, method = _CURRENT[0]
    what = f" ({args[0]})" if args and isinstance(args[0], str | float | int) else ""
    watch.blocked[method, _WAITS[event] + what] = None


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _switches() -> int:
    """How often this thread gave up the processor by itself."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw if _COUNTS_SWITCHES else 0
