"""What a live scheduler was told can be told again: the same decisions are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.errors import InputError
from mooring.live.journal_replay import replay_journal
from tools.fuzz.scheduler import make_registry
from tools.fuzz.world import World


@pytest.mark.parametrize("seed", [1, 2, 8])
def test_a_journal_is_replayed_decision_for_decision(seed, tmp_path):
    """Whatever broke: writes that fail, answers that are lost, reloads, kills in the middle of a line."""
    result = World(seed, "safety", journals=tmp_path).run()

    replayed = [replay_journal(path, make_registry) for path in tmp_path.iterdir()]

    assert not result.violation
    assert all(each.same for each in replayed), replayed
    assert sum(each.decisions for each in replayed) > 20


@pytest.mark.parametrize("seed", [39, 104, 106, 110])
def test_tasks_within_a_binding_take_their_steps_in_the_same_order(seed, tmp_path):
    """Two PreBind plugins work at once (39), or a task of its own writes a claim (the others)."""
    World(seed, "safety", journals=tmp_path).run()

    replayed = [replay_journal(path, make_registry) for path in tmp_path.iterdir()]

    assert all(each.same for each in replayed), replayed
    assert sum(each.decisions for each in replayed) > 10


def test_a_decision_that_differs_is_told(tmp_path):
    World(1, "safety", journals=tmp_path).run()
    path = max(tmp_path.iterdir(), key=lambda each: each.stat().st_size)
    text = path.read_text()
    at = text.index('["decided"')
    line = text[at : text.index("\n", at)]
    path.write_text(text.replace(line, line[: line.rindex(",")] + ',"elsewhere"]', 1))

    replayed = replay_journal(path, make_registry)

    assert not replayed.same
    assert "elsewhere" in replayed.difference


@pytest.mark.parametrize(
    "text", ["", "{}\n", '{"mooringJournal":99,"config":{},"seed":0,"time":0}\n']
)
def test_what_is_no_journal_is_refused(text, tmp_path):
    path = tmp_path / "journal"
    path.write_text(text)

    with pytest.raises(InputError):
        replay_journal(Path(path), make_registry)
