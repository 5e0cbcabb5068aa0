"""Expectations as a line of text.

    expectation = pods conditions | pod conditions | usage
    pods        = [ "all" | "no" | N | ("at least" | "at most") N ] "pods" | "1 pod"
                  [ "of" (SELECTOR | KIND/NAME) ] [ "in" NAMESPACE ] [ "are" ]
    pod         = "pod" NAME [ "is" ]
    conditions  = condition { "and" condition }
    condition   = "placed" [ "within" DURATION ]
                | "pending" [ "by" PLUGIN ] [ "because" TEXT ]
                | "finished" | "exist" | "gone"
                | "preempted" [ "by" POD ]
                | [ "not" ] "on" nodes
                | [ "not" ] "in zone" NAME
                | "on distinct" KEY
                | "spread over" [ [ "at least" | "at most" ] N ] KEY [ "with skew" [ "at most" ] N ]
    nodes       = "node" NAME | "nodes" NAME,NAME | "nodes with" SELECTOR | "nodes with taint" TAINT
    usage       = RESOURCE "of" whole ( "at least" P% | "at most" P% | "between" P% "and" P% )
    whole       = "the cluster" | "node" NAME | "nodes with" SELECTOR | "every node" [ "with" SELECTOR ]
    KEY         = "zones" | "regions" | "nodes" | a label of nodes

Words are separated by blanks; a selector or a text with blanks must be in quotes. `spread`, `distinct`,
`preempted` and `gone` cannot be combined with other conditions, because they are not about a single pod.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mooring.objects.well_known import ZONE
from mooring.sim.scenarios.expectations import (
    KEYS,
    Expectation,
    Gone,
    HowMany,
    PodsMeet,
    Preempted,
    Spread,
    Utilisation,
)
from mooring.sim.scenarios.fields import FieldError, did_you_mean, seconds
from mooring.sim.scenarios.pod_conditions import (
    Exists,
    HasFinished,
    OnNodes,
    PendingFor,
    Placed,
    PodCondition,
    parse_taint,
)
from mooring.sim.scenarios.references import parse_reference, pod_key
from mooring.sim.scenarios.selector_text import parse_selector
from mooring.sim.scenarios.view import Subject

_WORD = re.compile(r""""([^"]*)"|'([^']*)'|(\S+)""")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%?")
_CONDITIONS = (
    "placed",
    "pending",
    "finished",
    "exist",
    "gone",
    "preempted",
    "on",
    "in",
    "not",
    "spread",
)


def parse_expectation(text: str) -> Expectation:
    """Raises FieldError, which names the expected words and their position."""
    words = _Words(text)
    if words.takes("pod"):
        key = pod_key(words.next("a pod's name"))
        words.takes("is")
        return _of_pods(words, Subject(pod=key), HowMany())
    start = words.position
    how_many = _how_many(words)
    if words.takes("pods") or (how_many == HowMany(1, 1) and words.takes("pod")):
        subject = _subject(words)
        words.takes("are")
        return _of_pods(words, subject, how_many)
    if words.position != start:
        raise words.error("pods")
    return _usage(words)


# Pods


def _how_many(words: _Words) -> HowMany:
    if words.takes("all"):
        return HowMany()
    if words.takes("no"):
        return HowMany(0, 0)
    return words.bounds() or HowMany()


def _subject(words: _Words) -> Subject:
    subject = Subject()
    if words.takes("of"):
        of = words.next("a label selector such as app=web, or KIND/NAME")
        if "=" not in of and "/" in of and " " not in of and not of.startswith("!"):
            subject = replace(subject, owner=parse_reference(of))
        else:
            subject = replace(subject, selector=parse_selector(of))
    if words.peek() == "in" and words.peek(1) != "zone":
        words.takes("in")
        words.takes("namespace")
        subject = replace(subject, namespace=words.next("a namespace"))
    return subject


def _of_pods(words: _Words, subject: Subject, how_many: HowMany) -> Expectation:
    alone = _standing_alone(words, subject, how_many)
    if alone is not None:
        words.end()
        return alone
    conditions = [_condition(words)]
    while words.takes("and"):
        conditions.append(_condition(words))
    words.end()
    return PodsMeet(words.text, subject, how_many, tuple(conditions))


def _standing_alone(words: _Words, subject: Subject, how_many: HowMany) -> Expectation | None:
    text = words.text
    if words.takes("preempted"):
        if subject.owner is not None:
            raise FieldError("preempted pods no longer have an owner; select them by labels")
        by = pod_key(words.next("a pod's name")) if words.takes("by") else ""
        return Preempted(text, subject, how_many, by)
    if words.takes("gone"):
        if not subject.pod:
            raise FieldError("'gone' works for one pod; for several, write 'no pods of … exist'")
        return Gone(text, subject.pod)
    if words.takes("spread"):
        _needs_all(how_many, "spread")
        words.must_take("over")
        number = words.bounds()
        key = _key(words)
        skew = None
        if words.takes("with"):
            words.must_take("skew")
            if words.takes("at"):
                words.must_take("most")
            skew = words.number()
        return Spread(text, subject, key, number, skew)
    if words.peek() == "on" and words.peek(1) == "distinct":
        _needs_all(how_many, "on distinct")
        words.takes("on")
        words.takes("distinct")
        return Spread(text, subject, _key(words), distinct=True)
    return None


def _needs_all(how_many: HowMany, what: str) -> None:
    if not how_many.all:
        raise FieldError(f"{what!r} applies to all pods, not to {how_many} of them")


def _key(words: _Words) -> str:
    key = words.next("zones, regions, nodes or a label of nodes")
    if key in KEYS:
        return KEYS[key]
    if "/" not in key and "." not in key and (hint := did_you_mean(key, KEYS)):
        raise FieldError(f"{key!r} is not a topology key{hint}")
    return key


# Conditions of one pod


def _condition(words: _Words) -> PodCondition:
    if words.takes("placed"):
        return Placed(seconds(words.next("a duration")) if words.takes("within") else None)
    if words.takes("pending"):
        plugin = words.next("a plugin's name") if words.takes("by") else ""
        because = words.next("a part of the message, in quotes") if words.takes("because") else ""
        return PendingFor(because, plugin)
    if words.takes("finished"):
        return HasFinished()
    if words.takes("exist") or words.takes("exists"):
        return Exists()
    negated = words.takes("not")
    if words.takes("in"):
        words.must_take("zone")
        return _in_zone(words.next("the name of a zone"), negated=negated)
    if words.takes("on"):
        return replace(_on_nodes(words), negated=negated)
    if words.peek() in ("preempted", "gone", "spread"):
        raise FieldError(f"{words.peek()!r} cannot be combined; write it as a separate expectation")
    raise words.error(*(("on", "in zone") if negated else _CONDITIONS))


def _in_zone(zone: str, *, negated: bool) -> OnNodes:
    labels = f"{ZONE}={zone}"
    return OnNodes(labels=labels, selector=parse_selector(labels), negated=negated)


def _on_nodes(words: _Words) -> OnNodes:
    if words.takes("node"):
        return OnNodes(names=(words.next("the name of a node"),))
    words.must_take("nodes", "node", "distinct")
    if not words.takes("with"):
        return OnNodes(names=tuple(words.next("names of nodes").split(",")))
    if words.takes("taint"):
        return OnNodes(taint=parse_taint(words.next("a taint such as key=value:NoSchedule")))
    labels = words.next("a label selector such as pool=gpu, or taint")
    return OnNodes(labels=labels, selector=parse_selector(labels))


# Utilisation


def _usage(words: _Words) -> Expectation:
    resource = words.next("all, no, a number, pods, pod, or a resource such as cpu")
    if not words.takes("of"):
        raise FieldError(
            f"{words.text!r}: must start with pods ('all pods of app=web placed') or a resource"
            f" ('cpu of the cluster at most 80%'){did_you_mean(resource, ('all', 'no', 'pods', 'pod'))}"
        )
    usage = _of_nodes(words, Utilisation(words.text, resource))
    if words.takes("between"):
        least = words.percent()
        words.must_take("and")
        usage = replace(usage, least_percent=least, most_percent=words.percent())
    else:
        words.must_take("at", "between")
        if words.takes("least"):
            usage = replace(usage, least_percent=words.percent())
        else:
            words.must_take("most", "least")
            usage = replace(usage, most_percent=words.percent())
    words.end()
    return usage


def _of_nodes(words: _Words, usage: Utilisation) -> Utilisation:
    if words.takes("the"):
        words.must_take("cluster")
        return usage
    if words.takes("node"):
        return replace(usage, node=words.next("the name of a node"))
    if words.takes("every"):
        words.must_take("node")
        usage = replace(usage, each_node=True)
        if not words.takes("with"):
            return usage
    else:
        words.must_take("nodes", "the cluster", "every node", "node")
        words.must_take("with")
    return replace(usage, selector=parse_selector(words.next("a label selector")))


class _Words:
    """The words of a line, read one by one."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        found = list(_WORD.finditer(text))
        self._words = [next(part for part in each.groups() if part is not None) for each in found]
        #: Words in quotes are never words of the grammar.
        self._quoted = [each[3] is None for each in found]
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        """The next word; "" at the end, and for a word in quotes."""
        at = self.position + ahead
        return "" if at >= len(self._words) or self._quoted[at] else self._words[at]

    def takes(self, word: str) -> bool:
        if self.peek().lower() != word:
            return False
        self.position += 1
        return True

    def must_take(self, word: str, *others: str) -> None:
        if not self.takes(word):
            raise self.error(word, *others)

    def next(self, what: str) -> str:
        if self.position >= len(self._words):
            raise self.error(what)
        self.position += 1
        return self._words[self.position - 1]

    def number(self) -> int:
        if not self.peek().isdecimal():
            raise self.error("a number")
        return int(self.next("a number"))

    def percent(self) -> float:
        found = _PERCENT.fullmatch(self.peek())
        if found is None:
            raise self.error("a percentage such as 80%")
        self.position += 1
        return float(found[1])

    def bounds(self) -> HowMany | None:
        """`3`, `at least 3`, `at most 3`; None if no number follows."""
        if self.takes("at"):
            if self.takes("least"):
                return HowMany(least=self.number())
            self.must_take("most", "least")
            return HowMany(most=self.number())
        if not self.peek().isdecimal():
            return None
        number = self.number()
        return HowMany(number, number)

    def end(self) -> None:
        if self.position < len(self._words):
            rest = " ".join(self._words[self.position :])
            raise FieldError(f"{self.text!r}: unexpected {rest!r} after {self._before()!r}")

    def error(self, *expected: str) -> FieldError:
        got = self._words[self.position] if self.position < len(self._words) else ""
        after = f"after {self._before()!r}" if self.position else "at the start"
        hint = did_you_mean(got, expected) if got else ""
        found = f"found {got!r}" if got else "found the end of the line"
        return FieldError(f"{self.text!r}: expected {_or(expected)} {after}, {found}{hint}")

    def _before(self) -> str:
        return " ".join(self._words[: self.position])


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
