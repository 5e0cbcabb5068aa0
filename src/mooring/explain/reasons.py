"""The reasons in a scheduler's message, and how many nodes each is about.

`0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient cpu. preemption: …` has two reasons. A
message is all that the journal keeps of a failed attempt, so this is how pods are grouped by what stops them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.framework.status import Status
from mooring.scheduler.diagnosis import Diagnosis

_FIT_ERROR = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
#: What PostFilter plugins add follows the reasons.
_ADDED = re.compile(
    r"\.(?:$| (?=[^.]*preemption:)| (?=no new claims to deallocate|still not schedulable|not found$))"
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


def learn_plugins(diagnosis: Diagnosis, plugins: dict[str, str]) -> None:
    """Add the plugin of each reason that is not known yet: messages do not name plugins.

    Call this while the diagnosis is valid. Most attempts fail for reasons that are known, and cost only
    the text that their pods are told in any case.
    """
    if all(each.text in plugins for each in reasons_in(diagnosis.fit_error)):
        return
    for status in _rejections(diagnosis):
        for text in status.all_reasons:
            if status.plugin:
                plugins.setdefault(text, status.plugin)
    if diagnosis.pre_filter_message and len(diagnosis.unschedulable_plugins) == 1:
        [plugin] = diagnosis.unschedulable_plugins
        plugins.setdefault(diagnosis.pre_filter_message, plugin)


def _rejections(diagnosis: Diagnosis) -> Iterator[Status]:
    yield diagnosis.absent
    yield from diagnosis.by_extenders.values()
    if diagnosis.has_verdicts:
        for status, _ in diagnosis.matrix.refusals():
            yield status
