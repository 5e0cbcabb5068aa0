import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mooring.cluster.cache import Cluster
from mooring.config.args import ResourceSpec, UtilizationShapePoint
from mooring.objects.quantity import MAX_INT64, MIN_INT64
from mooring.plugins import resource_scoring
from mooring.plugins.resource_scoring import ScoredResources, curve_of, tdiv
from tests.makers import make_node

MI = 1024 * 1024
GI = 1024 * MI

#: Cpu in thousandths and memory in bytes, of the node in the tables.
NODE = [4000, 8 * GI]


def column(numbers):
    return np.array([[number] for number in numbers], np.int64).reshape(-1, 1)


def shape(*points):
    return [UtilizationShapePoint(utilization, score) for utilization, score in points]


def both(strategy, requested, allocatable, weights, *curve):
    """What the plain form says, after making sure that the kernel says the same."""
    plain = getattr(resource_scoring, f"{strategy}_score")
    kernel = getattr(resource_scoring, strategy)
    score = plain(requested, allocatable, weights, *curve)
    out = np.full(1, -7)
    rows = kernel(column(requested), column(allocatable), column(weights), *curve, out=out)
    assert rows is out
    assert rows.tolist() == [score]
    return score


@pytest.mark.parametrize(
    ("requested", "allocatable", "weights", "score"),
    [
        # (4000 - 1500) * 100 / 4000 = 62, (8 - 3) * 100 / 8 = 62
        pytest.param([1500, 3 * GI], NODE, [1, 1], 62),
        # (4000 - 1100) * 100 / 4000 = 72, (8192 - 2248) * 100 / 8192 = 72
        pytest.param([1100, 2248 * MI], NODE, [1, 1], 72),
        # 4100 is more than 4000: 0; (8 - 4) * 100 / 8 = 50; (0 + 50) / 2
        pytest.param([4100, 4 * GI], NODE, [1, 1], 25),
        # 75 * 3 + 25 * 1 = 250; 250 / 4 = 62.5
        pytest.param([1000, 6 * GI], NODE, [3, 1], 62),
        # 62 and 62; the third is not on the node, so its weight does not count
        pytest.param([1500, 3 * GI, 0], [*NODE, 0], [1, 1, 5], 62),
        pytest.param([5, 5], [0, 0], [1, 1], 0, id="a node with nothing"),
        pytest.param([], [], [], 0, id="no resource"),
        # MAX * 100 wraps to -100; -100 / MAX = 0
        pytest.param([0], [MAX_INT64], [1], 0, id="the product wraps"),
        # 2**62 * 100 wraps to 0 (100 is 4 * 25)
        pytest.param([0], [2**62], [1], 0, id="wraps to nothing"),
        # MAX - -1 wraps to MIN; MIN * 100 wraps to 0
        pytest.param([-1], [MAX_INT64], [1], 0, id="the difference wraps"),
        # 117352810999686 * 100 / 148547862024919 = 78.99999999999999993, which float64 takes for 79
        pytest.param([31195051025233], [148547862024919], [1], 78, id="beyond float64"),
        # -7 - -10 = 3; 300 / -7 = -42.86; -42 / 1
        pytest.param([-10], [-7], [1], -42, id="truncated toward zero"),
        # -42 + 0 = -42; -42 / 4 = -10.5
        pytest.param([-10, 9], [-7, 8], [1, 3], -10, id="so is the mean"),
    ],
)
def test_least_allocated_is_the_mean_share_that_stays_free(requested, allocatable, weights, score):
    assert both("least_allocated", requested, allocatable, weights) == score


@pytest.mark.parametrize(
    ("requested", "allocatable", "weights", "score"),
    [
        # 1500 * 100 / 4000 = 37.5, 3 * 100 / 8 = 37.5
        pytest.param([1500, 3 * GI], NODE, [1, 1], 37),
        # min(4100, 4000) is all: 100; 50
        pytest.param([4100, 4 * GI], NODE, [1, 1], 75),
        # 27.5, 2248 * 100 / 8192 = 27.4
        pytest.param([1100, 2248 * MI], NODE, [1, 1], 27),
        # 37 + 37 + 25 * 5 = 199; 199 / 7 = 28.4
        pytest.param([1500, 3 * GI, 2], [*NODE, 8], [1, 1, 5], 28),
        pytest.param([5], [0], [1], 0, id="a node with nothing"),
        # -9 * 100 / 7 = -128.57
        pytest.param([-9], [7], [1], -128, id="truncated toward zero"),
    ],
)
def test_most_allocated_is_the_mean_share_that_is_taken(requested, allocatable, weights, score):
    assert both("most_allocated", requested, allocatable, weights) == score


@pytest.mark.parametrize(
    ("points", "requested", "allocatable", "weights", "score"),
    [
        # 37 and 37 on the line y = x
        pytest.param([(0, 0), (100, 10)], [1500, 3 * GI], NODE, [1, 1], 37),
        # (24 + 25) / 2 = 24.5, rounded up
        pytest.param([(0, 0), (100, 10)], [240, 250], [1000, 1000], [1, 1], 25),
        # f(10) = 100 + trunc(-1000 / 30) = 67, f(0) = 100; 167 / 2 = 83.5, rounded up
        pytest.param([(0, 10), (30, 0)], [100, 0], [1000, 1000], [1, 1], 84),
        # f(100) = 0 is left out; f(25) = 75 alone
        pytest.param([(0, 10), (100, 0)], [1000, 250], [1000, 1000], [1, 1], 75),
        # f(100) = 100 as 5000 > 4000; f(50) = 70; (300 + 350) / 8 = 81.25
        pytest.param(
            [(0, 0), (50, 7), (100, 10)], [5000, 4 * GI], NODE, [3, 5], 81, id="more than all"
        ),
        pytest.param([(0, 0), (100, 10)], [0, 0], NODE, [1, 1], 0, id="every part is 0"),
        pytest.param([(0, 10), (100, 0)], [0, 0], [0, 0], [1, 1], 0, id="a node with nothing"),
        # MAX * 100 wraps to -100; -100 / MAX = 0; f(0) = 100
        pytest.param([(0, 10), (100, 0)], [MAX_INT64], [MAX_INT64], [1], 100, id="wraps"),
        # (MAX - 1) * 100 would wrap to -200, but more than there is is at the end: f(100) = 40
        pytest.param([(0, 10), (100, 4)], [MAX_INT64], [MAX_INT64 - 1], [1], 40, id="no wrap"),
        # -8 * 100 / 8 = -100, and before the first point the line is level
        pytest.param([(0, 3), (100, 0)], [-8], [8], [1], 30, id="less than nothing"),
    ],
)
def test_ratio_is_the_mean_of_a_curve_without_its_zeros(
    points, requested, allocatable, weights, score
):
    curve = curve_of(shape(*points))

    assert both("requested_to_capacity_ratio", requested, allocatable, weights, curve) == score


@pytest.mark.parametrize(
    ("points", "utilizations", "scores"),
    [
        # 100 - 10 * 100 / 30 = 66.67 and so on: the part taken away is truncated, not the result.
        pytest.param(
            [(0, 10), (30, 0)], [0, 10, 20, 29, 30, 50], [100, 67, 34, 4, 0, 0], id="falling"
        ),
        pytest.param([(20, 3), (60, 9)], [0, 20, 30, 60, 100], [30, 30, 45, 90, 90], id="level"),
        pytest.param([(40, 5)], [0, 40, 100], [50, 50, 50], id="one point"),
    ],
)
def test_a_curve_is_straight_between_points_and_level_outside(points, utilizations, scores):
    assert curve_of(shape(*points))[utilizations].tolist() == scores


@pytest.mark.parametrize(
    ("requested", "allocated", "allocatable", "score"),
    [
        # 0.375 and 0.375, before 0.25 and 0.25: both 100; 50 + 50 / 2
        pytest.param([1500, 3 * GI], [1000, 2 * GI], NODE, 75, id="unchanged"),
        # |0.5 - 0.25| / 2 = 0.125: 87.5, before 100; 50 + (50 + 87 - 100) / 2 = 50 + 18.5
        pytest.param([2000, 2 * GI], [1000, 2 * GI], NODE, 68, id="worse"),
        # 0.75 and 0.75: 100, before |0.75 - 0.125| / 2 = 0.3125: 68; 50 + (50 + 32) / 2
        pytest.param([3000, 6 * GI], [3000, 1 * GI], NODE, 91, id="better"),
        # all 0.5: 100; before 0.25, 0.5, 0: mean 0.25, sqrt(0.125 / 3) = 0.204: 79; 50 + 71 / 2
        pytest.param([2000, 4 * GI, 2], [1000, 4 * GI, 0], [*NODE, 4], 85, id="three"),
        # 1.0 (not 1.25) and 0.5: 75, before |0.875 - 0.5| / 2 = 0.1875: 81; 50 + (50 - 6) / 2
        pytest.param([5000, 4 * GI], [3500, 4 * GI], NODE, 72, id="capped"),
        pytest.param([2000, 5], [1000, 3], [4000, 0], 75, id="only one there"),
        # two of three there: |0.5 - 0.25| / 2
        pytest.param([2000, 9, 2 * GI], [1000, 5, 2 * GI], [4000, 0, 8 * GI], 68, id="two of 3"),
        # |0.1 - 0.8| / 2 of two is 0.35000000000000003: 64, by the formula for many it were 65;
        # before |0.02 - 0| / 2 = 0.01: 99; 50 + (50 + 64 - 99) / 2 = 50 + 7.5
        pytest.param([10, 9, 80], [2, 9, 0], [100, 0, 100], 57, id="half the distance of two"),
        pytest.param([], [], [], 75, id="no resource"),
        # |1.0 - -3.0| / 2 = 2: -100, before 100; 50 + (50 - 200) / 2
        pytest.param([9, -9], [0, 0], [3, 3], -25, id="less than nothing"),
        # |1.0 - -1.5| / 2 = 1.25: -25, before 100; 50 + (50 - 125) / 2 = 50 - 37.5
        pytest.param([9, -3], [0, 0], [2, 2], 13, id="truncated toward zero"),
        # (1 - 2**62) * 100 does not fit: MIN; 50 + MIN - 100 wraps to MAX - 49
        pytest.param([9, MIN_INT64], [0, 0], [1, 1], 50 + (MAX_INT64 - 49) // 2, id="out of range"),
    ],
)
def test_balanced_allocation_compares_the_balance_before_and_after(
    requested, allocated, allocatable, score
):
    out = np.full(1, -7)
    arrays = (column(requested), column(allocated), column(allocatable))

    assert resource_scoring.balanced_allocation_score(requested, allocated, allocatable) == score
    assert resource_scoring.balanced_allocation(*arrays, out=out).tolist() == [score]


@pytest.mark.parametrize(
    ("numerator", "divisor", "quotient"),
    [
        (7, 2, 3),
        (-7, 2, -3),
        (7, -2, -3),
        (-7, -2, 3),
        (0, -5, 0),
        (MIN_INT64, -1, MIN_INT64),
        (MIN_INT64, MIN_INT64, 1),
    ],
)
def test_division_truncates_toward_zero(numerator, divisor, quotient):
    assert tdiv(numerator, divisor) == quotient


def test_a_scalar_counts_only_for_pods_that_ask_for_it():
    resources = [ResourceSpec("cpu", 1), ResourceSpec("example.com/gpu", 5)]

    assert ScoredResources(resources).request({"memory": 3}).names == ("cpu",)
    assert ScoredResources(resources).request({"cpu": 3, "example.com/gpu": 2}).amounts == (3, 2)


NUMBERS = (
    st.sampled_from((0, 0, 1, 2, MAX_INT64, MAX_INT64 - 1, MIN_INT64, -1))
    | st.integers(0, 2**53 // 100 + 2)
    | st.integers(0, 300)
    | st.integers(2**46, 2**58)
    | st.integers(MIN_INT64, MAX_INT64)
)
ORDINARY = st.integers(0, 2**46)


@st.composite
def tables(draw, count):
    """`count` arrays int64[resource, row] of one shape, and weights for the resources."""
    size = (draw(st.integers(0, 4)), draw(st.integers(1, 5)))
    numbers = draw(st.sampled_from((NUMBERS, ORDINARY)))
    weights = draw(arrays.arrays(np.int64, (size[0], 1), elements=st.integers(1, 100)))
    return [draw(arrays.arrays(np.int64, size, elements=numbers)) for _ in range(count)], weights


def per_row(plain, tables, *rest):
    rows = range(tables[0].shape[1])
    return [plain(*(table[:, row].tolist() for table in tables), *rest) for row in rows]


@given(tables=tables(2), name=st.sampled_from(("least_allocated", "most_allocated")))
def test_a_kernel_says_of_every_row_what_the_plain_form_says(tables, name):
    (requested, allocatable), weights = tables
    before = requested.copy(), allocatable.copy()
    kernel = getattr(resource_scoring, name)
    plain = getattr(resource_scoring, f"{name}_score")

    scores = kernel(requested, allocatable, weights, out=np.empty(requested.shape[1], np.int64))

    assert scores.tolist() == per_row(plain, (requested, allocatable), weights[:, 0].tolist())
    assert np.array_equal(before, (requested, allocatable))


@given(
    tables=tables(2),
    utilizations=st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).map(sorted),
    data=st.data(),
)
def test_the_kernel_of_a_curve_says_what_the_plain_form_says(tables, utilizations, data):
    (requested, allocatable), weights = tables
    curve = curve_of(shape(*((u, data.draw(st.integers(0, 10))) for u in utilizations)))

    scores = resource_scoring.requested_to_capacity_ratio(
        requested, allocatable, weights, curve, out=np.empty(requested.shape[1], np.int64)
    )

    assert scores.tolist() == per_row(
        resource_scoring.requested_to_capacity_ratio_score,
        (requested, allocatable),
        weights[:, 0].tolist(),
        curve,
    )


@given(tables=tables(3))
def test_the_kernel_of_balance_says_what_the_plain_form_says(tables):
    (requested, allocated, allocatable), _ = tables

    scores = resource_scoring.balanced_allocation(
        requested, allocated, allocatable, out=np.empty(requested.shape[1], np.int64)
    )

    assert scores.tolist() == per_row(
        resource_scoring.balanced_allocation_score, (requested, allocated, allocatable)
    )


@given(whole=st.integers(1, 2**53 // 100 - 1), data=st.data())
def test_float_division_is_exact_up_to_its_guard(whole, data):
    """The quotients that could go wrong are those that a whole number is just missed by."""
    percent = data.draw(st.integers(0, 100))
    free = data.draw(st.sampled_from((-1, 0, 1))) + math.ceil(percent * whole / 100)
    free = max(0, min(free, whole))

    assert both("least_allocated", [whole - free], [whole], [1]) == free * 100 // whole


def test_kept_offers_follow_every_change_of_a_node():
    cluster, kept = Cluster(), resource_scoring.KeptOffers()

    def offered() -> list[list[float]]:
        columns = cluster.snapshot().columns
        return kept.of(columns, [0, 1], columns.all_rows).wholes.tolist()

    cluster.add_node(make_node("a", cpu="2", memory="1Ki"))
    assert offered() == [[2000.0], [1024.0]]
    cluster.update_node(make_node("a", cpu="4", memory="1Ki"))
    assert offered() == [[4000.0], [1024.0]]
    cluster.add_node(make_node("b", cpu="1", memory="2Ki"))
    assert offered() == [[4000.0, 1000.0], [1024.0, 2048.0]]
    cluster.remove_node("a")
    assert offered() == [[1.0, 1000.0], [1.0, 2048.0]]
