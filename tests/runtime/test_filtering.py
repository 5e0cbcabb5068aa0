"""Who refuses what: the matrix of all Filters over all nodes."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS, Code, pending, unresolvable, unschedulable
from mooring.framework.verdicts import RowVerdicts, by_mask, by_table
from mooring.runtime.filtering import NOT_ASKED, PASSED
from mooring.runtime.plugin_calls import PluginFailure
from tests.makers import make_pod
from tests.runtime.frameworks import (
    framework_of,
    make_plugin,
    run_filters,
    snapshot_of,
)

POD = make_pod("p")

NODES = snapshot_of("a", "b", "c", "d")
EVERY = np.ones(4, np.bool_)


def refuses(name, status, *nodes):
    return make_plugin(name, filter=lambda state, pod, node: status if node.name in nodes else None)


def run(*plugins, looked_at=EVERY):
    return run_filters(framework_of(*plugins), CycleState(), POD, NODES, looked_at)


def test_the_first_plugin_that_refuses_a_node_is_the_one_to_blame():
    matrix = run(refuses("A", unschedulable("x"), "b"), refuses("B", unresolvable("y"), "b", "c"))

    assert matrix.plugins == ["A", "B"]
    assert matrix.refused_by.tolist() == [PASSED, 0, 1, PASSED]
    assert [matrix.status(row) for row in range(4)] == [
        SUCCESS,
        unschedulable("x").by("A"),
        unresolvable("y").by("B"),
        SUCCESS,
    ]
    assert matrix.feasible.tolist() == [True, False, False, True]


def test_a_node_that_is_refused_is_not_shown_to_later_plugins():
    seen = []

    def look(state, pod, node):
        seen.append(node.name)

    run(refuses("A", unschedulable("x"), "b", "d"), make_plugin("B", filter=look))

    assert seen == ["a", "c"]


def test_nodes_that_are_not_looked_at_are_neither_feasible_nor_refused():
    matrix = run(
        refuses("A", unschedulable("x"), "a", "b"),
        looked_at=np.array([True, False, False, True]),
    )

    assert matrix.refused_by.tolist() == [0, NOT_ASKED, NOT_ASKED, PASSED]
    assert list(matrix.refusals()) == [(unschedulable("x").by("A"), 1)]


def test_refusals_are_counted_by_status():
    matrix = run(
        refuses("A", unschedulable("x"), "a", "b"),
        refuses("B", pending("y"), "c"),
    )
    matrix.refuse({3: unschedulable("for a nominated pod").by("C")})

    assert list(matrix.refusals()) == [
        (unschedulable("x").by("A"), 2),
        (pending("y").by("B"), 1),
        (unschedulable("for a nominated pod").by("C"), 1),
    ]
    assert matrix.status(3) == unschedulable("for a nominated pod").by("C")


def test_rows_that_are_forgotten_were_never_looked_at():
    matrix = run(refuses("A", unschedulable("x"), "a"))
    matrix.refuse({1: unschedulable("for a nominated pod")})

    matrix.forget(np.array([0, 1, 2]))

    assert matrix.refused_by.tolist() == [NOT_ASKED, NOT_ASKED, NOT_ASKED, PASSED]
    assert list(matrix.refusals()) == []


@pytest.mark.parametrize("codes", [(Code.UNSCHEDULABLE,), (Code.PENDING, Code.UNRESOLVABLE), ()])
def test_rows_are_found_by_the_code_of_their_status(codes):
    matrix = run(refuses("A", unschedulable("x"), "a"), refuses("B", unresolvable("y"), "b"))
    matrix.refuse({2: pending("for a nominated pod")})

    found = matrix.rows_with(codes)

    assert found.tolist() == [matrix.status(row).code in codes for row in range(4)]


def table(name, *codes):
    statuses = [SUCCESS, unschedulable("x"), unresolvable("y")]
    given = np.array(codes)
    return make_plugin(
        name, filter_rows=lambda s, p, columns, rows: by_table(given[rows], statuses)
    )


def test_verdicts_on_all_rows_at_once_are_those_on_each_node():
    at_once = table("A", 0, 1, 2, 0)
    one_by_one = make_plugin(
        "A",
        filter=lambda state, pod, node: {
            "b": unschedulable("x"),
            "c": unresolvable("y"),
        }.get(node.name),
    )

    first, second = run(at_once), run(one_by_one)

    assert [first.status(row) for row in range(4)] == [second.status(row) for row in range(4)]
    framework = framework_of(at_once)
    for row in range(4):
        status = framework.filter_node(CycleState(), POD, NODES.at(row), NODES)
        assert status == first.status(row)


def test_a_mask_gives_one_reason_for_all_rows_that_do_not_pass():
    verdicts = by_mask(np.array([True, False]), unschedulable("x"))

    assert [verdicts.status(0), verdicts.status(1)] == [SUCCESS, unschedulable("x")]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(RowVerdicts(np.zeros(3, np.int8), lambda _: SUCCESS), id="too few rows"),
        pytest.param(None, id="nothing"),
    ],
)
def test_a_plugin_that_does_not_judge_each_row_fails_the_attempt(answer):
    with pytest.raises(PluginFailure, match='running "X" filter plugin: '):
        run(make_plugin(filter_rows=answer))


def test_one_node_is_asked_about_plugin_by_plugin_until_one_refuses():
    seen = []
    plugins = [
        refuses("A", unschedulable("x"), "b"),
        make_plugin("B", filter=lambda state, pod, node: seen.append(node.name)),
    ]
    framework = framework_of(*plugins)

    def judge(row):
        return framework.filter_node(CycleState(), POD, NODES.at(row), NODES)

    assert judge(0) == SUCCESS
    assert judge(1) == unschedulable("x").by("A")
    assert seen == ["a"]


@pytest.mark.parametrize(
    ("codes", "decode", "says"),
    [
        pytest.param(
            [1, 1, 1, 1], {}.__getitem__, "KeyError: 1", id="a code that stands for nothing"
        ),
        pytest.param([1, 1, 1, 1], str, "a value of type str", id="a code that stands for text"),
        pytest.param([1, 1, 1, 1], lambda _: SUCCESS, "stands for Success", id="Success twice"),
        pytest.param([0, 0, 0, -1], str, "negative codes", id="a negative code"),
        pytest.param([0.5, 0, 0, 0], str, "an integer code for each row", id="fractions"),
        pytest.param([0, 0], str, "an integer code for each row", id="too few"),
    ],
)
def test_codes_that_break_the_contract_fail_the_attempt_and_name_the_plugin(codes, decode, says):
    """What a code stands for was asked outside of every guard: a run took it for an internal error."""
    plugin = make_plugin("X", filter_rows=lambda *_: RowVerdicts(np.array(codes), decode))

    with pytest.raises(PluginFailure, match=f'running "X" filter plugin: .*{says}'):
        list(run(plugin).refusals())
