"""What can go wrong with an expression.

CelCompileError   it does not parse, does not type-check, or a constant in it has no value
CelError          it has no value for this input; `&&`, `||` and quantifiers may absorb it
CelAbort          the evaluation is given up: cost limit exceeded, or a defect of the reference
"""

from __future__ import annotations


class CelCompileError(Exception):
    """An expression that cannot be made into a program; the text is the one users see."""


class CelError(Exception):
    """An expression without a value."""


class CelAbort(Exception):
    """An evaluation that no operator may absorb."""


#: The reference's texts, verbatim: they end up in the message shown on a pod.
COST_LIMIT = "operation cancelled: actual cost limit exceeded"
NO_OVERLOAD = "no such overload"
INT_OVERFLOW = "integer overflow"
UINT_OVERFLOW = "unsigned integer overflow"
TIMESTAMP_OVERFLOW = "timestamp overflow"
