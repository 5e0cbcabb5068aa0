"""The loop that makes the attempts goes on, whatever an attempt ends with."""

from __future__ import annotations

import asyncio

import pytest

from mooring.scheduler.drive_loop import DriveLoop


@pytest.mark.parametrize(
    "error", [ValueError(), asyncio.CancelledError(), GeneratorExit()], ids=repr
)
async def test_an_attempt_that_raises_ends_no_later_one(error):
    attempts: list[str] = []

    def attempt() -> bool:
        attempts.append("made")
        if len(attempts) == 1:
            raise error
        return False

    loop = asyncio.get_running_loop()
    told: list[object] = []
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    drive = DriveLoop(loop, attempt=attempt)
    drive.wake()
    await asyncio.sleep(0)

    drive.wake()
    await asyncio.sleep(0)

    assert (attempts, told) == (["made", "made"], [error])
