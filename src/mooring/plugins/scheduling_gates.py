"""SchedulingGates: a pod stays out of the queue until the last of its gates is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Action,
    EventWithHint,
    Hint,
    Refusals,
    Status,
    Suggestion,
    on_add_or_update,
    unresolvable,
)
from mooring.plugin.changes import RemoveGates

#: Followed by the names of the gates, in the order of the spec.
WAITING = "waiting for scheduling gates: [{gates}]"

_GATES_ELIMINATED = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED


class SchedulingGates:
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(WAITING.format(gates=" ".join(gate.name for gate in gates)))

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        gates = pod.spec.scheduling_gates
        if gates:
            yield Suggestion.fixed(RemoveGates(tuple(gate.name for gate in gates)))

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (on_add_or_update(Pod, _GATES_ELIMINATED, _after_gates_are_gone),)


def _after_gates_are_gone(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
