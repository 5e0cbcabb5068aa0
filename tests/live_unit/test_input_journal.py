"""What a journal says is an input, and which tasks it follows."""

from __future__ import annotations

import asyncio
import json

from mooring.config import default_config
from mooring.live.input_journal import InputJournal, Record, follow_inner_tasks, how_to_replay


class _Clock:
    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:
        self.time_s += 1.0
        return self.time_s


def _begun(tmp_path) -> InputJournal:
    journal = InputJournal(tmp_path / "journal", _Clock())
    journal.begin(default_config(), 0)
    return journal


def _records(tmp_path) -> list[list[object]]:
    return [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()[1:]]


def test_a_decision_is_made_at_the_time_of_its_attempt(tmp_path):
    """Otherwise the backoff of a refused pod begins later than in the replay."""
    journal = _begun(tmp_path)

    journal.note(Record.ATTEMPT)
    tried_at = journal.now
    journal.note(Record.DECIDED, "uid-1", 1, "")
    journal.close()

    assert journal.now == tried_at


def test_the_steps_of_tasks_within_a_task_are_in_the_journal(tmp_path):
    journal = _begun(tmp_path)

    async def plugin() -> str:
        await asyncio.sleep(0)
        return "done"

    async def binding() -> None:
        assert await asyncio.gather(plugin(), plugin()) == ["done", "done"]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        follow_inner_tasks(loop, journal)
        await asyncio.gather(loop.create_task(journal.task(binding())), plugin())

    asyncio.run(run())
    journal.close()

    steps = [number for what, _, number in _records(tmp_path) if what == Record.STEP]
    assert steps == [1, 2, 3, 2, 3, 1]


def test_a_task_that_writes_an_event_starts_is_not_the_engines(tmp_path):
    journal = _begun(tmp_path)
    sent = []

    class Recorder:
        claims = None

        def record_event(self, event) -> None:
            sent.append(asyncio.get_running_loop().create_task(asyncio.sleep(0)))

    async def binding() -> None:
        journal.writer(Recorder()).record_event(None)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        follow_inner_tasks(loop, journal)
        await loop.create_task(journal.task(binding()))
        await asyncio.gather(*sent)

    asyncio.run(run())
    journal.close()

    assert [number for what, _, number in _records(tmp_path) if what == Record.STEP] == [1]


def test_an_internal_error_names_the_file_or_the_option_that_was_missing(tmp_path):
    journal = _begun(tmp_path)
    journal.close()

    assert how_to_replay(journal) == f"run it again with: mooring replay {tmp_path / 'journal'}"
    assert "mooring run --journal FILE" in how_to_replay(None)
