"""An expression that can be evaluated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mooring.cel.checker import check
from mooring.cel.environment import Environment
from mooring.cel.errors import COST_LIMIT, CelAbort, CelCompileError, CelError
from mooring.cel.parser import parse
from mooring.cel.plan import Planner
from mooring.cel.types import Type
from mooring.cel.validation import validate

#: Frames of Python that the deepest expression needs; the parser limits how deep it can be.
_DEEP_STACK = 20_000


class Program:
    """A compiled expression. `result_type` is what the checker found."""

    __slots__ = ("_evaluate", "_frame", "_limit", "result_type")

    def __init__(
        self, text: str, env: Environment, variables: Sequence[str], cost_limit: int
    ) -> None:
        """Compile the text. Raises CelCompileError.

        `variables` are the names of the values that `evaluate` is given, in order.
        """
        if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
            raise CelCompileError(
                "compilation failed: ERROR: <input>:-1:0: text is not valid UTF-8"
            )
        self._limit = cost_limit
        try:
            self._compile(text, env, list(variables))
        except RecursionError:
            _allow_depth()
            self._compile(text, env, list(variables))

    def _compile(self, text: str, env: Environment, variables: list[str]) -> None:
        expr = parse(text)
        self.result_type: Type = check(expr, env, text)
        validate(expr, text)
        planner = Planner(env, variables, self._limit)
        self._evaluate = planner.evaluation(expr)
        self._frame: list[Any] = [None] * (planner.slots - 1 - len(variables))

    def evaluate(self, *values: Any) -> tuple[Any, int]:
        """The value and what it cost. Raises CelError or CelAbort."""
        frame: list[Any] = [0, *values, *self._frame]
        try:
            value = self._evaluate(frame)
        except CelError:
            if frame[0] > self._limit:
                raise CelAbort(COST_LIMIT) from None
            raise
        except RecursionError:
            if sys.getrecursionlimit() >= _DEEP_STACK:
                raise
            _allow_depth()
            return self.evaluate(*values)
        if frame[0] > self._limit:
            raise CelAbort(COST_LIMIT)
        return value, frame[0]


def _allow_depth() -> None:
    """Raise Python's own limit. Its frames need no C stack, so that this is safe."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEP_STACK))
