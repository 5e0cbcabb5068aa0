"""The reasons in a scheduler's message, and how many nodes each is about.

`0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient cpu. preemption: …` has two reasons. A
message is all that the journal keeps of a failed attempt, so this is how pods are grouped by what stops them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FIT_ERROR = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
#: What PostFilter plugins add follows the reasons.
_ADDED = re.compile(
    r"\.(?:$| (?=[^.]*preemption:)| (?=no new claims to deallocate|still not schedulable))"
)
_NEXT = re.compile(r", (?=\d+ )")
_COUNTED = re.compile(r"(\d+) (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reason:
    text: str
    #: How many nodes it is about; 0 if the message does not say.
    nodes: int


def reasons_in(message: str) -> tuple[Reason, ...]:
    """The reasons, of most nodes first. Another kind of message is one reason."""
    found = _FIT_ERROR.match(message)
    if found is None:
        return (Reason(message, 0),) if message else ()
    listed = _ADDED.split(found[2], maxsplit=1)[0].rstrip(".")
    reasons = [_reason(part) for part in _NEXT.split(listed)]
    return tuple(sorted(reasons, key=lambda each: -each.nodes))


def _reason(part: str) -> Reason:
    counted = _COUNTED.match(part)
    return Reason(counted[2], int(counted[1])) if counted is not None else Reason(part, 0)


def cause_data(message: str, plugins: Mapping[str, str]) -> dict[str, Any]:
    """The message in short; `plugins` has the plugin that gives each reason, as far as known."""
    reasons = reasons_in(message)
    found = _FIT_ERROR.match(message)
    return {
        "text": ", ".join(
            f"{each.nodes} {each.text}" if each.nodes else each.text for each in reasons
        ),
        "of": int(found[1]) if found is not None else 0,
        "reasons": [[each.text, each.nodes, plugins.get(each.text, "")] for each in reasons],
    }
