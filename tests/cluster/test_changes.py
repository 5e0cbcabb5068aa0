"""Which rows changed since."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.changes import _LONGEST, ChangeLog, Generations, RowChanges


def test_nothing_has_changed_since_now():
    log = ChangeLog()
    log.note(3)

    assert log.since(log.position) == []


def test_each_row_is_told_once_in_the_order_of_its_first_change():
    log = ChangeLog()
    log.note(9)
    position = log.position
    for row in (2, 5, 2, 1, 5):
        log.note(row)

    assert log.since(position) == [2, 5, 1]
    assert log.since(0) == [9, 2, 5, 1]


def test_a_position_that_was_cut_off_means_that_anything_may_have_changed():
    log = ChangeLog()
    log.note(1)
    kept = log.position
    for _ in range(_LONGEST):
        log.note(7)

    assert log.since(0) is None
    assert log.since(kept) is None
    assert log.since(log.position - 1) == [7]
    assert log.position == _LONGEST + 1


@given(
    before=st.lists(st.integers(0, 5)),
    after=st.lists(st.integers(0, 5)),
)
def test_what_changed_since_a_position_is_what_was_noted_since(before, after):
    log = ChangeLog()
    for row in before:
        log.note(row)
    position = log.position
    for row in after:
        log.note(row)

    assert set(log.since(position)) == set(after)


@given(
    before=st.lists(
        st.tuples(st.sampled_from(["pod", "sums", "node", "object"]), st.integers(0, 5))
    ),
    after=st.lists(
        st.tuples(st.sampled_from(["pod", "sums", "node", "object"]), st.integers(0, 5))
    ),
)
def test_one_generation_says_where_to_go_on_in_every_log_of_a_cluster(before, after):
    generations = Generations()
    changes = RowChanges(generations)
    note = {
        "pod": changes.note_pod,
        "sums": changes.note_sums,
        "node": changes.note_node,
        "object": lambda _: generations.next(),
    }
    for what, row in before:
        note[what](row)
    generation = generations.latest
    for what, row in after:
        note[what](row)

    rows = {what: {row for each, row in after if each == what} for what in note}
    assert set(changes.nodes.since(generation)) == rows["node"]
    assert set(changes.sums.since(generation)) == rows["node"] | rows["sums"]
    assert set(changes.pods.since(generation)) == rows["node"] | rows["sums"] | rows["pod"]
