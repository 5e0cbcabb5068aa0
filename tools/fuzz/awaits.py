"""Where a process can be killed: the awaits of `live/` and of the binding cycle that run in a world."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import mooring
from mooring.live.input_journal import _Steps

#: The page, credentials, shadow and snapshots are not part of what runs here.
_MODULES = (
    "live.bind_traffic",
    "live.claim_writer",
    "live.client",
    "live.driver",
    "live.event_recorder",
    "live.lane",
    "live.leader_election",
    "live.lease_store",
    "live.rate_limit",
    "live.reflector",
    "live.runner",
    "live.session",
    "live.status_patches",
    "live.stream",
    "live.watching",
    "live.writer",
    "scheduler.binding_cycle",
)

#: Functions that no world runs, and why.
_NOT_RUN = {
    "_through_proxy": "there is no proxy",
    "_watch_through_proxy": "there is no proxy",
    "_connect": "sockets are in memory",
    "_encrypted": "there is no TLS",
    "_until": "the election runs on the scheduler's loop, not in a thread",
    "end": "the election runs on the scheduler's loop, not in a thread",
    "_run": "the election runs on the scheduler's loop, not in a thread",
    "create": "there are no claims of extended resources",
    "set_extended_resource_claim": "there are no claims of extended resources",
    "delete": "there are no claims of extended resources",
    "make": "connections are those of the world",
    "_poll": "no kind is polled",
}

#: Awaits at which no task of a world can be suspended, as they are written, and why. `make fuzz` fails if a
#: task is seen to wait at one of them.
_CANNOT_WAIT = {
    "live.client:__aexit__": {"self._proxy_session.close()": "there is no proxy"},
    "live.client:_send": {"self._through_proxy(request, headers)": "there is no proxy"},
    "live.client:watch": {
        "self._watch_through_proxy(request, on_line, on_open)": "there is no proxy"
    },
    "live.lease_store:open_lease": {
        "ApiClient(await connect())": "a client opens and closes without waiting",
        "connect()": "to make a connection of the world takes no time",
    },
    "live.reflector:run": {"self._poll()": "no kind is polled"},
    "live.runner:run": {
        "Runner(options, config, connect).run()": "a world makes the runner itself",
        "self._ended": "it has ended, or the work has failed and raises before",
        "AsyncExitStack()": "everything is stopped before, by _shut_down",
    },
    "live.runner:_work": {
        "self._connect()": "to make a connection of the world takes no time",
        "stack.enter_async_context": "a session opens nothing before its first request",
    },
    "live.runner:_reach": {
        "ApiClient(connection, clock=self._clock)": "a client opens and closes without waiting"
    },
    "live.session:open_session": {
        "ApiClient(connection, limiter": "a client opens and closes without waiting",
        "session.stop()": "it was stopped before, by _shut_down",
    },
    "live.session:stop": {"self.writer.close()": "it was closed before, by _shut_down"},
    "scheduler.binding_cycle:_bind_by_extender": {
        "self._deps.on_bound_by_extender(pod, node_name)": "only simulations have it"
    },
}

#: `asyncio.timeout` itself suspends nobody; what stands within does.
_TIMEOUT = "asyncio.timeout("

_STEPS = _Steps.__await__.__code__

#: The function, and the first and the last line of the await.
Place = tuple[str, int, int]


def _awaits() -> Iterator[tuple[str, Place, str]]:
    """The name of each await, its place, and how it is written."""
    root = Path(mooring.__file__).parent
    for module in _MODULES:
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.AsyncFunctionDef) or function.name in _NOT_RUN:
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Await | ast.AsyncWith):
                    # The body of an `async with` is not its own await.
                    parts = (
                        [node.value]
                        if isinstance(node, ast.Await)
                        else [item.context_expr for item in node.items]
                    )
                    name = f"{module}:{function.name}:{node.lineno}"
                    last = parts[-1].end_lineno or node.lineno
                    place = (f"{module}:{function.name}", node.lineno, last)
                    yield name, place, ast.unparse(parts[0])


def why_not(function: str, written: str) -> str:
    """Why no task can wait there; empty if one can."""
    if written.startswith(_TIMEOUT):
        return "a timeout suspends nobody by itself"
    reasons = _CANNOT_WAIT.get(function, {})
    return next((why for text, why in reasons.items() if written.startswith(text)), "")


#: By name, `live.writer:_settle:162`: the awaits at which a task can wait.
POINTS: dict[str, Place] = {
    name: place for name, place, written in _awaits() if not why_not(place[0], written)
}
#: By name: the awaits at which none can, and why.
NEVER: dict[str, tuple[Place, str]] = {
    name: (place, why)
    for name, place, written in _awaits()
    if name not in POINTS and (why := why_not(place[0], written))
}


def stale_reasons() -> list[str]:
    """Reasons that are given for no await that there is."""
    written = [(place[0], text) for _, place, text in _awaits()]
    return [
        f"{function}: {text}"
        for function, reasons in _CANNOT_WAIT.items()
        for text in reasons
        if not any(at == function and each.startswith(text) for at, each in written)
    ]


def waited_wrongly(places: Iterable[str]) -> set[str]:
    """The awaits of `NEVER` at which a task has waited."""
    found = set()
    for place in places:
        function, _, line = place.rpartition(":")
        for name, ((expected, first, last), _) in NEVER.items():
            if function == expected and first <= int(line) <= last:
                found.add(name)
    return found


def reached_by(places: Iterable[str]) -> set[str]:
    """The points in which tasks waited at these places (`waits`)."""
    return {name for place in places for name in POINTS if is_at(place, name)}


def is_at(place: str, point: str) -> bool:
    function, _, line = place.rpartition(":")
    expected, first, last = POINTS[point]
    return function == expected and first <= int(line) <= last


def waits_at(task: asyncio.Task[Any], points: Iterable[str]) -> str | None:
    """The first of the points that the task waits at; None if it waits at none of them."""
    wanted = [(point, POINTS[point]) for point in points]
    for frame in _frames(task):
        name, line = frame.f_code.co_name, frame.f_lineno
        for point, (function, first, last) in wanted:
            if first <= line <= last and function.endswith(f":{name}"):
                module = frame.f_globals.get("__name__", "")
                if f"{module.removeprefix('mooring.')}:{name}" == function:
                    return point
    return None


def waits(task: asyncio.Task[Any]) -> list[str]:
    """`live.writer:_settle:162`: the lines of mooring that the task waits in, the outermost first."""
    found: list[str] = []
    for frame in _frames(task):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("mooring."):
            name = module.removeprefix("mooring.")
            found.append(f"{name}:{frame.f_code.co_name}:{frame.f_lineno}")
    return found


def _frames(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """Where the task waits, the outermost first."""
    waiting: Any = None if task.done() else task.get_coro()
    while waiting is not None:
        for kind in ("cr", "ag", "gi"):
            frame = getattr(waiting, f"{kind}_frame", None)
            if frame is not None:
                break
        else:
            return
        yield frame
        if frame.f_code is _STEPS:
            # The journal of inputs drives the work step by step.
            waiting = frame.f_locals["work"]
        else:
            waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)
