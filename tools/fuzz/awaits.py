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

#: Proxies, TLS, TCP, the thread of the election and claims of extended resources are not part of the world.
_NOT_RUN = {
    "_through_proxy",
    "_watch_through_proxy",
    "_connect",
    "_encrypted",
    "_until",
    "end",
    "_run",
    "create",
    "set_extended_resource_claim",
    "delete",
    "make",
}


_STEPS = _Steps.__await__.__code__


def _points() -> Iterator[tuple[str, tuple[str, int, int]]]:
    root = Path(mooring.__file__).parent
    for module in _MODULES:
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.AsyncFunctionDef) and function.name not in _NOT_RUN:
                for node in ast.walk(function):
                    if isinstance(node, ast.Await | ast.AsyncWith):
                        # The body of an `async with` is not its own await.
                        end = (
                            node.items[-1].context_expr if isinstance(node, ast.AsyncWith) else node
                        )
                        name = f"{module}:{function.name}:{node.lineno}"
                        last = end.end_lineno or node.lineno
                        yield name, (f"{module}:{function.name}", node.lineno, last)


#: By name, `live.writer:_settle:162`: the function, and the first and the last line of the await.
POINTS: dict[str, tuple[str, int, int]] = dict(_points())


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
