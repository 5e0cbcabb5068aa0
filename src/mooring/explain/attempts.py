"""The attempts at one pod, from the journal of a run: what each decided, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mooring.explain.explanation import Explanation
from mooring.explain.story import Step, gate_step, given_up_step, names_in_short, steps_of
from mooring.explain.what_if import DecisionView
from mooring.scheduler.journal import Decided, Fact, FactKind, Preempted

#: What can come of an attempt.
_RESULTS = frozenset((FactKind.FAILED, FactKind.NOMINATED, FactKind.WAITING, FactKind.BOUND))


@dataclass(slots=True)
class Attempt:
    """One search for a node, and what followed until the next one."""

    decided: Decided
    #: "" if it did not fail.
    failure: str = ""
    #: What it waited for after the choice, such as `for Permit of Gang`; "" if it did not wait.
    waited: str = ""
    #: The node that preemption nominated; "" if none.
    nominated: str = ""
    bound: bool = False
    #: The pods that preemption evicted for it.
    evicted: list[Preempted] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """bound, waiting, preempted (others), rejected (after a node was chosen) or failed."""
        if self.bound:
            return "bound"
        if self.decided.node:
            return "rejected" if self.failure else "waiting"
        return "preempted" if self.evicted else "failed"

    def to_data(self) -> dict[str, Any]:
        return {
            "number": self.decided.number,
            "atSeconds": self.decided.at_s,
            "node": self.decided.node or None,
            "feasible": self.decided.feasible,
            "outcome": self.outcome,
            "message": self.failure,
        }


def attempts_of(facts: Iterable[Fact], uid: str) -> list[Attempt]:
    """`facts` are those of the pod and the evictions for it, in order; others are skipped."""
    attempts: list[Attempt] = []
    for fact in facts:
        if isinstance(fact, Decided) and fact.uid == uid:
            attempts.append(Attempt(fact))
        elif attempts:
            _add(attempts[-1], fact, uid)
    return attempts


def _add(attempt: Attempt, fact: Fact, uid: str) -> None:
    if isinstance(fact, Preempted) and fact.preemptor is not None and fact.preemptor.uid == uid:
        attempt.evicted.append(fact)
    if fact.uid != uid or fact.what not in _RESULTS:
        return
    match fact.what:
        case FactKind.FAILED:
            attempt.failure = fact.message
        case FactKind.NOMINATED:
            attempt.nominated = fact.node
        case FactKind.WAITING:
            attempt.waited = fact.message
        case FactKind.BOUND:
            attempt.bound = True


def explain_attempt(view: DecisionView, attempt: Attempt) -> Explanation:
    """One attempt, on the cluster of its moment."""
    return Explanation(
        pod=view.pod.key,
        state=attempt.outcome,
        node=attempt.decided.node,
        as_of=f"as the cluster was at attempt {attempt.decided.number}",
        message=attempt.failure,
        story=(gate_step(None, ""), *steps_of(view), *_followed(view, attempt)),
        matrix=view.matrix,
        margin=view.margin,
        tied=view.tied,
    )


def eviction_sentence(evicted: Iterable[Preempted]) -> str:
    """`evicted a (priority 1), b (priority 2) from n1`."""
    victims = [(f"{each.pod} (priority {each.victim.priority})", each.node) for each in evicted]
    nodes = ", ".join(dict.fromkeys(node for _, node in victims))
    return f"evicted {names_in_short([name for name, _ in victims])} from {nodes}"


def _followed(view: DecisionView, attempt: Attempt) -> Iterator[Step]:
    node = attempt.decided.node
    if not node:
        if attempt.evicted:
            yield Step("PostFilter", "helped", eviction_sentence(attempt.evicted))
        elif attempt.nominated:
            yield Step("PostFilter", "helped", f"the pod is nominated for {attempt.nominated}")
        else:
            more = attempt.failure.removeprefix(view.fit_error).strip()
            yield Step("PostFilter", "rejected", more or "no pod can be evicted to make room")
        return
    if attempt.waited.startswith("for Permit"):
        outcome = "rejected" if attempt.failure else "passed" if attempt.bound else "waiting"
        said = attempt.failure or f"waited {attempt.waited}"
        yield Step("Permit", outcome, said)
    elif attempt.failure:
        yield given_up_step(node, attempt.failure)
    if attempt.bound:
        yield Step("Bind", "passed", f"bound to {node}")
