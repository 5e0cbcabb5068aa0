"""Evaluating an expression in a test."""

from __future__ import annotations

from typing import Any

from mooring.cel.errors import CelAbort, CelCompileError, CelError
from mooring.cel.kubernetes import base_environment
from mooring.cel.program import Program

LIMIT = 1_000_000
_ENVIRONMENT = base_environment()


def value_of(expression: str) -> Any:
    return Program(expression, _ENVIRONMENT, [], LIMIT).evaluate()[0]


def cost_of(expression: str) -> int:
    return Program(expression, _ENVIRONMENT, [], LIMIT).evaluate()[1]


def answer_to(expression: str) -> Any:
    """The value, or which kind of error with its text."""
    try:
        return value_of(expression)
    except CelCompileError as error:
        return ("compile", str(error))
    except CelError as error:
        return ("runtime", str(error))
    except CelAbort as error:
        return ("abort", str(error))
