"""An expression that can be evaluated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mooring.cel.checker import check
from mooring.cel.environment import Environment
from mooring.cel.errors import COST_LIMIT, CelAbort, CelError
from mooring.cel.parser import parse
from mooring.cel.plan import Planner
from mooring.cel.types import Type
from mooring.cel.validation import validate

#: Frames of Python that the deepest expression needs; the parser limits how deep it can be.
_DEEP_STACK = 20_000
#: Texts with fewer brackets, dots and operators than this are never that deep.
_SHALLOW = 60


class Program:
    """A compiled expression. `result_type` is what the checker found."""

    __slots__ = ("_deep", "_evaluate", "_frame", "_limit", "result_type")

    def __init__(
        self, text: str, env: Environment, variables: Sequence[str], cost_limit: int
    ) -> None:
        """Compile the text. Raises CelCompileError.

        `variables` are the names of the values that `evaluate` is given, in order.
        """
        self._deep = sum(map(text.count, "([{.+-*/%?<>=!&|")) >= _SHALLOW
        self._allow_depth()
        expr = parse(text)
        self.result_type: Type = check(expr, env, text)
        validate(expr, text)
        planner = Planner(env, list(variables), cost_limit)
        self._evaluate = planner.evaluation(expr)
        self._frame: list[Any] = [None] * (planner.slots - 1 - len(variables))
        self._limit = cost_limit

    def evaluate(self, *values: Any) -> tuple[Any, int]:
        """The value and what it cost. Raises CelError or CelAbort."""
        if self._deep:
            self._allow_depth()
        frame: list[Any] = [0, *values, *self._frame]
        try:
            value = self._evaluate(frame)
        except CelError:
            if frame[0] > self._limit:
                raise CelAbort(COST_LIMIT) from None
            raise
        if frame[0] > self._limit:
            raise CelAbort(COST_LIMIT)
        return value, frame[0]

    def _allow_depth(self) -> None:
        # Frames of Python need no C stack, so that this limit is safe.
        if self._deep and sys.getrecursionlimit() < _DEEP_STACK:
            sys.setrecursionlimit(_DEEP_STACK)
