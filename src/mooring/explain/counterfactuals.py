"""Find what would make a pending pod fit: the smallest changes, each tried on the engine.

This module does not reason about scheduling rules. Plugins suggest changes; it applies each to the cluster,
and keeps those with which the engine finds a node. For a change with an amount (a lower request, a larger
skew), it finds the smallest change that works by bisection: a request that fits at some value fits at every
lower value. It tries pairs only if no single change helps, so every pair needs both of its changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from mooring.cluster.columns import Mask
from mooring.cluster.node_info import NodeInfo
from mooring.explain.device_proposals import device_proposals
from mooring.explain.explanation import pod_of
from mooring.explain.frames import Frame, make_frame
from mooring.explain.matrix import UNASKED, Matrix
from mooring.explain.what_if import WhatIf
from mooring.faults import PLUGIN_FAULTS
from mooring.framework.changes import Change, taint_text
from mooring.framework.cycle_state import CycleState
from mooring.framework.node_changes import AddNodes, FreeRoom
from mooring.framework.status import Code
from mooring.framework.suggestions import Refusals, Suggestion
from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.requests import CPU
from mooring.objects.well_known import HOSTNAME
from mooring.plugins.default_preemption.budgets import Budgets
from mooring.plugins.default_preemption.candidates import Candidate, VictimSearch
from mooring.plugins.default_preemption.choice import best
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


#: Which kinds of changes are tried first, and stand first among answers of the same size. Others come last.
_ORDER = {
    "add-storage": 0,
    "remove-gates": 1,
    "lower-request": 2,
    "tolerate": 3,
    "raise-max-skew": 4,
    "soften-spread": 4,
    "soften-pod-affinity": 5,
    "drop-node-selector": 6,
    "drop-node-affinity": 6,
    "drop-host-port": 7,
    "uncordon": 8,
    "declare-features": 9,
    "label-node": 10,
}


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
    if pod.terminating:
        return "the pod is being deleted"
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
        of_pod, of_nodes = self._suggestions()
        templates = self._templates()
        for suggestion in of_pod:
            self._try(suggestion)
        for group in of_nodes:
            self._first_few(group)
        self._add_nodes(templates)
        self._free_room()
        if not self._answers:
            grow = [Suggestion.fixed(AddNodes(name)) for name in templates[:_MOST_ANSWERS]]
            some = [each for group in of_nodes for each in group[:_MOST_ANSWERS]]
            self._try_pairs([each for each in (*of_pod, *some, *grow) if each.combines])
        answers = sorted(self._answers, key=lambda each: each.size)
        note = "" if answers else "no single change and no pair of changes would place the pod"
        return Counterfactuals(
            self._pod.key, tuple(answers), complete=not self._cut_short, note=note
        )

    def _suggestions(self) -> tuple[list[Suggestion], list[list[Suggestion]]]:
        """What the plugins suggest: changes of the pod and of other objects, and groups of changes of nodes.

        Of each group, a few answers are enough.
        """
        of_pod: list[Suggestion] = []
        of_nodes: dict[tuple[str, str], list[Suggestion]] = {}
        for suggested in _ask_plugins(self._what_if, self._pod, self._matrix):
            change = suggested.suggestion.most
            if change.node_name:
                group = of_nodes.setdefault((suggested.plugin, change.kind), [])
                group.append(suggested.suggestion)
            else:
                of_pod.append(suggested.suggestion)
        of_pod.sort(key=lambda each: _rank(each.most.kind))
        of_pod[:0] = self._device_suggestions()
        groups = sorted(of_nodes.values(), key=lambda group: _rank(group[0].most.kind))
        return of_pod, groups

    def _device_suggestions(self) -> Iterator[Suggestion]:
        for ladder in device_proposals(self._what_if.cluster, self._pod):
            yield Suggestion(partial(_from_the_end, ladder), len(ladder))

    # Trying

    def _fits(self, *changes: Change) -> bool:
        if self._deadline.passed:
            self._cut_short = True
            return False
        return self._what_if.fits(self._pod, changes)

    def _least(self, suggestion: Suggestion, *others: Change) -> Change | None:
        """The smallest change that helps together with the others; None if the largest does not."""
        if not self._fits(suggestion.most, *others):
            return None
        helps, too_little = 0, suggestion.steps
        while too_little - helps > 1:
            middle = (helps + too_little) // 2
            if self._fits(suggestion.at(middle), *others):
                helps = middle
            elif self._deadline.passed:
                # The smallest change is not known, so this is no answer.
                return None
            else:
                too_little = middle
        return suggestion.at(helps)

    def _try(self, suggestion: Suggestion) -> bool:
        change = self._least(suggestion)
        return change is not None and self._keep(change)

    def _keep(self, *changes: Change) -> bool:
        node, fitting = self._what_if.destination(self._pod, changes)
        if node:
            self._answers.append(Counterfactual(changes, node, fitting))
        return bool(node)

    def _first_few(self, suggestions: Iterable[Suggestion]) -> None:
        found = 0
        for suggestion in suggestions:
            found += self._try(suggestion)
            if found == _MOST_ANSWERS or self._deadline.passed:
                return

    def _add_nodes(self, names: Sequence[str]) -> None:
        """Smaller nodes first; several nodes only if one node of any kind is not enough."""
        for count in range(1, _MOST_NODES + 1):
            offers: list[object] = []
            for name in names:
                offer = self._what_if.cluster.infos[name].allocatable
                # One answer is enough for nodes with the same resources.
                if offer not in offers and self._try(Suggestion.fixed(AddNodes(name, count))):
                    offers.append(offer)
                if len(offers) == _MOST_ANSWERS or self._deadline.passed:
                    return
            if offers:
                return

    def _try_pairs(self, suggestions: Sequence[Suggestion]) -> None:
        """The smallest pairs first; then each change is made as small as the other allows."""
        pairs = sorted(
            combinations(suggestions, 2), key=lambda pair: sum(d.most.size for d in pair)
        )
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
                not Evaluation.in_full(framework, first_by_name.keys)
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


class _Suggested(NamedTuple):
    plugin: str
    suggestion: Suggestion


def _from_the_end(ladder: Sequence[Change], step: int) -> Change:
    return ladder[-1 - step]


def _ask_plugins(what_if: WhatIf, pod: Pod, matrix: Matrix) -> Iterator[_Suggested]:
    """What each plugin of the pod's profile suggests, at most so many changes of a kind."""
    nodes = what_if.nodes()
    for name, call in what_if.scheduler.framework(pod).plugins.items():
        if call.suggest is None:
            continue
        kinds: Counter[str] = Counter()
        try:
            for suggestion in call.suggest(pod, _refusals(what_if, matrix, name)):
                change = suggestion.most
                kinds[change.kind] += 1
                if kinds[change.kind] <= _MOST_OF_A_KIND:
                    _try_out(change, pod, nodes)
                    yield _Suggested(name, suggestion)
        except PLUGIN_FAULTS as error:
            # The other plugins may still help.
            call.warn(f"suggest changes for pod {pod.key}", error)


def _try_out(change: Change, pod: Pod, nodes: Mapping[str, Node]) -> None:
    """Raise whatever the change raises: it may be of a kind that a plugin defines."""
    change.on_pod(pod)
    if change.node_name:
        change.on_node(nodes[change.node_name])
    change.to_data()


def _refusals(what_if: WhatIf, matrix: Matrix, plugin: str) -> Refusals:
    mine = np.zeros(len(matrix), np.bool_)
    others = np.zeros(len(matrix), np.bool_)
    for column in matrix.filters:
        refuses = (column.codes != 0) & (column.codes != UNASKED)
        if column.plugin == plugin:
            mine |= refuses
        else:
            others |= refuses

    def names(rows: Mask) -> tuple[str, ...]:
        return tuple(sorted(matrix.nodes[i] for i in np.flatnonzero(rows).tolist()))

    return Refusals(what_if.snapshot(), names(mine), names(mine & ~others))


def _rank(kind: str) -> int:
    return _ORDER.get(kind, len(_ORDER))


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
