"""How full a node would be, as a score: the strategies of NodeResourcesFit, and balanced allocation.

Every strategy stands here twice. `…_score` is for one node, on plain integers: the form to read. The
kernel of the same name is for many rows at once, on arrays `int64[resource, row]`, and gives the same
numbers.

Both keep the reference's arithmetic: int64 that wraps on overflow, division that truncates toward zero,
floats in the order in which they are written. In all of them `allocatable` is what a node offers,
`allocated` what its pods hold, `requested` what they would hold together with the incoming pod; and a
resource of which a node offers nothing does not count on that node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Rows
from mooring.config.args import ResourceSpec, UtilizationShapePoint
from mooring.framework.interface import MAX_SCORE
from mooring.objects.quantity import MIN_INT64, wrap_int64
from mooring.objects.requests import is_scalar

#: A shape gives its scores as 0..10, and its utilization in percent.
MAX_SHAPE_SCORE = 10
MAX_UTILIZATION = 100

#: Integers below this are exact in float64 even after being multiplied by 100.
_EXACT_IN_FLOAT = 2**53 // 100

Floats = NDArray[np.float64]
#: A kernel's numbers: int64 or, where nothing is lost, float64.
_Numbers = NDArray[Any]


# What is scored


@dataclass(frozen=True, slots=True)
class Ask:
    """What a pod asks for, of those resources that count when it is scored."""

    names: tuple[str, ...]
    amounts: tuple[int, ...]
    weights: tuple[int, ...]

    def added_to(self, allocated: Sequence[int]) -> list[int]:
        return [wrap_int64(a + b) for a, b in zip(allocated, self.amounts, strict=True)]

    def on_rows(self, columns: Columns) -> RowsAsk:
        """Without the resources that no node offers and no pod asks for."""
        known = [index for index, name in enumerate(self.names) if name in columns.resources]
        return RowsAsk(
            [columns.resources[self.names[index]] for index in known],
            np.array([[self.amounts[index]] for index in known], np.int64).reshape(-1, 1),
            np.array([[self.weights[index]] for index in known], np.int64).reshape(-1, 1),
        )


@dataclass(frozen=True, slots=True)
class RowsAsk:
    """The same for kernels."""

    #: Where each resource stands in the columns.
    indices: list[int]
    #: int64[resource, 1].
    amounts: Ints
    weights: Ints


def ask_of(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> Ask:
    """A scalar resource counts only for pods that ask for some of it."""
    counted = [
        (resource.name, requests.get(resource.name, 0), resource.weight)
        for resource in resources
        if requests.get(resource.name, 0) != 0 or not is_scalar(resource.name)
    ]
    return Ask(
        tuple(name for name, _, _ in counted),
        tuple(amount for _, amount, _ in counted),
        tuple(weight for _, _, weight in counted),
    )


def gathered(columns: Sequence[Ints], rows: Rows, count: int) -> Ints:
    """int64[resource, row]: a fresh copy of `count` rows of each column."""
    table: Ints = np.empty((len(columns), count), np.int64)
    for resource, column in enumerate(columns):
        table[resource] = column[rows]
    return table


# One node


def least_allocated_score(
    requested: Sequence[int], allocatable: Sequence[int], weights: Sequence[int]
) -> int:
    """The mean share that would stay free, 0..100."""
    total = total_weight = 0
    for r, a, weight in zip(requested, allocatable, weights, strict=True):
        if a != 0:
            free = 0 if r > a else wrap_int64(a - r)
            total = wrap_int64(total + _percent(free, a) * weight)
            total_weight += weight
    return tdiv(total, total_weight) if total_weight else 0


def most_allocated_score(
    requested: Sequence[int], allocatable: Sequence[int], weights: Sequence[int]
) -> int:
    """The mean share that would be taken, 0..100."""
    total = total_weight = 0
    for r, a, weight in zip(requested, allocatable, weights, strict=True):
        if a != 0:
            total = wrap_int64(total + _percent(min(r, a), a) * weight)
            total_weight += weight
    return tdiv(total, total_weight) if total_weight else 0


def requested_to_capacity_ratio_score(
    requested: Sequence[int], allocatable: Sequence[int], weights: Sequence[int], curve: Ints
) -> int:
    """The mean of what the curve gives for each resource's utilization, 0..100.

    A resource that the curve gives 0 is left out of the mean, so it does not lower it.
    """
    total = total_weight = 0
    for r, a, weight in zip(requested, allocatable, weights, strict=True):
        if a != 0:
            utilization = MAX_UTILIZATION if r > a else _percent(r, a)
            score = int(curve[max(0, min(utilization, MAX_UTILIZATION))])
            if score > 0:
                total += score * weight
                total_weight += weight
    return _half_up(total / total_weight) if total_weight else 0


def curve_of(shape: Sequence[UtilizationShapePoint]) -> Ints:
    """int64[101]: the score for every utilization in percent, by straight lines between points.

    The points go up in utilization, within 0..100; before the first and after the last the line is
    level, so other utilizations score as the nearest of these does.
    """
    points = [(p.utilization, p.score * (MAX_SCORE // MAX_SHAPE_SCORE)) for p in shape]
    return np.array([_on_line(points, u) for u in range(MAX_UTILIZATION + 1)], np.int64)


def balanced_allocation_score(
    requested: Sequence[int], allocated: Sequence[int], allocatable: Sequence[int]
) -> int:
    """How the pod changes the balance between resources: 75 not at all, 100 and 50 are the ends."""
    change = _balance(requested, allocatable) - _balance(allocated, allocatable)
    half = MAX_SCORE // 2
    return wrap_int64(half + tdiv(wrap_int64(half + change), 2))


def tdiv(numerator: int, divisor: int) -> int:
    """Divide as int64 does: truncate toward zero, and wrap the one quotient that does not fit."""
    quotient = abs(numerator) // abs(divisor)
    return wrap_int64(quotient if (numerator < 0) == (divisor < 0) else -quotient)


def _percent(part: int, whole: int) -> int:
    return tdiv(wrap_int64(part * 100), whole)


def _half_up(number: float) -> int:
    """Round a number that is not negative; Python's `round` takes halves to the even neighbour."""
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole


def _on_line(points: Sequence[tuple[int, int]], utilization: int) -> int:
    first, last = points[0], points[-1]
    if utilization <= first[0]:
        return first[1]
    for (left, low), (right, high) in zip(points, points[1:], strict=False):
        if utilization <= right:
            return low + tdiv((high - low) * (utilization - left), right - left)
    return last[1]


def _balance(values: Sequence[int], allocatable: Sequence[int]) -> int:
    """100 less the standard deviation, in percent, of the shares taken."""
    # `float` first: int / int would round once where the reference rounds three times.
    shares = [min(float(v) / float(a), 1.0) for v, a in zip(values, allocatable, strict=True) if a]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        # Not `sum`: it compensates rounding errors, which the reference does not.
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return max(int((1 - deviation) * MAX_SCORE), MIN_INT64)


# Many rows


def least_allocated(requested: Ints, allocatable: Ints, weights: Ints, *, out: Ints) -> Ints:
    """Score each row by the share of it that would stay free, 0..100.

    Per resource ``(allocatable - requested) * 100 / allocatable``, or 0 where more is requested than
    there is; then the weighted mean over the resources that the row has at all. Both divisions
    truncate.

    requested, allocatable
        ``int64[resource, row]``.
    weights
        ``int64[resource, 1]``.
    out
        ``int64[row]``, overwritten and returned.
    """
    taken, wholes = _exact(requested, allocatable)
    parts = np.subtract(wholes, taken)
    np.copyto(parts, 0, where=taken > wholes)
    return _weighted_mean(_percents(parts, wholes), wholes, weights, out=out)


def most_allocated(requested: Ints, allocatable: Ints, weights: Ints, *, out: Ints) -> Ints:
    """Score each row by the share of it that would be taken, 0..100.

    Per resource ``min(requested, allocatable) * 100 / allocatable``; arguments and mean as in
    `least_allocated`.
    """
    taken, wholes = _exact(requested, allocatable)
    parts = np.minimum(taken, wholes)
    return _weighted_mean(_percents(parts, wholes), wholes, weights, out=out)


def requested_to_capacity_ratio(
    requested: Ints, allocatable: Ints, weights: Ints, curve: Ints, *, out: Ints
) -> Ints:
    """Score each row by a curve over utilization, 0..100.

    Per resource ``curve[requested * 100 / allocatable]``, or the curve's end where more is requested
    than there is; then the weighted mean over the resources that the row has and whose score is
    above 0, rounded half up.

    curve
        ``int64[101]``, as `curve_of` gives it.

    The other arguments are those of `least_allocated`.
    """
    taken, wholes = _exact(requested, allocatable)
    utilizations = _percents(taken.copy(), wholes)
    np.copyto(utilizations, MAX_UTILIZATION, where=taken > wholes)
    np.clip(utilizations, 0, MAX_UTILIZATION, out=utilizations)
    scores = curve.take(utilizations.astype(np.intp))
    counted = weights * ((scores > 0) & (wholes != 0))
    total_weight = counted.sum(axis=0)
    means = np.divide((scores * counted).sum(axis=0), np.maximum(total_weight, 1))
    wholes_of_means = np.floor(means)
    out[:] = wholes_of_means
    out += means - wholes_of_means >= 0.5
    return out


def balanced_allocation(
    requested: Ints, allocated: Ints, allocatable: Ints, *, out: Ints
) -> Ints:
    """Score each row by how the pod changes the balance between its resources, 50..100.

    ``50 + (50 + balance(requested) - balance(allocated)) / 2``, where a balance is ``(1 - deviation)
    * 100`` of the shares of each resource that are taken, and a share is at most 1. Whole numbers
    truncate.

    requested, allocated, allocatable
        ``int64[resource, row]``.
    out
        ``int64[row]``, overwritten and returned.
    """
    wholes = allocatable.astype(np.float64)
    present = wholes != 0
    if not present.all():
        np.copyto(wholes, 1.0, where=~present)
    np.subtract(
        _balances(requested, wholes, present), _balances(allocated, wholes, present), out=out
    )
    half = MAX_SCORE // 2
    out += half
    # A shift rounds down; one more makes it truncate where the number is negative.
    out -= out >> 63
    out >>= 1
    out += half
    return out


def _exact(requested: Ints, allocatable: Ints) -> tuple[_Numbers, _Numbers]:
    """The same numbers, as float64 where every step of a strategy is exact in it.

    A float64 division costs a fifth of an int64 one (3.7 µs against 20 for 10,000 elements), so that
    a whole kernel takes half the time. It gives the truncated quotient as long as the numerator, 100
    times a number that is not negative, stays below 2**53; as uint64, negative numbers are large.
    """
    largest = max(
        int(requested.view(np.uint64).max(initial=0)),
        int(allocatable.view(np.uint64).max(initial=0)),
    )
    if largest < _EXACT_IN_FLOAT:
        return requested.astype(np.float64), allocatable.astype(np.float64)
    return requested, allocatable


def _percents(parts: _Numbers, wholes: _Numbers) -> _Numbers:
    """``parts * 100 / wholes``, truncated, in place; of no use where `wholes` is 0."""
    np.multiply(parts, 100, out=parts)
    return _truncated(parts, wholes, out=parts)


def _weighted_mean(scores: _Numbers, wholes: _Numbers, weights: Ints, *, out: Ints) -> Ints:
    """The mean of the scores whose `wholes` is not 0, truncated; 0 where there are none."""
    present = wholes != 0
    counted = weights if present.all() else weights * present
    np.multiply(scores, counted, out=scores)
    totals = np.add.reduce(scores, axis=0)
    out[:] = _truncated(totals, np.add.reduce(counted, axis=0), out=totals)
    return out


def _truncated(numerators: _Numbers, divisors: _Numbers, *, out: _Numbers) -> _Numbers:
    """Divide and truncate toward zero, in int64 or float64; by 1 where the divisor is 0."""
    if not divisors.all():
        divisors = np.where(divisors == 0, 1, divisors)
    if numerators.dtype == np.float64:
        np.divide(numerators, divisors, out=out)
        return np.floor(out, out=out)
    # Magnitudes fit uint64 without exception, and int64's own wrapping gives the sign back.
    negative = (numerators < 0) != (divisors < 0)
    quotients = np.abs(numerators).view(np.uint64) // np.abs(divisors).view(np.uint64)
    np.negative(quotients, out=quotients, where=negative)
    out[...] = quotients.view(np.int64)
    return out


def _balances(values: Ints, wholes: Floats, present: NDArray[np.bool_]) -> Ints:
    shares = np.divide(values, wholes)
    np.minimum(shares, 1.0, out=shares)
    balances = _deviations(shares, present)
    np.subtract(1, balances, out=balances)
    np.multiply(balances, MAX_SCORE, out=balances)
    # What int64 cannot hold becomes its lowest number, as on the reference's processor.
    np.maximum(balances, MIN_INT64, out=balances)
    return balances.astype(np.int64)


def _deviations(shares: Floats, present: NDArray[np.bool_]) -> Floats:
    """The standard deviation of the shares that are present: of two, half their distance."""
    if len(shares) < 2:
        return np.zeros(shares.shape[1])
    if len(shares) == 2:
        halves = np.subtract(shares[0], shares[1])
        np.divide(halves, 2, out=halves)
        np.abs(halves, out=halves)
        if not present.all():
            np.copyto(halves, 0.0, where=~(present[0] & present[1]))
        return halves
    return _deviations_of_many(shares, present)


def _deviations_of_many(shares: Floats, present: NDArray[np.bool_]) -> Floats:
    """As the above for rows with any number of shares; sums go resource by resource, in order."""
    counts = np.add.reduce(present, axis=0, dtype=np.int64)
    divisors = np.maximum(counts, 1)
    totals = np.zeros(shares.shape[1])
    for share, there in zip(shares, present, strict=True):
        np.add(totals, share, out=totals, where=there)
    means = totals / divisors
    squares = np.zeros(shares.shape[1])
    for share, there in zip(shares, present, strict=True):
        distances = share - means
        np.add(squares, distances * distances, out=squares, where=there)
    deviations = np.sqrt(squares / divisors)
    highest = np.max(shares, axis=0, where=present, initial=-np.inf)
    lowest = np.min(shares, axis=0, where=present, initial=np.inf)
    np.copyto(deviations, (highest - lowest) / 2, where=counts == 2)
    np.copyto(deviations, 0.0, where=counts < 2)
    return deviations
