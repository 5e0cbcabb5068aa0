"""Compiling the selectors of claims and classes, and what can go wrong with them.

`cel_selectors` has the selectors themselves. It is loaded with the first of them: most clusters have none,
and the interpreter of CEL is large.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mooring.errors import MooringError

if TYPE_CHECKING:
    from mooring.devices.cel_selectors import Selector

#: How many compiled expressions are kept.
_KEPT_SELECTORS = 1024


class SelectorCompileError(MooringError):
    """An expression that cannot be compiled. The text is what follows `CEL compile error: `."""


class SelectorRuntimeError(MooringError):
    """An expression that says neither yes nor no about a device.

    The text is what follows `CEL runtime error: `.
    """


@lru_cache(maxsize=_KEPT_SELECTORS)
def compile_selector(expression: str, *, list_attributes: bool = False) -> Selector:
    """The selector of an expression. Raises SelectorCompileError.

    With `list_attributes`, it can use attributes that are lists. Without, they make it fail.
    """
    from mooring.devices.cel_selectors import Selector

    return Selector(expression, list_attributes=list_attributes)
