"""Virtual time with sockets in memory, and processes that can be killed between any two steps.

Every callback belongs to the process in whose context it was scheduled. A process that is killed runs no
callback any more: no `finally`, no cleanup. What it kept alive stays alive until the world ends, so that
Python does not close its coroutines in the middle of somebody else's step.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from mooring.sim.clock import VirtualLoop

#: How far the time moves whenever somebody looks at it, so that long work does not take no time at all.
_GRAIN_S = 2e-6


class Process(Protocol):
    """Whoever a callback belongs to."""

    tasks: list[asyncio.Task[Any]]
    signals: dict[int, Callable[[], object]]

    def step(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Run the callback, or not, if the process is dead."""
        ...


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("PROCESS", default=None)

#: The context of everything that is no process: network, API server, actors.
WORLD = contextvars.Context()


class Readable(Protocol):
    @property
    def readable(self) -> bool: ...


class FuzzLoop(VirtualLoop):
    """`add_reader` and signal handlers work; nothing else of the system is there."""

    def __init__(self) -> None:
        super().__init__()
        self._readers: dict[object, tuple[Callable[..., object], tuple[Any, ...], Any]] = {}
        #: Sockets that have something to read, in the order in which it came.
        self._with_data: dict[Readable, None] = {}
        self._is_over = False

    def time(self) -> float:
        self._now += _GRAIN_S
        return self._now

    # Callbacks belong to processes

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        context, callback, args = self._owned(callback, args, context)
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        context, callback, args = self._owned(callback, args, context)
        return super().call_at(when, callback, *args, context=context)

    def _owned(
        self, callback: Any, args: tuple[Any, ...], context: contextvars.Context | None
    ) -> tuple[contextvars.Context, Any, tuple[Any, ...]]:
        # A context without variables is false.
        context = contextvars.copy_context() if context is None else context
        owner = context.get(PROCESS)
        if owner is None:
            return context, callback, args
        return context, owner.step, (callback, args)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        owner = PROCESS.get() if context is None else context.get(PROCESS)
        task: asyncio.Task[Any] = super().create_task(coro, name=name, context=context)
        if owner is not None:
            owner.tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        raise NotImplementedError("there are no threads in virtual time")

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        owner = PROCESS.get()
        assert owner is not None
        owner.signals[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        owner = PROCESS.get()
        return owner is not None and owner.signals.pop(sig, None) is not None

    # Sockets

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self._readers[fd] = (callback, args, contextvars.copy_context())
        if fd.readable:
            self._with_data[fd] = None

    def remove_reader(self, fd: Any) -> bool:
        self._with_data.pop(fd, None)
        return self._readers.pop(fd, None) is not None

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        """A socket in memory can always be written, if not in one piece."""
        self.remove_writer(fd)
        fd.writer = self.call_soon(callback, *args)

    def remove_writer(self, fd: Any) -> bool:
        writer, fd.writer = fd.writer, None
        if writer is not None:
            writer.cancel()
        return writer is not None

    def has_data(self, sock: Readable) -> None:
        if sock in self._readers:
            self._with_data[sock] = None

    def select(self, timeout: float | None) -> list[object]:
        ready = [sock for sock in self._with_data if sock.readable and sock in self._readers]
        self._with_data = dict.fromkeys(ready)
        if not ready:
            super().select(timeout)
        return [self._readers[sock] for sock in ready]

    def _process_events(self, events: list[Any]) -> None:
        for callback, args, context in events:
            self.call_soon(callback, *args, context=context)
