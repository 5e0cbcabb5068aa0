"""Find what would make a pending pod fit: the smallest changes, each tried on the engine.

This module does not reason about scheduling rules. It proposes changes, applies each to the cluster, and
keeps those with which the engine finds a node. For a change with an amount (a lower request, a larger skew),
it finds the smallest change that works by bisection: a request that fits at some value fits at every lower
value. It tries pairs only if no single change helps, so every pair needs both of its changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np

from mooring.cluster.node_info import NodeInfo
from mooring.explain.changes import (
    AddNodes,
    Change,
    DeclareFeatures,
    DropHostPort,
    DropNodeAffinity,
    DropNodeSelector,
    FreeRoom,
    LabelNode,
    LowerRequest,
    RaiseMaxSkew,
    RemoveGates,
    SoftenPodAffinity,
    SoftenSpread,
    Tolerate,
    Uncordon,
    taint_text,
)
from mooring.explain.explanation import pod_of
from mooring.explain.frames import Frame, make_frame
from mooring.explain.matrix import UNASKED, Matrix
from mooring.explain.missing_storage import missing_storage
from mooring.explain.what_if import WhatIf
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Code
from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodAffinity, PodAffinityTerm
from mooring.objects.requests import CPU, amount_of
from mooring.objects.selectors import (
    NAME_FIELD,
    LabelSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_requirement,
)
from mooring.objects.taints import tolerated
from mooring.objects.well_known import HOSTNAME, REGION, ZONE
from mooring.plugins.default_preemption.budgets import Budgets
from mooring.plugins.default_preemption.candidates import Candidate, VictimSearch
from mooring.plugins.default_preemption.choice import best
from mooring.plugins.node_declared_features import required_features
from mooring.runtime.dry_run import FilterDryRun
from mooring.runtime.evaluation import Evaluation
from mooring.runtime.plugin_calls import PluginFailure
from mooring.runtime.question import Question
from mooring.scheduler.choosing import first_by_name

DEFAULT_BUDGET_S = 2.0

#: The most proposals of one kind that are tried; clusters have few kinds of taints and nodes.
_MOST_OF_A_KIND = 20
#: The most answers of one kind that concern different nodes.
_MOST_ANSWERS = 3
#: A single pod hardly ever needs more than one new node, so more than these are not tried.
_MOST_NODES = 3
#: The most pairs in an answer.
_MOST_PAIRS = 10


#: Labels that say what a machine is and where it stands. Nobody changes them to make a pod fit.
_OF_THE_MACHINE = frozenset(
    (HOSTNAME, ZONE, REGION, "kubernetes.io/arch", "kubernetes.io/os")
    + ("node.kubernetes.io/instance-type", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
    + ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
)


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Changes that together give the pod a node."""

    changes: tuple[Change, ...]
    #: Where it would go.
    node: str
    #: The number of nodes on which it would fit.
    fitting_nodes: int

    @property
    def size(self) -> float:
        return sum(change.size for change in self.changes)

    @property
    def text(self) -> str:
        return ", and ".join(change.text for change in self.changes)

    def to_data(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "size": round(self.size, 4),
            "node": self.node,
            "fittingNodes": self.fitting_nodes,
            "changes": [change.to_data() for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class Counterfactuals:
    """What would make one pod fit, smallest change first."""

    pod: str
    answers: tuple[Counterfactual, ...]
    #: False if time ran out, so that there may be more.
    complete: bool
    #: Why there are no answers; "" if there are.
    note: str = ""

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def to_data(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "complete": self.complete,
            "note": self.note,
            "answers": [answer.to_data() for answer in self.answers],
        }

    def to_frame(self) -> Frame:
        """A row for each answer. Raises MissingFrames without pandas and polars."""
        rows = [
            (self.pod, each.text, each.size, each.node, each.fitting_nodes) for each in self.answers
        ]
        return make_frame(("pod", "change", "size", "node", "fitting_nodes"), rows)


@dataclass(frozen=True, slots=True)
class Dial:
    """A change of adjustable size: `at(0)` is the largest, `at(steps)` almost no change.

    If it helps at some step, it helps at every lower step.
    """

    at: Callable[[int], Change]
    steps: int = 0

    @classmethod
    def fixed(cls, change: Change) -> Dial:
        return cls(lambda _: change)

    @property
    def most(self) -> Change:
        return self.at(0)


@dataclass(slots=True)
class Deadline:
    """When to stop the search."""

    seconds: float
    timer: Callable[[], float] = perf_counter
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.timer()

    @property
    def passed(self) -> bool:
        return self.timer() - self._started >= self.seconds

    def share(self, part: float) -> Deadline:
        """A deadline for this part of the remaining time."""
        left = max(self.seconds - (self.timer() - self._started), 0.0)
        return Deadline(left * part, self.timer)


def find_counterfactuals(
    what_if: WhatIf,
    key: str,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    timer: Callable[[], float] = perf_counter,
) -> Counterfactuals:
    """The changes that would place the pending pod `namespace/name`. The cluster stays as it is.

    Raises CannotAnswer if there is no such pod; PluginFailure, ExtenderError and NoNodesError if mooring
    cannot decide on the pod as it is.
    """
    pod = pod_of(what_if, key)
    note = _why_nothing(what_if, pod)
    if note:
        return Counterfactuals(key, (), complete=True, note=note)
    return _Search(what_if, pod, Deadline(budget_s, timer)).run()


def _why_nothing(what_if: WhatIf, pod: Pod) -> str:
    """Why there is nothing to search for; "" if the pod is pending."""
    if what_if.scheduler.pod(pod.key) is None:
        return "the pod no longer exists"
    if pod.scheduler_name not in what_if.scheduler.frameworks:
        return (
            f"no profile has the scheduler name {pod.scheduler_name!r}; change it or add a profile"
        )
    if pod.node_name:
        return f"the pod is already on node {pod.node_name}"
    if what_if.cluster.is_assumed(pod):
        return "the pod has a node and waits to be bound"
    return "the pod fits without changes" if what_if.fits(pod) else ""


class _Search:
    def __init__(self, what_if: WhatIf, pod: Pod, deadline: Deadline) -> None:
        self._what_if = what_if
        self._pod = pod
        self._deadline = deadline
        self._matrix = what_if.look(pod).matrix
        self._answers: list[Counterfactual] = []
        #: Whether the deadline ended the search early.
        self._cut_short = False

    def run(self) -> Counterfactuals:
        of_pod = [*self._storage(), *self._dials_of_pod()]
        features = [Dial.fixed(change) for change in self._features()]
        uncordon = [Dial.fixed(change) for change in self._uncordonings()]
        templates = self._templates()
        for dial in of_pod:
            self._try(dial)
        self._first_few(uncordon)
        self._first_few(features)
        self._first_few([Dial.fixed(change) for change in self._labellings()])
        self._add_nodes(templates)
        self._free_room()
        if not self._answers:
            grow = [Dial.fixed(AddNodes(name)) for name in templates[:_MOST_ANSWERS]]
            of_nodes = [*uncordon[:_MOST_ANSWERS], *features[:_MOST_ANSWERS]]
            self._try_pairs([*of_pod, *of_nodes, *grow])
        answers = sorted(self._answers, key=lambda each: each.size)
        note = "" if answers else "no single change and no pair of changes would place the pod"
        return Counterfactuals(
            self._pod.key, tuple(answers), complete=not self._cut_short, note=note
        )

    # Trying

    def _fits(self, *changes: Change) -> bool:
        if self._deadline.passed:
            self._cut_short = True
            return False
        return self._what_if.fits(self._pod, changes)

    def _least(self, dial: Dial, *others: Change) -> Change | None:
        """The smallest change that helps together with the others; None if the largest does not."""
        if not self._fits(dial.most, *others):
            return None
        helps, too_little = 0, dial.steps
        while too_little - helps > 1:
            middle = (helps + too_little) // 2
            if self._fits(dial.at(middle), *others):
                helps = middle
            elif self._deadline.passed:
                # The smallest change is not known, so this is no answer.
                return None
            else:
                too_little = middle
        return dial.at(helps)

    def _try(self, dial: Dial) -> bool:
        change = self._least(dial)
        return change is not None and self._keep(change)

    def _keep(self, *changes: Change) -> bool:
        node, fitting = self._what_if.destination(self._pod, changes)
        if node:
            self._answers.append(Counterfactual(changes, node, fitting))
        return bool(node)

    def _first_few(self, dials: Iterable[Dial]) -> None:
        found = 0
        for dial in dials:
            found += self._try(dial)
            if found == _MOST_ANSWERS or self._deadline.passed:
                return

    def _add_nodes(self, names: Sequence[str]) -> None:
        """Smaller nodes first; several nodes only if one node of any kind is not enough."""
        for count in range(1, _MOST_NODES + 1):
            offers: list[object] = []
            for name in names:
                offer = self._what_if.cluster.infos[name].allocatable
                # One answer is enough for nodes with the same resources.
                if offer not in offers and self._try(Dial.fixed(AddNodes(name, count))):
                    offers.append(offer)
                if len(offers) == _MOST_ANSWERS or self._deadline.passed:
                    return
            if offers:
                return

    def _try_pairs(self, dials: Sequence[Dial]) -> None:
        """The smallest pairs first; then each change is made as small as the other allows."""
        pairs = sorted(combinations(dials, 2), key=lambda pair: sum(d.most.size for d in pair))
        found = 0
        for first, second in pairs:
            if not self._fits(first.most, second.most):
                if self._deadline.passed:
                    return
                continue
            one = self._least(first, second.most)
            two = self._least(second, one) if one is not None else None
            if one is not None and two is not None:
                found += self._keep(one, two)
            if found == _MOST_PAIRS or self._deadline.passed:
                return

    # Changes of the pod

    def _dials_of_pod(self) -> Iterator[Dial]:
        pod = self._pod
        if pod.spec.scheduling_gates:
            yield Dial.fixed(RemoveGates(tuple(gate.name for gate in pod.spec.scheduling_gates)))
        yield from self._requests()
        yield from self._tolerations()
        yield from self._spreads()
        yield from _pod_affinities(pod)
        yield from _node_affinities(pod)
        for _, protocol, port in dict.fromkeys(pod.host_ports):
            yield Dial.fixed(DropHostPort(port, protocol))

    def _requests(self) -> Iterator[Dial]:
        for resource, asked in self._pod.requests.items():
            overhead = self._pod.spec.overhead.get(resource)
            least = amount_of(resource, overhead) if overhead is not None else 0
            if asked > least:
                yield _request_dial(resource, asked, least)

    def _tolerations(self) -> Iterator[Dial]:
        """The sets of taints that the pod does not tolerate, the most frequent first."""
        sets: Counter[tuple[str, ...]] = Counter()
        for info in self._what_if.snapshot():
            refusing = [
                taint
                for taint in info.taints
                if taint.refuses and not tolerated(taint, self._pod.spec.tolerations)
            ]
            if refusing:
                sets[tuple(sorted(taint_text(taint) for taint in refusing))] += 1
        for taints, _ in sets.most_common(_MOST_OF_A_KIND):
            yield Dial.fixed(Tolerate(taints))

    def _spreads(self) -> Iterator[Dial]:
        most = len(self._what_if.cluster.pods) + 1
        for index, spread in enumerate(self._pod.spec.topology_spread_constraints):
            if spread.when_unsatisfiable == "DoNotSchedule":
                yield _skew_dial(index, spread.topology_key, spread.max_skew, most)
                yield Dial.fixed(SoftenSpread(index, spread.topology_key))

    # Missing objects

    def _storage(self) -> Iterator[Dial]:
        missing = missing_storage(self._what_if.cluster.listers, self._pod)
        if missing is not None:
            yield Dial.fixed(missing)

    # Changes of nodes

    def _features(self) -> list[Change]:
        """For nodes that do not declare what the pod needs; the fewest features first."""
        required = required_features(self._pod)
        changes = []
        for info in self._what_if.snapshot() if required else ():
            assert info.node is not None
            lacking = required.difference(info.node.status.declared_features)
            if lacking:
                changes.append(DeclareFeatures(info.name, tuple(sorted(lacking))))
        changes.sort(key=lambda change: (change.size, change.node))
        return list(changes[:_MOST_OF_A_KIND])

    def _uncordonings(self) -> list[Change]:
        names = [
            info.name
            for info in self._what_if.snapshot()
            if info.node is not None and info.node.spec.unschedulable
        ]
        return [Uncordon(name) for name in sorted(names)[:_MOST_OF_A_KIND]]

    def _labellings(self) -> list[Change]:
        """For nodes that only NodeAffinity refuses; the fewest labels first."""
        changes: list[LabelNode] = []
        for name in _refused_only_by(self._matrix, "NodeAffinity"):
            info = self._what_if.cluster.infos[name]
            assert info.node is not None
            needed = labels_needed(self._pod, info.node)
            if needed is not None:
                changes.append(needed)
        changes.sort(key=lambda change: (change.size, change.node))
        of_each = {(change.labels, change.removed): change for change in reversed(changes)}
        distinct = sorted(of_each.values(), key=lambda change: (change.size, change.node))
        return list(distinct[:_MOST_OF_A_KIND])

    def _templates(self) -> list[str]:
        """One node of every shape: nodes that are large enough first, smaller ones before larger ones."""
        shapes: dict[object, NodeInfo] = {}
        for info in self._what_if.snapshot():
            shapes.setdefault(_shape(info), info)
        ordered = sorted(shapes.values(), key=lambda info: _suits(self._pod, info))
        return [info.name for info in ordered[:_MOST_OF_A_KIND]]

    def _free_room(self) -> None:
        """The node where eviction costs least, in preemption's order, ignoring the pod's priority."""
        candidates = list(self._room_candidates(self._deadline.share(0.5)))
        for candidate in best(candidates, self._now()):
            lacking = _lacking(self._pod, self._what_if.cluster.infos[candidate.node_name])
            change = FreeRoom(
                candidate.node_name,
                tuple(victim.key for victim in candidate.victims),
                lacking,
                candidate.violations,
            )
            if self._fits(change):
                self._keep(change)
                return

    def _room_candidates(self, deadline: Deadline) -> Iterator[Candidate]:
        what_if, pod = self._what_if, self._pod
        framework, snapshot, state = (
            what_if.scheduler.framework(pod),
            what_if.snapshot(),
            CycleState(),
        )
        try:
            if (
                not Evaluation(framework, first_by_name.keys)
                .run_pre_filters(Question(state, pod, snapshot))
                .status.ok
            ):
                return
        except PluginFailure:
            return
        now = self._now()
        dry_run = _AnyVictim(
            filters=FilterDryRun(framework, state, pod, snapshot),
            budgets=Budgets(what_if.cluster.listers.all(PodDisruptionBudget)),
            is_eligible=None,
            by_importance=lambda pods: sorted(
                pods, key=lambda each: (-each.priority, each.status.start_time or now)
            ),
        )
        for info in self._with_removable_pods():
            outcome = dry_run.on_node(info)
            if isinstance(outcome, Candidate):
                yield outcome
            if deadline.passed:
                self._cut_short = True
                return

    def _with_removable_pods(self) -> list[NodeInfo]:
        """The nodes where evicting pods may help; those that lack least come first."""
        matrix = self._matrix
        resolvable = [s.code == Code.UNSCHEDULABLE for s in matrix.statuses]
        chosen = np.flatnonzero(np.array(resolvable)[matrix.verdicts]).tolist()
        infos = [self._what_if.cluster.infos[matrix.nodes[i]] for i in chosen]
        return sorted(infos, key=lambda info: (_lacking_share(self._pod, info), info.name))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._what_if.simulation.clock.now(), UTC)


class _AnyVictim(VictimSearch):
    """Preemption's dry run with every pod as a possible victim, except DaemonSet and static pods."""

    def potential_victims(self, node: NodeInfo) -> list[Pod]:
        return [pod for pod in node.pods.values() if not pod.belongs_to_node]


def labels_needed(pod: Pod, node: Node) -> LabelNode | None:
    """The labels that would make the node match; None if labels alone cannot."""
    labels = node.metadata.labels
    wanted = {
        key: value
        for key, value in (pod.spec.node_selector or {}).items()
        if labels.get(key) != value
    }
    removed: frozenset[str] = frozenset()
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is not None and affinity.required is not None:
        terms = affinity.required.node_selector_terms
        ways = [way for term in terms if (way := _to_match(term, node)) is not None]
        if not ways:
            return None
        more, removed = min(ways, key=lambda way: len(way[0]) + len(way[1]))
        wanted |= more
    changed = wanted.keys() | removed
    if not changed or any(key in _OF_THE_MACHINE for key in changed):
        return None
    return LabelNode(node.name, tuple(sorted(wanted.items())), tuple(sorted(removed)))


def _to_match(term: NodeSelectorTerm, node: Node) -> tuple[dict[str, str], frozenset[str]] | None:
    wanted: dict[str, str] = {}
    removed: set[str] = set()
    for line in term.match_fields:
        if line.key != NAME_FIELD or (node.name in line.values) != (line.operator == "In"):
            return None
    for line in term.match_expressions:
        try:
            requirement = compile_requirement(line.key, line.operator, tuple(line.values))
        except ValueError:
            return None
        if requirement.matches(node.metadata.labels):
            continue
        match line.operator:
            case "In":
                wanted[line.key] = line.values[0]
            case "Exists":
                wanted[line.key] = "true"
            case "Gt":
                wanted[line.key] = str(int(line.values[0]) + 1)
            case "Lt":
                wanted[line.key] = str(int(line.values[0]) - 1)
            case _:
                removed.add(line.key)
    return (wanted, frozenset(removed)) if term.match_expressions or term.match_fields else None


def _request_dial(resource: str, asked: int, least: int) -> Dial:
    return Dial(lambda step: LowerRequest(resource, asked, least + step), asked - least)


def _skew_dial(index: int, key: str, skew: int, most: int) -> Dial:
    most = max(most, skew + 1)
    return Dial(lambda step: RaiseMaxSkew(index, key, skew, most - step), most - skew)


def _pod_affinities(pod: Pod) -> Iterator[Dial]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for rules, anti in ((affinity.pod_affinity, False), (affinity.pod_anti_affinity, True)):
        for index, term in enumerate((rules or PodAffinity()).required):
            change = SoftenPodAffinity(index, term.topology_key, _selects(term), anti)
            yield Dial.fixed(change)


def _node_affinities(pod: Pod) -> Iterator[Dial]:
    for key, value in (pod.spec.node_selector or {}).items():
        yield Dial.fixed(DropNodeSelector(key, value))
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return
    for place, term in enumerate(affinity.required.node_selector_terms):
        for line, requirement in enumerate((*term.match_expressions, *term.match_fields)):
            yield Dial.fixed(DropNodeAffinity(place, line, _requirement_text(requirement)))


def _selects(term: PodAffinityTerm) -> str:
    selector = term.label_selector or LabelSelector()
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [_requirement_text(line) for line in selector.match_expressions]
    return ",".join(parts) or "any labels"


def _requirement_text(line: SelectorRequirement) -> str:
    values = f" ({', '.join(line.values)})" if line.values else ""
    return f"{line.key} {line.operator}{values}"


def _refused_only_by(matrix: Matrix, plugin: str) -> list[str]:
    """The nodes that only this plugin refuses, of the plugins that were asked."""
    mine = np.zeros(len(matrix), np.bool_)
    others = np.zeros(len(matrix), np.bool_)
    for column in matrix.filters:
        refuses = (column.codes != 0) & (column.codes != UNASKED)
        if column.plugin == plugin:
            mine |= refuses
        else:
            others |= refuses
    return sorted(matrix.nodes[i] for i in np.flatnonzero(mine & ~others).tolist())


def _shape(info: NodeInfo) -> object:
    labels = ((k, v) for k, v in info.labels.items() if v != info.name and k != HOSTNAME)
    return (
        tuple(sorted(info.allocatable.items())),
        info.allowed_pods,
        frozenset(labels),
        frozenset(taint_text(taint) for taint in info.taints),
    )


def _suits(pod: Pod, info: NodeInfo) -> tuple[bool, int, int, str]:
    """A sort key: nodes that are large enough first, then few kinds of resources, then little CPU."""
    offer = info.allocatable
    too_small = any(offer.get(name, 0) < asked for name, asked in pod.requests.items())
    return too_small, sum(map(bool, offer.values())), offer.get(CPU, 0), info.name


def _lacking(pod: Pod, info: NodeInfo) -> tuple[tuple[str, int], ...]:
    short = (
        (name, info.requested.get(name, 0) + asked - info.allocatable.get(name, 0))
        for name, asked in pod.requests.items()
        if asked
    )
    return tuple((name, amount) for name, amount in short if amount > 0)


def _lacking_share(pod: Pod, info: NodeInfo) -> float:
    return sum(
        amount / max(info.allocatable.get(name, 0), 1) for name, amount in _lacking(pod, info)
    )
