"""The rules that a plugin promises to keep, and what to do about one that is broken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One promise of the contract."""

    #: How commands and tests name it.
    name: str
    #: What holds if it is kept.
    title: str
    advice: str


INPUTS = Rule(
    "inputs",
    "it changes nothing that it is given",
    "copy what you change; write results into the cycle state under a key of your own",
)
BLOCKS = Rule(
    "blocks",
    "it does not block",
    "nothing is scheduled while a method waits: feed what comes from outside beside the cycle"
    " (handle.spawn), and only read it here",
)
RAISES = Rule(
    "raises",
    "it does not fail",
    "every attempt at such a pod fails with an internal error: return unschedulable(reason) for a"
    " refusal, and have an answer for nodes and pods that lack what you read",
)
REPEATS = Rule(
    "repeats",
    "it gives the same answers in each run",
    "draw no random numbers, read no wall clock (use handle.clock), and let nothing depend on the order"
    " of a set",
)
SCORES = Rule(
    "scores",
    "scores are whole numbers, from 0 to 100 after normalizing",
    "return int (int64 for rows), and scale with normalize_scores what is not from 0 to 100",
)
ROWS = Rule(
    "rows",
    "all rows at once say what each node says",
    "the two forms must be one rule: dry runs ask about a node, decisions about all rows",
)
DEPENDS = Rule(
    "depends_on",
    "answers depend on no more than it says",
    "return the wider Depends (USAGE if it reads pods of the node, NODES for other nodes, CLUSTER for"
    " all else), or leave depends_on out",
)
SIGN = Rule(
    "sign",
    "pods with equal signatures get equal answers",
    "put every part of the pod that a method reads into the mapping that sign returns",
)
HINTS = Rule(
    "hints",
    "no hint skips an event after which a refused pod fits",
    "register for the event in events_to_register, and return Hint.QUEUE when in doubt",
)
UNRESERVE = Rule(
    "unreserve",
    "unreserve undoes reserve, and may be called twice or without it",
    "forget in unreserve all that reserve remembers, with pop(key, None) or discard",
)

#: In the order in which they are reported if a step breaks several.
RULES = (INPUTS, BLOCKS, REPEATS, SCORES, ROWS, RAISES, SIGN, DEPENDS, HINTS, UNRESERVE)

#: After one of these is broken, answers mean nothing.
BASIC = (INPUTS, BLOCKS, REPEATS, RAISES)

#: A rule that is broken → rules that are broken in consequence, and say nothing more.
CONSEQUENCES = {
    SCORES: (RAISES,),
    ROWS: (RAISES, DEPENDS, HINTS),
    SIGN: (DEPENDS,),
}


class Broken(Exception):
    """A rule that a plugin breaks in a case."""

    def __init__(self, rule: Rule, problem: str) -> None:
        super().__init__(f"{rule.title}: {problem}")
        self.rule = rule
        self.problem = problem
