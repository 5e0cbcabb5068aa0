"""What a live scheduler was told can be told again: the same decisions are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.errors import InputError, InvariantError
from mooring.live.input_journal import JournalFile, RecentInputs
from mooring.live.journal_replay import replay_journal
from mooring.plugins.priority_sort import PrioritySort
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.registry import Registry
from tools.fuzz.scheduler import MayHold, make_registry
from tools.fuzz.world import World

pytestmark = pytest.mark.long


def _in_files(folder: Path):
    """So small that some journals go on in a second file."""
    return lambda name: JournalFile(folder / name, limit_bytes=20_000)


class _Kept(RecentInputs):
    """Written at the end, as if there had been an error."""

    def close(self) -> None:
        self.save()
        super().close()


@pytest.mark.parametrize("seed", [1, 18])
def test_a_journal_is_replayed_decision_for_decision(seed, tmp_path):
    """Whatever broke: writes that fail, answers that are lost, reloads, kills in the middle of a line."""
    result = World(seed, "safety", make_journal=_in_files(tmp_path)).run()

    replayed = [replay_journal(path, make_registry) for path in tmp_path.iterdir()]

    assert not result.violation
    assert all(each.same for each in replayed), replayed
    assert sum(each.decisions for each in replayed) > 20


def test_tasks_within_a_binding_take_their_steps_in_the_same_order(tmp_path):
    """Two PreBind plugins work at once (39), a claim is waited for in vain (32), or a task of its own
    writes a claim (the others).
    """
    for seed in (32, 39, 104, 106, 110):
        folder = tmp_path / str(seed)
        folder.mkdir()
        World(seed, "safety", make_journal=_in_files(folder)).run()

    replayed = [replay_journal(path, make_registry) for path in tmp_path.glob("*/*")]

    assert all(each.same for each in replayed), replayed
    assert sum(each.decisions for each in replayed) > 60


@pytest.mark.parametrize("mode", ["safety", "liveness"])
def test_the_latest_inputs_are_replayed_from_the_middle(mode, tmp_path):
    """From what was known and what waited when they began, while the running engine went on as it was."""
    for seed in (2, 8, 18, 22):
        # A plugin that remembers which pods it held does not remember it in the replay.
        World(
            seed,
            mode,
            without=["permit"],
            make_journal=lambda name: _Kept(tmp_path, name, most=60),
        ).run()

    replayed = [replay_journal(path, make_registry) for path in tmp_path.iterdir()]

    assert all(each.same for each in replayed), replayed
    assert sum(each.decisions for each in replayed) > 30
    begun_again = ['"saved":{' in path.read_text()[:20_000] for path in tmp_path.iterdir()]
    assert sum(begun_again) >= 3


@pytest.mark.parametrize("error", [RuntimeError, InvariantError])
def test_an_internal_error_leaves_a_file_in_which_it_happens_again(error, tmp_path, caplog):
    """Without any option: an error that the process survives, and one that ends it."""

    class Broken(PrioritySort):
        def __init__(self, args, handle) -> None:
            pass

        def sort_key(self, queued):
            if int(queued.pod.name.rpartition("-")[2]) > 20:
                raise error("no pod after 20")
            return super().sort_key(queued)

    def broken() -> Registry:
        made = {**BUILT_IN, "MayHold": MayHold, "PrioritySort": Broken}
        return Registry(made, installed={})

    def recent(name: str) -> RecentInputs:
        return RecentInputs(tmp_path, name, most=60)

    result = World(1, "liveness", without=["permit"], make_journal=recent, registry=broken).run()

    assert "no pod after 20" in result.violation
    (path,) = tmp_path.iterdir()
    replayed = replay_journal(path, broken)
    assert "no pod after 20" in replayed.recorded_error
    assert replayed.error == replayed.recorded_error
    assert replayed.same, replayed


def test_a_decision_that_differs_is_told(tmp_path):
    World(1, "safety", make_journal=_in_files(tmp_path)).run()
    path = max(tmp_path.iterdir(), key=lambda each: each.stat().st_size)
    text = path.read_text()
    at = text.index('["decided"')
    line = text[at : text.index("\n", at)]
    path.write_text(text.replace(line, line[: line.rindex(",")] + ',"elsewhere"]', 1))

    replayed = replay_journal(path, make_registry)

    assert not replayed.same
    assert "elsewhere" in replayed.difference


@pytest.mark.parametrize(
    "text", ["", "{}\n", '{"mooringJournal":1,"config":{},"seed":0,"time":0}\n']
)
def test_what_is_no_journal_is_refused(text, tmp_path):
    path = tmp_path / "journal"
    path.write_text(text)

    with pytest.raises(InputError):
        replay_journal(Path(path), make_registry)
