"""Where a process can be killed: the awaits of `live/` and of the binding cycle that run in a world."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mooring

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
    if task.done():
        return None
    wanted = [(point, POINTS[point]) for point in points]
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is None:
            return None
        name, line = frame.f_code.co_name, frame.f_lineno
        for point, (function, first, last) in wanted:
            if first <= line <= last and function.endswith(f":{name}"):
                module = frame.f_globals.get("__name__", "")
                if f"{module.removeprefix('mooring.')}:{name}" == function:
                    return point
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return None


def waits(task: asyncio.Task[Any]) -> list[str]:
    """`live.writer:_settle:162`: the lines of mooring that the task waits in, the outermost first."""
    found: list[str] = []
    if task.done():
        return found
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is None:
            break
        module = frame.f_globals.get("__name__", "")
        if module.startswith("mooring."):
            name = module.removeprefix("mooring.")
            found.append(f"{name}:{frame.f_code.co_name}:{frame.f_lineno}")
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return found
