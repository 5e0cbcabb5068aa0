"""Extenders may remove candidates, and choose other victims."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from mooring.objects.pod import Pod
from mooring.plugin import ExtenderError, PreemptionExtender, Snapshot, Victims
from mooring.plugins.default_preemption.candidates import NO_VICTIM_NEEDED, Candidate

_LOG = logging.getLogger(__name__)


def agreed(
    extenders: Sequence[PreemptionExtender],
    pod: Pod,
    candidates: Mapping[str, Candidate],
    snapshot: Snapshot,
) -> Mapping[str, Candidate]:
    """Call the extenders in turn, each with what the last one left. Raises ExtenderError.

    The victims, their order and the number of violations are then those of the extender.
    """
    asked = [extender for extender in extenders if extender.has_say_in_preemption_for(pod)]
    if not asked:
        return candidates
    left = {name: Victims(c.victims, c.violations) for name, c in candidates.items()}
    for extender in asked:
        if not left:
            break
        try:
            answer = extender.process_preemption(pod, left, snapshot)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            _LOG.info("preemption for %s goes on without an extender: %s", pod.key, error)
            continue
        left = _with_victims(answer, ignorable=extender.ignorable)
    return {
        name: Candidate(name, victims.pods, victims.violations) for name, victims in left.items()
    }


def _with_victims(answer: Mapping[str, Victims], *, ignorable: bool) -> dict[str, Victims]:
    """Drop nodes without victims, which only an ignorable extender may return."""
    for name, victims in answer.items():
        if not victims.pods and not ignorable:
            raise ExtenderError(NO_VICTIM_NEEDED.format(name))
    return {name: victims for name, victims in answer.items() if victims.pods}
