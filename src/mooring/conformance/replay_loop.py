"""Virtual time for the replay of a run: what follows from an attempt ends before the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from mooring.errors import InvariantError
from mooring.scheduler.engine import Engine
from mooring.sim.clock import VirtualClock, VirtualLoop

#: When the queue starts: at a full second.
_EPOCH_S = 1_767_225_600.0
#: How far apart two moments are of which the clock says that no time passes between them.
_TICK_S = 1e-6


class ReplayLoop:
    """An event loop, its clock, and the work that a scheduler asks to have done beside its cycle."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(self._note_failure)
        self.clock = _TickingClock(self.loop, _EPOCH_S)
        self._failures: list[str] = []
        #: Work that is not begun.
        self._to_do: list[Coroutine[Any, Any, None]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._to_do.append(work)

    def settle(self) -> None:
        """All that follows from what was done comes to its end, as far as no time has to pass for it.

        An attempt asks for the eviction of its victims before it asks for its pod's status to be
        written. The status is written first, so what was asked for last is begun first.
        """
        self.loop.stops_when = _always
        self.loop.run_forever()
        while self._to_do:
            task = self.loop.create_task(self._to_do.pop())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self.loop.run_forever()
        self.loop.stops_when = None
        if self._failures:
            raise InvariantError("; ".join(self._failures))

    def run_until(self, time_s: float) -> None:
        self.loop.call_at(time_s, self.loop.stop)
        self.loop.run_forever()

    def close(self, scheduler: Engine) -> None:
        for work in self._to_do:
            work.close()
        for task in self._tasks:
            task.cancel()
        scheduler.close()
        if self._tasks:
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self.loop.close()

    def _note_failure(self, loop: object, context: dict[str, Any]) -> None:
        self._failures.append(f"{context['message']}: {context.get('exception')!r}")


class _TickingClock(VirtualClock):
    """Virtual time that tells apart what happens in one moment: whatever comes later is later."""

    def __init__(self, loop: VirtualLoop, epoch_s: float) -> None:
        super().__init__(loop, epoch_s)
        self._moment_s = -1.0
        self._ticks = 0

    def now(self) -> float:
        if self.elapsed_s != self._moment_s:
            self._moment_s, self._ticks = self.elapsed_s, 0
        self._ticks += 1
        return super().now() + self._ticks * _TICK_S


def _always() -> bool:
    return True
