"""The server's side of a worker process: ask it without blocking, and end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from mooring.errors import MooringError
from mooring.web.messages import (
    HEADER,
    Answer,
    Cancel,
    Progress,
    Question,
    Refusal,
    framed,
)

OnProgress = Callable[[Progress], None]
_BUFFER = 1 << 20


class Refused(MooringError):
    """A worker could not answer; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Gone(MooringError):
    """The worker ended before it answered."""

    def __init__(self) -> None:
        super().__init__("the worker process ended before it answered; try again")


class Asked:
    """A question that waits for its answer."""

    def __init__(self, number: int, on_progress: OnProgress | None) -> None:
        self.number = number
        self.on_progress = on_progress
        self.reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class WorkerProcess:
    """Started by `start`, ended by `end` or with the server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked: dict[int, Asked] = {}
        self._count = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> WorkerProcess:
        # Workers need this process's path to find plugins next to the configuration. One BLAS thread is
        # enough, because several workers share the machine.
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "mooring.web.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=_BUFFER,
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        return not self._reading.done()

    def ask(self, name: str, *, on_progress: OnProgress | None = None, **arguments: Any) -> Asked:
        """`reply` raises Refused or Gone."""
        self._count += 1
        asked = Asked(self._count, on_progress)
        # Nothing may be waiting for the reply when the worker ends.
        asked.reply.add_done_callback(_look_at)
        if not self.alive:
            asked.reply.set_exception(Gone())
            return asked
        self._asked[asked.number] = asked
        self._send(Question(asked.number, name, arguments))
        return asked

    def cancel(self, asked: Asked) -> None:
        if self.alive:
            self._send(Cancel(asked.number))

    async def end(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        await self._reading

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(framed(message))

    async def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        try:
            while True:
                (length,) = HEADER.unpack(await pipe.readexactly(HEADER.size))
                self._take(pickle.loads(await pipe.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for asked in self._asked.values():
                if not asked.reply.done():
                    asked.reply.set_exception(Gone())
            self._asked.clear()

    def _take(self, message: object) -> None:
        match message:
            case Progress():
                asked = self._asked.get(message.number)
                if asked is not None and asked.on_progress is not None:
                    asked.on_progress(message)
            case Answer():
                self._settle(message.number, lambda reply: reply.set_result(message.value))
            case Refusal():
                self._settle(message.number, lambda reply: reply.set_exception(Refused(message)))

    def _settle(self, number: int, settle: Callable[[asyncio.Future[Any]], None]) -> None:
        asked = self._asked.pop(number, None)
        if asked is not None and not asked.reply.done():
            settle(asked.reply)


def _look_at(reply: asyncio.Future[Any]) -> None:
    if not reply.cancelled():
        reply.exception()
