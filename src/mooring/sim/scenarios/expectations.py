"""What must be true of a cluster at one moment, and how the cluster differs if it is not.

An expectation is about pods (how many meet some conditions, or how they are spread), about preempted pods, or
about the utilisation of nodes. It can be written as a line of text (`expectation_text`) or as fields
(`expectation_fields`), with the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mooring.objects.pod import Pod
from mooring.objects.selectors import Selector
from mooring.objects.well_known import REGION, ZONE
from mooring.sim.build_report import node_usages
from mooring.sim.scenarios.fields import Path
from mooring.sim.scenarios.pod_conditions import PodCondition, hold_all
from mooring.sim.scenarios.view import PodLine, Subject, View

#: Words for common topology keys.
KEYS = {"zone": ZONE, "zones": ZONE, "region": REGION, "regions": REGION, "node": "", "nodes": ""}

_WORDS = {key: word for word, key in KEYS.items() if word.endswith("s")}


@dataclass(frozen=True, slots=True)
class Difference:
    """What was expected, and what was found instead."""

    expected: str
    found: str
    #: The pods concerned.
    pods: tuple[PodLine, ...] = ()

    def to_data(self) -> dict[str, Any]:
        pods = [{"pod": each.pod, "node": each.node, "why": each.why} for each in self.pods]
        return {"expected": self.expected, "found": self.found, "pods": pods}


class Expectation(Protocol):
    """A condition of the cluster to check."""

    @property
    def text(self) -> str:
        """The expectation in its text form."""

    def differs(self, view: View) -> Difference | None:
        """None if the cluster is as expected. Raises InputError if the check is not possible."""


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation, and its position in the document."""

    path: Path
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class HowMany:
    """A number of pods. Without limits, it means all pods, and at least one."""

    least: int | None = None
    most: int | None = None

    @property
    def all(self) -> bool:
        return self.least is None and self.most is None

    def agrees(self, number: int, total: int) -> bool:
        if self.all:
            return number == total and total > 0
        return (self.least or 0) <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.all:
            return "all"
        if self.least == self.most:
            return str(self.least) if self.least else "no"
        return f"at most {self.most}" if self.least is None else f"at least {self.least}"


@dataclass(frozen=True, slots=True)
class PodsMeet:
    """This many of the pods meet every condition."""

    text: str
    subject: Subject
    how_many: HowMany
    conditions: tuple[PodCondition, ...]

    def differs(self, view: View) -> Difference | None:
        pods = view.subjects(self.subject)
        meeting = [pod for pod in pods if hold_all(self.conditions, view, pod)]
        missing = view.not_created(self.subject)
        total = len(pods) + len(missing)
        if self.how_many.agrees(len(meeting), total):
            return None
        if not total:
            return Difference(self.text, "no such pod")
        too_many = self.how_many.most is not None and len(meeting) > self.how_many.most
        met = {pod.uid for pod in meeting}
        concerned = meeting if too_many else [pod for pod in pods if pod.uid not in met]
        found = f"{len(meeting)} of {_pods(total)}"
        lines = _lines(view, concerned)
        return Difference(self.text, found, lines if too_many else (*lines, *missing))


@dataclass(frozen=True, slots=True)
class Spread:
    """The pods are spread over this many topology domains, with at most this skew."""

    text: str
    subject: Subject
    #: A label of nodes; "" stands for the node itself.
    key: str
    how_many: HowMany | None = None
    max_skew: int | None = None
    #: No two pods on the same one.
    distinct: bool = False

    def differs(self, view: View) -> Difference | None:
        pods = [pod for pod in view.subjects(self.subject) if not pod.finished]
        if not pods:
            return Difference(self.text, "no such pod")
        nowhere = [pod for pod in pods if not pod.node_name]
        if nowhere:
            found = f"{len(nowhere)} of {_pods(len(pods))} without a node"
            return Difference(self.text, found, _lines(view, nowhere))
        counts = Counter(self._domain(view, pod) for pod in pods)
        if self._agrees(view, counts):
            return None
        shown = ", ".join(f"{name or 'none'} {n}" for name, n in sorted(counts.items()))
        found = f"{len(counts)} {_WORDS.get(self.key, self.key)}: {shown}"
        return Difference(self.text, found, _lines(view, pods))

    def _domain(self, view: View, pod: Pod) -> str:
        node = view.node_of(pod)
        if not self.key:
            return pod.node_name
        return node.labels.get(self.key, "") if node is not None else ""

    def _agrees(self, view: View, counts: Counter[str]) -> bool:
        number = len(counts) - ("" in counts)
        if self.how_many is not None and not self.how_many.agrees(number, number):
            return False
        if self.distinct and max(counts.values()) > 1:
            return False
        if self.max_skew is None:
            return True
        fewest = min(counts.values())
        if self.how_many is None and self._all_domains(view) - counts.keys():
            fewest = 0
        return max(counts.values()) - fewest <= self.max_skew

    def _all_domains(self, view: View) -> set[str]:
        if not self.key:
            return set(view.nodes)
        return {node.labels[self.key] for node in view.nodes.values() if self.key in node.labels}


@dataclass(frozen=True, slots=True)
class Preempted:
    """This many of the pods were preempted since the start of the scenario."""

    text: str
    subject: Subject
    how_many: HowMany
    #: `namespace/name` of the preemptor; "" for any.
    by: str = ""

    def differs(self, view: View) -> Difference | None:
        evictions = [
            each
            for each in view.evictions(self.subject)
            if not self.by or (each.preemptor is not None and each.preemptor.key == self.by)
        ]
        least = 1 if self.how_many.all else self.how_many.least or 0
        most = self.how_many.most
        if len(evictions) >= least and (most is None or len(evictions) <= most):
            return None
        lines = tuple(
            PodLine(
                each.victim.key,
                each.node,
                f"preempted by {each.preemptor.key if each.preemptor else 'someone'}",
            )
            for each in evictions
        )
        return Difference(self.text, f"{_pods(len(evictions))} preempted", lines)


@dataclass(frozen=True, slots=True)
class Gone:
    """The pod does not exist, or is terminating."""

    text: str
    pod: str

    def differs(self, view: View) -> Difference | None:
        pods = view.subjects(Subject(pod=self.pod))
        if not pods:
            return None
        return Difference(self.text, "it exists", _lines(view, pods))


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Requested as a percentage of allocatable, for one resource."""

    text: str
    resource: str
    least_percent: float | None = None
    most_percent: float | None = None
    #: Only these nodes; None means all.
    selector: Selector | None = None
    node: str = ""
    #: Whether every single node must agree, instead of their sum.
    each_node: bool = False

    def differs(self, view: View) -> Difference | None:
        usages = {
            node.name: usage
            for node, usage in node_usages(view.simulation, self.resource)
            if (not self.node or node.name == self.node)
            and (self.selector is None or self.selector.matches(node.labels))
        }
        if not usages:
            return Difference(self.text, "no such node")
        percents = {
            name: 100 * usage.requested / usage.allocatable
            for name, usage in usages.items()
            if usage.allocatable
        }
        if not percents:
            return Difference(self.text, f"no such node has any {self.resource}")
        if self.each_node:
            wrong = {name: share for name, share in percents.items() if not self._agrees(share)}
            shown = ", ".join(f"{name} {share:.1f}%" for name, share in sorted(wrong.items()))
            return Difference(self.text, shown) if wrong else None
        requested = sum(usage.requested for usage in usages.values())
        share = 100 * requested / sum(usage.allocatable for usage in usages.values())
        return None if self._agrees(share) else Difference(self.text, f"{share:.1f}%")

    def _agrees(self, percent: float) -> bool:
        return (self.least_percent is None or percent >= self.least_percent) and (
            self.most_percent is None or percent <= self.most_percent
        )


def _lines(view: View, pods: Sequence[Pod]) -> tuple[PodLine, ...]:
    return tuple(view.line(pod) for pod in pods)


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number:,} pods"
