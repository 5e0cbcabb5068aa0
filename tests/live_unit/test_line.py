"""Whose turn it is."""

from __future__ import annotations

import asyncio

from mooring.live.line import Line, Priority


async def test_the_more_important_goes_first_and_equals_in_order():
    line: Line[None] = Line()
    turns = {
        name: line.join(priority)
        for name, priority in (
            ("event", Priority.EVENT),
            ("condition", Priority.CONDITION),
            ("nomination", Priority.NOMINATION),
            ("eviction", Priority.EVICTION),
            ("first bind", Priority.BIND),
            ("second bind", Priority.BIND),
        )
    }
    names = {turn: name for name, turn in turns.items()}

    order = [names[line.next()] for _ in turns]

    assert order == ["first bind", "second bind", "eviction", "nomination", "condition", "event"]
    assert line.next() is None
    assert not line


async def test_a_stream_of_binds_does_not_starve_an_event():
    line: Line[None] = Line()
    event = line.join(Priority.EVENT)
    for _ in range(50):
        line.join(Priority.BIND)

    taken = [line.next() for _ in range(50)]

    assert event in taken


async def test_who_gave_up_is_passed_over():
    line: Line[None] = Line()
    gave_up, waits = line.join(Priority.BIND), line.join(Priority.EVENT)
    gave_up.cancel()

    assert line
    assert line.next() is waits
    assert not line
    await asyncio.sleep(0)
