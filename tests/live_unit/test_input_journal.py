"""What a journal says is an input, and which tasks it follows."""

from __future__ import annotations

import asyncio
import json

from mooring.config import default_config
from mooring.live.clock import WallClock
from mooring.live.input_journal import (
    InputJournal,
    JournalFile,
    RecentInputs,
    Record,
    follow_inner_tasks,
)
from mooring.queue.saved_queue import SavedQueue
from mooring.scheduler.engine import Saved
from tests.makers import make_pod


class _Clock:
    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:
        self.time_s += 1.0
        return self.time_s


def _begun(tmp_path) -> InputJournal:
    journal = InputJournal(JournalFile(tmp_path / "journal"), _Clock())
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
    journal.store.close()

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
    journal.store.close()

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
    journal.store.close()

    assert [number for what, _, number in _records(tmp_path) if what == Record.STEP] == [1]


def test_recent_inputs_are_written_when_they_are_wanted_and_once(tmp_path):
    """A process with an error in every attempt must not fill the disk."""
    store = RecentInputs(tmp_path, "mooring")
    journal = InputJournal(store, _Clock())
    journal.begin(default_config(), 0)
    journal.note(Record.ATTEMPT)
    assert list(tmp_path.iterdir()) == []

    path = store.save()
    journal.note(Record.ATTEMPT)

    assert store.save() == path
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o077 == 0, "nobody else reads what pods are named"
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["mooringJournal"] == 2
    assert [record[0] for record in records] == [Record.ATTEMPT]


def test_recent_inputs_are_bounded(tmp_path):
    """They begin again when nothing is being bound; if that does not come, they are dropped until it does."""
    store = RecentInputs(tmp_path, "mooring", most=10)
    journal = InputJournal(store, _Clock())
    journal.begin(default_config(), 0)
    kept = []

    for _ in range(100):
        journal.note(Record.ATTEMPT)
        store.flush()
        kept.append(len(store._records))

    assert max(kept) <= 41
    assert journal.may_begin
    assert store.save() is None
    journal.begin(default_config(), 0)
    journal.note(Record.ATTEMPT)
    assert store.save() is not None


def test_a_journal_of_a_large_cluster_begins_again_less_often(tmp_path):
    """To begin again takes time for each object."""
    store = RecentInputs(tmp_path, "mooring", most=10)
    journal = InputJournal(store, _Clock())
    pods = [make_pod(f"pod-{number}") for number in range(800)]
    saved = Saved(pods, SavedQueue(), [], 0)
    journal.begin(default_config(), 0, saved)

    for _ in range(100):
        journal.note(Record.ATTEMPT)

    assert not journal.may_begin


def test_a_folder_that_cannot_be_written_is_told_and_ends_nothing(tmp_path, caplog):
    store = RecentInputs(tmp_path / "missing", "mooring")
    journal = InputJournal(store, _Clock())
    journal.begin(default_config(), 0)

    assert store.save() is None
    assert "cannot be written" in caplog.text


def test_a_journal_begins_again_only_when_no_timer_is_set(tmp_path):
    """A timer of before would go off with a number that means nothing."""
    store = RecentInputs(tmp_path, "mooring", most=0)

    async def run() -> None:
        journal = InputJournal(store, WallClock())
        journal.begin(default_config(), 0)
        journal.note(Record.ATTEMPT)
        timer = journal.clock(WallClock()).call_later(60, lambda: None)
        assert not journal.may_begin
        timer.cancel()
        assert journal.may_begin

    asyncio.run(run())
