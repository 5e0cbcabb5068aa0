from __future__ import annotations

import pytest

from mooring.explain.reasons import Reason, cause_data, reasons_in


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        pytest.param("", (), id="none"),
        pytest.param("held back by X", (Reason("held back by X", 0),), id="another message"),
        pytest.param(
            "0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient cpu."
            " no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful.",
            (Reason("Insufficient cpu", 4), Reason("node(s) were unschedulable", 1)),
            id="the most nodes first, without what preemption says",
        ),
        pytest.param(
            "0/2 nodes are available: 2 Insufficient cpu.",
            (Reason("Insufficient cpu", 2),),
            id="alone",
        ),
        pytest.param(
            "0/3 nodes are available: 3 node(s) had labels a, b and c. preemption: 0/3 nodes",
            (Reason("node(s) had labels a, b and c", 3),),
            id="a comma in a reason",
        ),
        pytest.param(
            "0/3 nodes are available: 3 cannot allocate all claims."
            " still not schedulable, preemption: 0/3 nodes",
            (Reason("cannot allocate all claims", 3),),
            id="without what DynamicResources says after it",
        ),
        pytest.param(
            "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable.",
            (Reason("cannot allocate all claims", 3),),
            id="DynamicResources alone",
        ),
        pytest.param(
            '0/3 nodes are available: persistentvolumeclaim "data" not found. not found',
            (Reason('persistentvolumeclaim "data" not found', 0),),
            id="without what PostFilter says of a pod that PreFilter rejected",
        ),
        pytest.param(
            "0/3 nodes are available: 3 needs 4. has 2. no room was made, preemption: 0/3 nodes",
            (Reason("needs 4. has 2", 3),),
            id="without what any plugin says before preemption",
        ),
        pytest.param(
            "0/1 nodes are available: no node is called n9",
            (Reason("no node is called n9", 0),),
            id="a reason without a count",
        ),
    ],
)
def test_reasons_are_read_from_a_message(message, reasons):
    assert reasons_in(message) == reasons


def test_a_cause_names_the_plugins_that_are_known():
    cause = cause_data(
        "0/5 nodes are available: 1 odd, 4 Insufficient cpu.",
        {"Insufficient cpu": "NodeResourcesFit"},
    )

    assert cause["text"] == "4 Insufficient cpu, 1 odd"
    assert cause["of"] == 5
    assert cause["reasons"] == [["Insufficient cpu", 4, "NodeResourcesFit"], ["odd", 1, ""]]
