"""Scores for how full a node would be: the strategies of NodeResourcesFit, and balanced allocation.

Every strategy has two forms. `…_score` is for one node, on plain integers: the form to read. The
kernel of the same name is for many rows, on arrays `int64[resource, row]`, and gives the same
numbers.

Both keep the reference's arithmetic: int64 that wraps on overflow, division that truncates toward
zero, floats in the order in which they are written. In all of them `allocatable` is what a node
offers, `allocated` what its pods hold, and `requested` what they would hold with the incoming pod.
A resource that a node does not offer does not count on that node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.objects.quantity import MAX_INT64, MIN_INT64, wrap_int64
from mooring.objects.requests import CPU, MEMORY, is_scalar
from mooring.plugin import MAX_SCORE, Columns, Ints, NodeInfo, Rows, unschedulable
from mooring.plugin.args import ResourceSpec, UtilizationShapePoint
from mooring.plugin.devices import DeviceCounts
from mooring.plugin.nodes import StateAmounts

#: Why a pod whose resources may be devices has no signature; the reference's text.
NOT_SIGNABLE = unschedulable(
    "signature disabled when dra extended resources are used in the cluster"
)

#: A shape gives its scores as 0..10, and its utilization in percent.
MAX_SHAPE_SCORE = 10
MAX_UTILIZATION = 100

#: Integers below this are exact in float64 even after being multiplied by 100.
_EXACT_IN_FLOAT = 2**53 // 100

#: For how many sets of resources their places in the columns are remembered.
_MOST_KNOWN = 256

Floats = NDArray[np.float64]
#: The numbers in a kernel: int64, or float64 where it is exact.
_Numbers = NDArray[Any]


# What is scored


class ScoredRequest(NamedTuple):
    """What a pod requests of the resources that are scored."""

    names: tuple[str, ...]
    amounts: tuple[int, ...]
    weights: tuple[int, ...]

    def added_to(self, allocated: Sequence[int]) -> list[int]:
        return [
            total if MIN_INT64 <= (total := a + b) <= MAX_INT64 else wrap_int64(total)
            for a, b in zip(allocated, self.amounts, strict=True)
        ]


class ScoredRequestRows(NamedTuple):
    """A `ScoredRequest` for kernels."""

    #: The index of each resource in the columns.
    indices: list[int]
    #: int64[resource, 1].
    amounts: Ints
    weights: Ints


#: Which resources of a request the columns know (None for all), their indices and weights.
_Known = tuple[list[int] | None, list[int], Ints]


class ScoredColumns:
    """Where the resources of requests are in the columns. Nearly all pods have the same resources."""

    def __init__(self) -> None:
        #: The resources of the columns, and their number at the time, which only increases.
        self._resources: Mapping[str, int] = {}
        self._count = -1
        #: By names and weights.
        self._known: dict[tuple[tuple[str, ...], tuple[int, ...]], _Known] = {}

    def request(self, request: ScoredRequest, columns: Columns) -> ScoredRequestRows:
        """The form for kernels, without resources that no node offers and no pod requests."""
        resources = columns.resources
        if self._resources is not resources or self._count != len(resources):
            self._resources, self._count = resources, len(resources)
            self._known.clear()
        names, amounts, weights = request
        known = self._known.get((names, weights))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[names, weights] = _known(names, weights, resources)
        places, indices, column = known
        if places is not None:
            amounts = tuple([amounts[place] for place in places])
        return ScoredRequestRows(indices, as_column(amounts), column)


def _known(names: Sequence[str], weights: Sequence[int], resources: Mapping[str, int]) -> _Known:
    places = [place for place, name in enumerate(names) if name in resources]
    indices = [resources[names[place]] for place in places]
    column = as_column([weights[place] for place in places])
    return None if len(places) == len(names) else places, indices, column


class ScoredResources:
    """The resources that a plugin scores."""

    def __init__(self, resources: Sequence[ResourceSpec]) -> None:
        self._resources = resources
        self._names = tuple([resource.name for resource in resources])
        self._weights = tuple([resource.weight for resource in resources])
        self._has_scalars = any(map(is_scalar, self._names))
        #: Whether these are cpu and memory, and count once.
        self.are_plain = self._names == (CPU, MEMORY) and self._weights == (1, 1)

    def request(self, requests: Mapping[str, int]) -> ScoredRequest:
        """What a pod requests of them. A scalar resource counts only if the pod requests it."""
        amounts = tuple([requests.get(name, 0) for name in self._names])
        if not self._has_scalars:
            return ScoredRequest(self._names, amounts, self._weights)
        counted = [
            (resource.name, amount, resource.weight)
            for resource, amount in zip(self._resources, amounts, strict=True)
            if amount != 0 or not is_scalar(resource.name)
        ]
        return ScoredRequest(
            tuple([name for name, _, _ in counted]),
            tuple([amount for _, amount, _ in counted]),
            tuple([weight for _, _, weight in counted]),
        )


def count_devices(
    request: ScoredRequest,
    node: NodeInfo,
    held: list[int],
    allocatable: list[int],
    counts: DeviceCounts,
) -> None:
    """Where devices serve a resource that the node does not offer itself, count them instead."""
    for place, name in enumerate(request.names):
        if not allocatable[place] and counts.counts(name) and node.node is not None:
            in_use, devices = counts.of(name, node.node)
            if devices:
                held[place], allocatable[place] = in_use, devices


def count_devices_of_rows(
    request: ScoredRequest,
    columns: Columns,
    rows: Rows,
    held: Ints,
    allocatable: Ints,
    counts: DeviceCounts,
    infos: Mapping[str, NodeInfo],
) -> tuple[Ints, Ints]:
    """`count_devices` for many rows.

    `held` and `allocatable` have the resources that the columns know. The answer has all that are
    requested, since devices may serve one that the columns do not know.
    """
    places = [place for place, name in enumerate(request.names) if name in columns.resources]
    shape = len(request.names), held.shape[1]
    all_held, all_allocatable = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    all_held[places], all_allocatable[places] = held, allocatable
    for place, name in enumerate(request.names):
        if counts.counts(name):
            in_use, devices = counts.on_rows(name, columns, rows, infos)
            served = (all_allocatable[place] == 0) & (devices != 0)
            np.copyto(all_held[place], in_use, where=served)
            np.copyto(all_allocatable[place], devices, where=served)
    return all_held, all_allocatable


def as_column(numbers: Sequence[int]) -> Ints:
    """int64[resource, 1]."""
    return np.array(numbers, np.int64).reshape(-1, 1)


def gathered(table: Ints, indices: Sequence[int], rows: Rows) -> Ints:
    """int64[resource, row]: some rows of some resources, not to be changed: it may be a view."""
    count = len(indices)
    chosen = table[:count] if indices == [*range(count)] else table[indices]
    if isinstance(rows, slice):
        return chosen[:, rows]
    # This takes an eighth of the time of `chosen[:, rows]`.
    return chosen.take(rows, axis=1)


# One node


def least_allocated_score(
    requested: Sequence[int], allocatable: Sequence[int], weights: Sequence[int]
) -> int:
    """The mean share that would stay free, 0..100."""
    total = total_weight = 0
    for r, a, weight in zip(requested, allocatable, weights, strict=True):
        if a != 0:
            if 0 <= r <= a < _EXACT_IN_FLOAT:
                # Nothing wraps here, so this avoids calls that take most of the time.
                total += (a - r) * 100 // a * weight
            else:
                total += _percent(0 if r > a else wrap_int64(a - r), a) * weight
            total_weight += weight
    return tdiv(wrap_int64(total), total_weight) if total_weight else 0


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

    A resource with the score 0 is left out of the mean.
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

    The points are in order of utilization, within 0..100. Before the first point and after the last
    one, the line is level.
    """
    points = [(p.utilization, p.score * (MAX_SCORE // MAX_SHAPE_SCORE)) for p in shape]
    return np.array([_on_line(points, u) for u in range(MAX_UTILIZATION + 1)], np.int64)


def balanced_allocation_score(
    requested: Sequence[int], allocated: Sequence[int], allocatable: Sequence[int]
) -> int:
    """How the pod changes the balance between resources, 50..100; 75 means no change."""
    if len(allocatable) == 2:
        # Cpu and memory, as nearly always: without a list and a call for each balance.
        a0, a1 = allocatable
        r0, r1 = requested
        h0, h1 = allocated
        if a0 > 0 and a1 > 0 and r0 >= 0 and r1 >= 0 and h0 >= 0 and h1 >= 0:
            f0, f1 = float(a0), float(a1)
            w0 = s if (s := float(r0) / f0) < 1.0 else 1.0
            w1 = s if (s := float(r1) / f1) < 1.0 else 1.0
            o0 = s if (s := float(h0) / f0) < 1.0 else 1.0
            o1 = s if (s := float(h1) / f1) < 1.0 else 1.0
            with_pod = int((1 - abs((w0 - w1) / 2)) * 100)
            without = int((1 - abs((o0 - o1) / 2)) * 100)
            return 50 + (50 + with_pod - without) // 2
    change = _balance(requested, allocatable) - _balance(allocated, allocatable)
    half = MAX_SCORE // 2
    return wrap_int64(half + tdiv(wrap_int64(half + change), 2))


def tdiv(numerator: int, divisor: int) -> int:
    """Divide as int64 does: truncate toward zero, and wrap the one quotient that does not fit."""
    if numerator >= 0 and divisor > 0:
        return numerator // divisor
    quotient = abs(numerator) // abs(divisor)
    return wrap_int64(quotient if (numerator < 0) == (divisor < 0) else -quotient)


def _percent(part: int, whole: int) -> int:
    if 0 <= part < _EXACT_IN_FLOAT and whole > 0:
        # Nothing wraps here, so this avoids two calls that take three times as long.
        return part * 100 // whole
    return tdiv(wrap_int64(part * 100), whole)


def _half_up(number: float) -> int:
    """Round half up, for numbers that are not negative; Python's `round` rounds half to even."""
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole


def _on_line(points: Sequence[tuple[int, int]], utilization: int) -> int:
    first, last = points[0], points[-1]
    if utilization <= first[0]:
        return first[1]
    for (left, low), (right, high) in pairwise(points):
        if utilization <= right:
            return low + tdiv((high - low) * (utilization - left), right - left)
    return last[1]


def _balance(values: Sequence[int], allocatable: Sequence[int]) -> int:
    """100 minus the standard deviation, in percent, of the shares in use."""
    # Convert to `float` first: int / int rounds once, the reference rounds three times.
    shares = [
        share if (share := float(v) / float(a)) < 1.0 else 1.0
        for v, a in zip(values, allocatable, strict=True)
        if a
    ]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        # Not `sum`, which compensates rounding errors; the reference does not.
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return max(int((1 - deviation) * MAX_SCORE), MIN_INT64)


# Many rows


def least_allocated(
    requested: Ints,
    allocatable: Ints | Offers,
    weights: Ints,
    *,
    out: Ints,
    workspace: Workspace | None = None,
) -> Ints:
    """Score each row by the share of it that would stay free, 0..100.

    Per resource ``(allocatable - requested) * 100 / allocatable``, or 0 if more is requested than
    there is; then the weighted mean over the resources that the row has. Both divisions truncate.

    requested, allocatable
        ``int64[resource, row]``; allocatable also in the form for kernels.
    weights
        ``int64[resource, 1]``.
    out
        ``int64[row]``, overwritten and returned.
    workspace
        Memory for the numbers in between.
    """
    taken, wholes, counted = _prepared(requested, allocatable, weights, workspace)
    if taken.dtype == np.float64:
        free = np.subtract(wholes, taken, out=taken)
        np.maximum(free, 0.0, out=free)
    else:
        over = taken > wholes
        free = np.subtract(wholes, taken, out=taken)
        np.copyto(free, 0, where=over)
    return _weighted_mean(_percents(free, wholes), counted, out=out)


def most_allocated(
    requested: Ints,
    allocatable: Ints | Offers,
    weights: Ints,
    *,
    out: Ints,
    workspace: Workspace | None = None,
) -> Ints:
    """Score each row by the share of it that would be taken, 0..100.

    Per resource ``min(requested, allocatable) * 100 / allocatable``; arguments and mean as in
    `least_allocated`.
    """
    taken, wholes, counted = _prepared(requested, allocatable, weights, workspace)
    np.minimum(taken, wholes, out=taken)
    return _weighted_mean(_percents(taken, wholes), counted, out=out)


def requested_to_capacity_ratio(
    requested: Ints,
    allocatable: Ints | Offers,
    weights: Ints,
    curve: Ints,
    *,
    out: Ints,
    workspace: Workspace | None = None,
) -> Ints:
    """Score each row by a curve over utilization, 0..100.

    Per resource ``curve[requested * 100 / allocatable]``, or the end of the curve if more is
    requested than there is; then the weighted mean over the resources that the row has and whose
    score is above 0, rounded half up.

    curve
        ``int64[101]``, as `curve_of` gives it.

    The other arguments are those of `least_allocated`.
    """
    taken, wholes, counted = _prepared(requested, allocatable, weights, workspace)
    over = taken > wholes
    utilizations = _percents(taken, wholes)
    np.copyto(utilizations, MAX_UTILIZATION, where=over)
    np.clip(utilizations, 0, MAX_UTILIZATION, out=utilizations)
    scores = curve.take(utilizations.astype(np.intp))
    counted = counted * (scores > 0)
    totals = np.add.reduce(scores * counted, axis=0)
    means = np.divide(totals, _at_least_1(np.add.reduce(counted, axis=0)))
    lower = np.floor(means)
    out[:] = lower
    out += means - lower >= 0.5
    return out


#: Arrays with fewer elements than this are as soon made as reused.
_SMALL = 2048


class Workspace:
    """Memory for the arrays of a kernel, reused by the next call.

    From 128 kB on, new memory comes from the operating system page by page. At 5,000 rows that took
    a third of the time of balanced allocation.
    """

    def __init__(self) -> None:
        self._floats: Floats = np.empty(0)
        self._ints: Ints = np.empty(0, np.int64)

    def floats(self, *shape: int) -> Floats:
        """An array with arbitrary contents, valid until the next call."""
        size = math.prod(shape)
        if size < _SMALL:
            return np.empty(shape)
        if len(self._floats) < size:
            self._floats = np.empty(size)
        return self._floats[:size].reshape(shape)

    def sum(self, numbers: Ints, column: Ints) -> Ints:
        """int64[resource, row]: the sum of both, valid until the next call."""
        if numbers.size < _SMALL:
            return numbers + column
        if self._ints.size < numbers.size:
            self._ints = np.empty(numbers.size, np.int64)
        return np.add(numbers, column, out=self._ints[: numbers.size].reshape(numbers.shape))


class Offers(NamedTuple):
    """What rows offer, in the form for kernels."""

    #: float64[resource, row]: the amounts, 1 where a row does not have the resource.
    wholes: Floats
    #: bool[resource, row]: where a row has the resource; None if all rows have all of them.
    present: NDArray[np.bool_] | None
    #: int64[resource, row]: the amounts of all rows; and which rows these are.
    table: Ints
    rows: Rows | None
    #: Whether the amounts are exact in float64 even after being multiplied by 100.
    exact: bool

    @classmethod
    def of(cls, allocatable: Ints) -> Offers:
        """int64[resource, row]"""
        wholes = allocatable.astype(np.float64)
        present = None
        if np.count_nonzero(allocatable) < allocatable.size:
            present = allocatable != 0
            np.copyto(wholes, 1.0, where=~present)
        exact = _largest(allocatable) < _EXACT_IN_FLOAT
        return cls(wholes, present, allocatable, None, exact)

    def on(self, rows: Rows) -> Offers:
        if isinstance(rows, slice):
            return self
        present = self.present
        if present is not None:
            present = present.take(rows, axis=1)
            if np.count_nonzero(present) == present.size:
                present = None
        return Offers(self.wholes.take(rows, axis=1), present, self.table, rows, self.exact)

    @property
    def amounts(self) -> Ints:
        """int64[resource, row]: a copy, for those who need more than float64."""
        return (self.table if self.rows is None else self.table[:, self.rows]).copy()


class KeptOffers:
    """The offers of all rows, kept until a node changes."""

    def __init__(self) -> None:
        self._offers: Offers | None = None
        self._allocatable: Ints | None = None
        self._indices: Sequence[int] = ()
        self._epoch = -1
        self._size = -1

    def of(self, columns: Columns, indices: Sequence[int], rows: Rows) -> Offers:
        """For these resources, by their indices in the columns."""
        if (
            self._offers is None
            or self._epoch != columns.node_epoch
            or self._size != columns.size
            or self._allocatable is not columns.allocatable
            or self._indices != indices
        ):
            all_rows = gathered(columns.allocatable, indices, columns.all_rows)
            self._offers = Offers.of(all_rows)
            self._allocatable, self._indices = columns.allocatable, indices
            self._epoch, self._size = columns.node_epoch, columns.size
        return self._offers.on(rows)


def balanced_allocation(
    requested: Ints,
    allocated: Ints,
    allocatable: Ints | Offers,
    *,
    out: Ints,
    workspace: Workspace | None = None,
) -> Ints:
    """Score each row by how the pod changes the balance between its resources, 50..100.

    ``50 + (50 + balance(requested) - balance(allocated)) / 2``, where a balance is ``(1 - deviation)
    * 100`` of the shares of each resource that are taken, and a share is at most 1. Whole numbers
    truncate.

    requested, allocated, allocatable
        ``int64[resource, row]``; allocatable also in the form for kernels.
    out
        ``int64[row]``, overwritten and returned.

    The other arguments are those of `least_allocated`.
    """
    offers = allocatable if isinstance(allocatable, Offers) else Offers.of(allocatable)
    wholes, present = offers.wholes, offers.present
    shares = (workspace or Workspace()).floats(2, *allocated.shape)
    shares[0], shares[1] = requested, allocated
    np.divide(shares, wholes, out=shares)
    np.minimum(shares, 1.0, out=shares)
    balances = _deviations(shares, present)
    # A float as the other operand: NumPy takes twice as long over an int and few numbers.
    np.subtract(1.0, balances, out=balances)
    np.multiply(balances, float(MAX_SCORE), out=balances)
    half = MAX_SCORE // 2
    if np.minimum.reduce(balances, axis=None, initial=0) >= -_EXACT_IN_FLOAT:
        # All that follows is exact in float64, and conversions cost more than sums.
        np.trunc(balances, out=balances)
        changes = np.subtract(balances[0], balances[1], out=balances[0])
        changes += float(half)
        changes *= 0.5
        np.trunc(changes, out=changes)
        changes += float(half)
        out[:] = changes
        return out
    # A number beyond int64 becomes the lowest int64, as in the reference on amd64.
    np.maximum(balances, MIN_INT64, out=balances)
    with_pod, without = balances.astype(np.int64)
    np.subtract(with_pod, without, out=out)
    out += half
    # A shift rounds down. Adding 1 to negative numbers makes it truncate.
    out -= out >> 63
    out >>= 1
    out += half
    return out


# Cpu and memory on many states of rows, in float64


def is_exact_on_states(request: ScoredRequest) -> bool:
    """Whether the two functions below hold for a request: its sums with what pods hold are exact."""
    return min(request.amounts) >= 0 and max(request.amounts) < _EXACT_IN_FLOAT


def least_allocated_on_states(request: ScoredRequest, states: StateAmounts) -> Floats:
    """`least_allocated` for cpu and memory that count the same: float64[state].

    All numbers are exact, none is negative, and all states have both resources. Operations on whole arrays
    take a third of the time of those with a column or a scalar beside them, and of calls on parts of arrays.
    """
    wholes = states.offered
    free = states.counted + _column(request)
    # Not the larger one of the difference and 0, which would cost three times as much.
    np.minimum(free, wholes, out=free)
    np.subtract(wholes, free, out=free)
    np.multiply(free, 100.0, out=free)
    np.divide(free, wholes, out=free)
    np.floor(free, out=free)
    scores: Floats = np.add(free[0], free[1], out=free[0])
    np.multiply(scores, 0.5, out=scores)
    return np.floor(scores, out=scores)


def balanced_allocation_on_states(request: ScoredRequest, states: StateAmounts) -> Floats:
    """`balanced_allocation` for cpu and memory: float64[state]. See `least_allocated_on_states`."""
    wholes = states.offered
    balances: Floats = np.empty(wholes.shape)
    for place, taken in enumerate((states.requested + _column(request), states.requested)):
        shares = np.minimum(taken, wholes)
        np.divide(shares, wholes, out=shares)
        np.subtract(shares[0], shares[1], out=balances[place])
    np.abs(balances, out=balances)
    # 2 - x and then 50 times as much is rounded as 1 - x / 2 and then 100 times as much.
    np.subtract(2.0, balances, out=balances)
    np.multiply(balances, MAX_SCORE / 2, out=balances)
    np.floor(balances, out=balances)
    # Both are 50 or more, so the number to be halved is not negative: 50 + (50 + change) / 2.
    scores: Floats = np.subtract(balances[0], balances[1], out=balances[0])
    scores += 150.0
    scores *= 0.5
    return np.floor(scores, out=scores)


def _column(request: ScoredRequest) -> Floats:
    return np.array(request.amounts, np.float64).reshape(2, 1)


def _prepared(
    requested: Ints,
    allocatable: Ints | Offers,
    weights: Ints,
    workspace: Workspace | None,
) -> tuple[_Numbers, _Numbers, _Numbers]:
    """The parts, wholes and weights. If a row lacks a resource, the weight is 0 and the whole is 1.

    These are float64 if every step of a strategy is exact in float64, because its division takes a
    fifth of the time of int64 (3.7 µs against 20 for 10,000 elements). The quotient is exact if the
    numerator, 100 times a number that is not negative, is below 2**53.
    """
    offers = allocatable if isinstance(allocatable, Offers) else Offers.of(allocatable)
    counted: _Numbers
    if offers.exact and _largest(requested) < _EXACT_IN_FLOAT:
        taken: _Numbers = (workspace or Workspace()).floats(*requested.shape)
        taken[...] = requested
        wholes: _Numbers = offers.wholes
        counted = weights.astype(np.float64)
    else:
        taken, wholes, counted = requested.copy(), offers.amounts, weights
        if offers.present is not None:
            np.copyto(wholes, 1, where=~offers.present)
    if offers.present is not None:
        # Else one weight for each resource will do: [resource, 1].
        counted = counted * offers.present
    return taken, wholes, counted


def _largest(numbers: Ints) -> int:
    """The largest number as uint64: negative numbers are larger than all others."""
    return int(np.maximum.reduce(numbers.view(np.uint64), axis=None, initial=0))


def _percents(parts: _Numbers, wholes: _Numbers) -> _Numbers:
    """``parts * 100 / wholes``, truncated, in place."""
    np.multiply(parts, 100.0 if parts.dtype == np.float64 else 100, out=parts)
    return _divided(parts, wholes)


def _weighted_mean(scores: _Numbers, counted: _Numbers, *, out: Ints) -> Ints:
    """The mean over the resources, truncated; 0 if none counts. Overwrites the scores."""
    total_weights: _Numbers | float
    if counted.shape[1:] == (1,):
        # One weight for each resource. Few numbers are summed faster without NumPy.
        weights = counted[:, 0].tolist()
        total_weights = max(sum(weights), 1)
        if weights.count(1) < len(weights):
            np.multiply(scores, counted, out=scores)
    else:
        np.multiply(scores, counted, out=scores)
        total_weights = _at_least_1(np.add.reduce(counted, axis=0))
    out[:] = _divided(_summed(scores), total_weights)
    return out


def _summed(scores: _Numbers) -> _Numbers:
    """The sums over the resources. For two, as nearly always, one sum costs half of a reduction."""
    summed: _Numbers
    if len(scores) == 2:
        summed = np.add(scores[0], scores[1], out=scores[0])
    else:
        summed = np.add.reduce(scores, axis=0)
    return summed


def _at_least_1(total_weights: _Numbers) -> _Numbers:
    return np.maximum(total_weights, 1, out=total_weights)


def _divided(numerators: _Numbers, divisors: _Numbers | float) -> _Numbers:
    """The quotients truncated toward zero, in place."""
    if numerators.dtype == np.float64:
        np.divide(numerators, divisors, out=numerators)
        return np.floor(numerators, out=numerators)
    # All magnitudes fit uint64, and negation wraps there as in int64.
    divisors = np.asarray(divisors, np.int64)
    negative = (numerators < 0) != (divisors < 0)
    quotients = np.abs(numerators).view(np.uint64) // np.abs(divisors).view(np.uint64)
    np.negative(quotients, out=quotients, where=negative)
    numerators[...] = quotients.view(np.int64)
    return numerators


def _deviations(shares: Floats, present: NDArray[np.bool_] | None) -> Floats:
    """``float64[2, row]``: the standard deviations of ``float64[2, resource, row]``, over resources.

    For two shares it is half their difference, for fewer it is 0. Sums are in the order of
    resources. Overwrites the shares.
    """
    if shares.shape[1] == 2:
        deviations: Floats = np.subtract(shares[:, 0], shares[:, 1], out=shares[:, 0])
        np.multiply(deviations, 0.5, out=deviations)
        np.abs(deviations, out=deviations)
        if present is not None:
            np.copyto(deviations, 0.0, where=~(present[0] & present[1]))
        return deviations
    if present is None:
        present = np.ones(shares.shape[1:], np.bool_)
    counts = np.add.reduce(present, axis=0, dtype=np.int64)
    divisors = np.maximum(counts, 1)
    means = np.zeros((2, len(counts)))
    for resource, there in enumerate(present):
        np.add(means, shares[:, resource], out=means, where=there)
    means /= divisors
    deviations = np.zeros_like(means)
    for resource, there in enumerate(present):
        distances = shares[:, resource] - means
        np.add(deviations, distances * distances, out=deviations, where=there)
    deviations /= divisors
    np.sqrt(deviations, out=deviations)
    highest = np.max(shares, axis=1, where=present, initial=-np.inf)
    lowest = np.min(shares, axis=1, where=present, initial=np.inf)
    np.copyto(deviations, (highest - lowest) / 2, where=counts == 2)
    np.copyto(deviations, 0.0, where=counts < 2)
    return deviations
