"""Why a pod fits nowhere, for plugins and for people."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.framework.cycle_state import CycleState
from mooring.framework.status import (
    Code,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
)
from mooring.runtime.evaluation import Evaluation, Filtered
from mooring.runtime.question import Question
from mooring.scheduler.choosing import first_by_name
from mooring.scheduler.diagnosis import Diagnosis, FitError, NodeRefusal
from tests.makers import make_pod
from tests.runtime.frameworks import framework_of, make_plugin, snapshot_of

NAMES = [f"n{i:02d}" for i in range(12)]
NODES = snapshot_of(*NAMES)


def filtered_by(verdicts: dict[str, Status], looked_at: list[str] | None = None) -> Filtered:
    """The verdicts of one plugin X that says this of these nodes, and nothing of any other."""
    plugin = make_plugin(filter=lambda state, pod, node: verdicts.get(node.name))
    mask = np.array([name in (NAMES if looked_at is None else looked_at) for name in NAMES])
    evaluation = Evaluation.in_full(framework_of(plugin), first_by_name.keys)
    return evaluation.run_filters(Question(CycleState(), make_pod(), NODES), mask)


def refusing(count: int, status: Status, start: int = 0) -> dict[str, Status]:
    return dict.fromkeys(NAMES[start : start + count], status)


# The text


@pytest.mark.parametrize(
    ("diagnosis", "text"),
    [
        pytest.param(
            Diagnosis(NODES, filtered_by(refusing(12, unschedulable("Insufficient cpu")))),
            "0/12 nodes are available: 12 Insufficient cpu.",
            id="one reason",
        ),
        pytest.param(
            Diagnosis(NODES, filtered_by(refusing(12, unschedulable("cpu", "memory")))),
            "0/12 nodes are available: 12 cpu, 12 memory.",
            id="a node may give several reasons",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(2, unresolvable("y")) | refusing(10, unschedulable("x"), 2)),
            ),
            "0/12 nodes are available: 10 x, 2 y.",
            id="counts are sorted as text: 10 before 2",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(3, unschedulable("full")), NAMES[:3]),
                absent=unresolvable("node(s) didn't satisfy plugin(s) [A]"),
            ),
            "0/12 nodes are available: 3 full, 9 node(s) didn't satisfy plugin(s) [A].",
            id="nodes that were not looked at have a reason too",
        ),
        pytest.param(
            Diagnosis(NODES, filtered_by(refusing(3, unschedulable("full")), NAMES[:3])),
            "0/12 nodes are available: 3 full.",
            id="or none",
        ),
        pytest.param(Diagnosis(NODES), "0/12 nodes are available:", id="nobody said anything"),
        pytest.param(
            Diagnosis(
                NODES,
                absent=unresolvable("one", "two"),
                pre_filter_message="one, two",
            ),
            "0/12 nodes are available: one, two.",
            id="PreFilter ended the search: its message instead of counts",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(12, unschedulable("full"))),
                post_filter_message="preemption: no luck",
            ),
            "0/12 nodes are available: 12 full. preemption: no luck",
            id="PostFilter's message comes last, without a period",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(11, unschedulable("full"))),
                by_extenders={"n11": unschedulable("busy")},
                removed_by={"n11": "http://e"},
            ),
            "0/12 nodes are available: 1 busy, 11 full.",
            id="an extender says why",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(11, unschedulable("full"))),
                removed_by={"n11": "http://e"},
            ),
            "0/12 nodes are available: 11 full.",
            id="an extender does not",
        ),
    ],
)
def test_the_text_counts_reasons(diagnosis, text):
    assert str(FitError(diagnosis)) == text


def test_a_node_refused_after_it_was_chosen_is_the_only_one_there_was():
    assert str(NodeRefusal(unschedulable("b", "a"))) == "0/1 nodes are available: 1 a, 1 b."
    assert str(NodeRefusal(unschedulable())) == "0/1 nodes are available:"


# What plugins ask


def test_every_node_has_a_status():
    diagnosis = Diagnosis(
        NODES,
        filtered_by(refusing(1, unschedulable("full")), NAMES[:2]),
        absent=unresolvable("elsewhere"),
        by_extenders={"n03": unschedulable("busy")},
        removed_by={"n03": "http://e", "n01": "http://e"},
    )

    assert diagnosis.get("n00") == unschedulable("full").by("X")
    assert diagnosis.get("n01") == unresolvable("elsewhere"), "removed without a word"
    assert diagnosis.get("n02") == unresolvable("elsewhere"), "not looked at"
    assert diagnosis.get("n03") == unschedulable("busy"), "what an extender says counts more"
    assert diagnosis.get("unheard-of") == unresolvable("elsewhere")


@pytest.mark.parametrize(
    "diagnosis",
    [
        pytest.param(Diagnosis(NODES), id="nothing looked at"),
        pytest.param(Diagnosis(NODES, absent=unschedulable("all")), id="PreFilter ended it"),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(
                    refusing(3, unschedulable("a")) | refusing(3, unresolvable("b"), 3), NAMES[:8]
                ),
            ),
            id="some looked at",
        ),
        pytest.param(
            Diagnosis(
                NODES,
                filtered_by(refusing(3, unschedulable("a")), NAMES[:8]),
                by_extenders={
                    "n05": unschedulable("busy"),
                    "n06": unresolvable("never"),
                    "n00": unresolvable("never"),
                },
                removed_by={"n05": "http://e", "n06": "http://e", "n07": "http://e"},
            ),
            id="extenders took some",
        ),
    ],
)
@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNRESOLVABLE], ids=lambda c: c.title)
def test_nodes_are_found_by_the_code_of_their_status_in_the_order_of_the_search(diagnosis, code):
    found = [node.name for node in diagnosis.nodes_with(code)]

    assert found == [name for name in NODES.order if diagnosis.get(name).code == code]


@pytest.mark.parametrize(
    ("status", "unschedulable_plugins", "pending_plugins"),
    [
        pytest.param(unschedulable("x").by("A"), {"A"}, set(), id="rejected"),
        pytest.param(unresolvable("x").by("A"), {"A"}, set(), id="rejected for good"),
        pytest.param(pending("x").by("A"), {"A"}, {"A"}, id="pending counts as both"),
        pytest.param(unschedulable("x"), set(), set(), id="by nobody"),
        pytest.param(failure(ValueError()).by("A"), set(), set(), id="an error is no rejection"),
    ],
)
def test_plugins_are_blamed_for_what_they_reject(status, unschedulable_plugins, pending_plugins):
    diagnosis = Diagnosis(NODES)

    diagnosis.blame(status)

    assert diagnosis.unschedulable_plugins == unschedulable_plugins
    assert diagnosis.pending_plugins == pending_plugins
