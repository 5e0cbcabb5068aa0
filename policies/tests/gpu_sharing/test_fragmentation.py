"""How much of a node's free GPUs typical pods cannot use, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring_policies.gpu_sharing.fragmentation import Fragmentation
from mooring_policies.gpu_sharing.typical_pods import Shape, TypicalPod

MODELS = {"": 0, "T4": 1, "A10": 2}

HALF = TypicalPod(Shape(4000, 500, 1, ()), 1)
ONE = TypicalPod(Shape(8000, 1000, 1, ()), 1)
TWO = TypicalPod(Shape(1000, 1000, 2, ()), 1)
CPU = TypicalPod(Shape(2000, 0, 0, ()), 2)
ON_T4 = TypicalPod(Shape(0, 500, 1, ("T4",)), 1)


def fragmentation(typical, free, *, cpu=64_000, model="") -> float:
    """In thousandths of a GPU."""
    rule = Fragmentation(typical, MODELS)
    rows = np.array([free]), np.array([cpu]), np.array([MODELS[model]])
    return float(rule.of(*rows)[0]) / rule.total_weight


@pytest.mark.parametrize(
    ("typical", "node", "expected"),
    [
        pytest.param([HALF], {"free": [300, 1000, 600]}, 300, id="fits: GPUs that are too full"),
        pytest.param([ONE], {"free": [300, 600, 0]}, 900, id="no GPU has enough left: everything"),
        pytest.param(
            [ONE], {"free": [300, 1000], "cpu": 7999}, 1300, id="too little cpu: everything"
        ),
        pytest.param([TWO], {"free": [1000, 300]}, 1300, id="too few GPUs: everything"),
        pytest.param([TWO], {"free": [1000, 1000, 300]}, 300, id="enough GPUs"),
        pytest.param([CPU], {"free": [300, 1000]}, 1300, id="wants no GPU: everything"),
        pytest.param([ON_T4], {"free": [1000, 400], "model": "T4"}, 400, id="its model"),
        pytest.param([ON_T4], {"free": [1000, 400], "model": "A10"}, 1400, id="another model"),
        pytest.param([ON_T4], {"free": [1000, 400]}, 1400, id="an unknown model"),
        pytest.param(
            [HALF, ONE, CPU],
            {"free": [300, 1000, 600], "cpu": 6000},
            1500,
            id="mean: (300 + 1900 + 2 × 1900) / 4",
        ),
        pytest.param(
            [HALF, ONE, CPU],
            {"free": [300, 1000, 600], "cpu": 8000},
            1250,
            id="mean: (300 + 900 + 2 × 1900) / 4",
        ),
        pytest.param([HALF], {"free": [0, 0]}, 0, id="nothing is left"),
    ],
)
def test_fragments_are_what_typical_pods_cannot_use(typical, node, expected):
    assert fragmentation(typical, **node) == expected


def plainly(typical, free, cpu, model) -> float:
    """The definition, pod by pod and GPU by GPU."""
    total = 0.0
    for (cpu_milli, milli, count, models), weight in typical:
        fits = (
            count > 0
            and cpu >= cpu_milli
            and (not models or model in models)
            and sum(left >= milli for left in free) >= count
        )
        total += weight * sum(left for left in free if not fits or left < milli)
    return total


@given(data=st.data())
def test_all_rows_at_once_are_each_row_by_the_definition(data):
    shapes = st.tuples(
        st.integers(0, 9000),
        st.sampled_from((0, 10, 500, 999, 1000)),
        st.integers(1, 3),
        st.sampled_from(((), ("T4",), ("A10", "T4"))),
    ).map(lambda shape: Shape(*shape) if shape[1] else Shape(shape[0], 0, 0, ()))
    typical = data.draw(st.lists(st.builds(TypicalPod, shapes, st.integers(1, 9)), max_size=5))
    lefts = st.lists(st.sampled_from((0, 10, 400, 500, 999, 1000)), min_size=3, max_size=3)
    nodes = data.draw(
        st.lists(
            st.tuples(lefts, st.integers(0, 9000), st.sampled_from(list(MODELS))),
            min_size=1,
            max_size=4,
        )
    )

    rows = Fragmentation(typical, MODELS).of(
        np.array([free for free, _, _ in nodes]),
        np.array([cpu for _, cpu, _ in nodes]),
        np.array([MODELS[model] for _, _, model in nodes]),
    )

    assert rows.tolist() == [plainly(typical, *node) for node in nodes]
