"""The beta distribution: how likely the load of a node stays below a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Each step of the continued fraction; more are never needed for 64 bits.
_MOST_STEPS = 10_000
_PRECISION = 1e-16
_TINY = 1e-300
_SMALLEST = 5e-324


@dataclass(frozen=True, slots=True)
class Beta:
    alpha: float
    beta: float

    @classmethod
    def with_moments(cls, mean: float, second: float) -> Beta | None:
        """The distribution with this mean and second moment; None if there is none."""
        variance = second - mean * mean
        if not 0 <= mean <= 1 or variance < 0 or variance >= mean * (1 - mean):
            return None
        total = math.inf if variance == 0 else mean * (1 - mean) / variance - 1
        total = max(total, _SMALLEST)
        return cls(mean * total, (1 - mean) * total)

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> float:
        return self.mean * (self.alpha + 1) / (self.alpha + self.beta + 1) - self.mean**2

    def below(self, x: float) -> float:
        """The probability of a value up to `x`."""
        found = regularized_incomplete(x, self.alpha, self.beta)
        return found if 0 <= found <= 1 else 0.0

    def density(self, x: float) -> float:
        try:
            found = x ** (self.alpha - 1) * (1 - x) ** (self.beta - 1)
        except ZeroDivisionError:
            return math.inf
        return float(found / complete(self.alpha, self.beta))


def complete(a: float, b: float) -> float:
    return math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))


def max_variance(mean: float) -> float:
    """What the variance of values between 0 and 1 with this mean stays below."""
    return mean * (1 - mean) if 0 < mean < 1 else 0.0


def regularized_incomplete(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function; NaN outside of its domain."""
    if a <= 0 or b <= 0 or not 0 <= x <= 1:
        return math.nan
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _by_fraction(1 - x, b, a)
    return _by_fraction(x, a, b)


def _by_fraction(x: float, a: float, b: float) -> float:
    """By the continued fraction of the function, evaluated from the front (Lentz)."""
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, _reciprocal(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = _reciprocal(1 + even * d), _not_zero(1 + even / c)
        result *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = _reciprocal(1 + odd * d), _not_zero(1 + odd / c)
        result *= d * c
        if abs(d * c - 1) < _PRECISION:
            break
    return front * result


def _not_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY


def _reciprocal(number: float) -> float:
    return 1 / _not_zero(number)


def probability_below(mean: float, deviation: float, threshold: float) -> tuple[float, Beta | None]:
    """That the load stays below a threshold, and the distribution that this comes from, if one is needed."""
    if mean == 0 or (deviation == 0 and mean <= threshold):
        return 1.0, None
    if deviation == 0:
        return 0.0, None
    found = Beta.with_moments(mean, deviation * deviation + mean * mean)
    if found is None:
        return 0.0, None
    return found.below(threshold), found
