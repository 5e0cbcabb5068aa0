"""Find what would make a pending pod group fit: changes of the group, its pods and the cluster, each tried.

As for a single pod (`counterfactuals`), no scheduling rule is repeated here: a change is made, the whole
group is tried, and the change is an answer if the group fits. A change with an amount is made as small as it
can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

from msgspec.structs import replace

from mooring.cluster.node_info import NodeInfo
from mooring.explain.counterfactuals import DEFAULT_BUDGET_S, Deadline
from mooring.explain.pod_group import GroupExplanation, GroupTrial
from mooring.explain.settled import OnProgress, unbound
from mooring.explain.story import names_in_short
from mooring.explain.what_if import on_pod
from mooring.framework.changes import Change, taint_text
from mooring.framework.node_changes import AddNodes, Uncordon
from mooring.framework.pod_changes import LowerRequest, Tolerate
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import GangPolicy, PodGroup, SchedulingPolicy
from mooring.objects.taints import tolerated
from mooring.scheduler.group_questions import TriedPlacement

#: The most answers of one kind that concern different nodes.
_MOST_ANSWERS = 3
#: The most kinds of nodes that are tried.
_MOST_TEMPLATES = 8


@dataclass(frozen=True, slots=True)
class LowerMinCount(Change):
    """Let the group start with fewer pods."""

    kind: ClassVar[str] = "lower-min-count"
    old: int
    new: int

    @property
    def size(self) -> float:
        return (self.old - self.new) / self.old

    @property
    def text(self) -> str:
        return f"lower minCount from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class DropTopology(Change):
    """Let the pods of the group be apart."""

    kind: ClassVar[str] = "drop-topology"
    key: str

    @property
    def text(self) -> str:
        return f"let the pods be apart: drop the topology constraint {self.key}"


@dataclass(frozen=True, slots=True)
class CreatePods(Change):
    """Create the pods that the gang lacks."""

    kind: ClassVar[str] = "create-pods"
    count: int

    @property
    def text(self) -> str:
        return (
            f"create {'another pod' if self.count == 1 else f'{self.count} more pods'} of the group"
        )


@dataclass(frozen=True, slots=True)
class EvictPods(Change):
    """Take other pods away, anywhere."""

    kind: ClassVar[str] = "evict-pods"
    #: `namespace/name`.
    victims: tuple[str, ...]
    #: The value of the topology key; "" if the group may go anywhere.
    within: str = ""

    @property
    def size(self) -> float:
        return 1.0 * len(self.victims)

    @property
    def text(self) -> str:
        where = f" from {self.within}" if self.within else ""
        return f"evict {names_in_short(self.victims)}{where}"


@dataclass(frozen=True, slots=True)
class GroupCounterfactual:
    """A change with which the group fits."""

    change: Change
    #: Where it goes then; "" if it is not limited.
    placement: str
    #: How many members get a node.
    placed: int

    def to_data(self) -> dict[str, Any]:
        return {
            "text": self.change.text,
            "size": round(self.change.size, 4),
            "placement": self.placement or None,
            "placed": self.placed,
            "change": self.change.to_data(),
        }


@dataclass(frozen=True, slots=True)
class GroupCounterfactuals:
    """What would make one group fit, smallest change first."""

    group: str
    answers: tuple[GroupCounterfactual, ...]
    #: False if time ran out, so that there may be more.
    complete: bool

    def to_data(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "complete": self.complete,
            "answers": [answer.to_data() for answer in self.answers],
        }


def find_group_counterfactuals(
    trial: GroupTrial,
    explanation: GroupExplanation,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    timer: Callable[[], float] = perf_counter,
    on_progress: OnProgress | None = None,
) -> GroupCounterfactuals:
    """The changes with which a pending group fits. The cluster stays as it is.

    `on_progress` is told how many changes were tried.
    """
    return _Search(trial, explanation, Deadline(budget_s, timer), on_progress).run()


class _Search:
    def __init__(
        self,
        trial: GroupTrial,
        explanation: GroupExplanation,
        deadline: Deadline,
        on_progress: OnProgress | None,
    ) -> None:
        self._trial = trial
        self._what_if = trial.what_if
        self._explanation = explanation
        self._deadline = deadline
        self._answers: list[GroupCounterfactual] = []
        self._cut_short = False
        self._on_progress = on_progress
        self._tried = 0

    def run(self) -> GroupCounterfactuals:
        # From the cheapest to try to the most expensive.
        self._lower_min_count()
        self._create_pods()
        self._drop_topology()
        self._uncordon()
        self._tolerate()
        self._add_nodes()
        self._evict_pods()
        self._lower_requests()
        answers = sorted(self._answers, key=lambda each: each.change.size)
        return GroupCounterfactuals(
            self._trial.group.key, tuple(answers), complete=not self._cut_short
        )

    # Trying

    def _try(self, change: Change) -> GroupCounterfactual | None:
        """The change as an answer; None if the group does not fit with it, or time is up."""
        if self._deadline.passed:
            self._cut_short = True
            return None
        self._tried += 1
        if self._on_progress is not None:
            self._on_progress(self._tried)
        with self._what_if.changed([change]):
            pods = self._make(change)
            if any(self._what_if.scheduler.gate(pod) is not None for pod in pods):
                return None
            tried = self._trial.questions.try_placements(pods, only=self._only(change))
        taken = None if isinstance(tried, Status) else _best(tried)
        return None if taken is None else GroupCounterfactual(change, taken.name, taken.placed)

    def _only(self, change: Change) -> str | None:
        """The one placement that the change can help in; None if it may be any."""
        key = self._trial.group.topology_key
        match change:
            case EvictPods():
                return change.within
            case AddNodes(like=name) | Uncordon(node=name) if key is not None:
                return _label(self._what_if.cluster.infos[name], key)
        return None

    def _make(self, change: Change) -> list[Pod]:
        """Change the group and the pods around it; the members to try then."""
        cluster, group = self._what_if.cluster, self._trial.group
        pods = [on_pod(pod, [change]) for pod in self._trial.pods]
        match change:
            case LowerMinCount() | DropTopology():
                cluster.listers.put(_changed(group, change))
            case CreatePods():
                assert cluster.pod_groups is not None
                for number in range(change.count):
                    copy = unbound(pods[0], name=f"{pods[0].name}-more-{number + 1}")
                    cluster.pod_groups.put(copy)
                    pods.append(copy)
            case EvictPods():
                gone = set(change.victims)
                for pod in [pod for pod in cluster.pods.values() if pod.key in gone]:
                    cluster.take_out(pod)
        return pods

    def _keep(self, change: Change) -> bool:
        answer = self._try(change)
        if answer is not None:
            self._answers.append(answer)
        return answer is not None

    def _keep_least(self, change_of: Callable[[int], Change], most: int) -> bool:
        """The change with the smallest number from 1 to `most` that helps; more help as well."""
        enough, answer = 1, self._try(change_of(1))
        too_few = 0
        while answer is None and enough < most and not self._deadline.passed:
            too_few, enough = enough, min(enough * 2, most)
            answer = self._try(change_of(enough))
        while answer is not None and enough - too_few > 1:
            middle = (enough + too_few) // 2
            better = self._try(change_of(middle))
            if self._deadline.passed:
                # The smallest number is not known, so this is no answer.
                self._cut_short = True
                return False
            if better is None:
                too_few = middle
            else:
                enough, answer = middle, better
        if answer is not None:
            self._answers.append(answer)
        return answer is not None

    # Changes of the group

    def _lower_min_count(self) -> None:
        least, nearest = self._trial.group.min_count, self._explanation.nearest
        if least is None or nearest is None:
            return
        count = len(self._explanation.scheduled) + nearest.placed
        if 1 <= count < least:
            self._keep(LowerMinCount(least, count))

    def _create_pods(self) -> None:
        known = len(self._explanation.scheduled) + len(self._trial.pods)
        least = self._trial.group.min_count
        if least is not None and known < least:
            self._keep(CreatePods(least - known))

    def _drop_topology(self) -> None:
        key = self._trial.group.topology_key
        if key is not None:
            self._keep(DropTopology(key))

    # Changes of nodes

    def _uncordon(self) -> None:
        cordoned = [
            info.name
            for info in self._what_if.snapshot()
            if info.node is not None and info.node.spec.unschedulable
        ]
        self._first_few(Uncordon(name) for name in sorted(cordoned))

    def _first_few(self, changes: Iterator[Change]) -> None:
        found = 0
        for change in changes:
            found += self._keep(change)
            if found == _MOST_ANSWERS or self._deadline.passed:
                return

    def _add_nodes(self) -> None:
        found = 0
        for name in self._templates():
            found += self._keep_least(
                lambda count, like=name: AddNodes(like, count),  # type: ignore[misc]
                len(self._trial.pods),
            )
            if found == _MOST_ANSWERS or self._deadline.passed:
                return

    def _templates(self) -> list[str]:
        """A node of each kind: what it offers, and the value of the topology key that it has.

        Placements that take most members come first.
        """
        key = self._trial.group.topology_key
        placed = {each.name: each.placed for each in self._explanation.placements}
        takes: dict[str, int] = {}
        kinds: dict[object, str] = {}
        for info in self._what_if.snapshot():
            assert info.node is not None
            offers = tuple(sorted((k, str(v)) for k, v in info.node.status.allocatable.items()))
            taints = tuple(sorted(taint_text(taint) for taint in info.taints))
            value = info.node.labels.get(key, "") if key is not None else ""
            kinds.setdefault((offers, taints, value), info.name)
            takes[info.name] = placed.get(value, 0)
        return sorted(kinds.values(), key=lambda name: -takes[name])[:_MOST_TEMPLATES]

    # Changes of other pods

    def _evict_pods(self) -> None:
        """The placements that take most members first."""
        placements = sorted(self._explanation.placements, key=lambda each: -each.placed)
        found = 0
        for placement in placements:
            victims = self._victims(placement.name)
            if victims:
                found += self._keep(EvictPods(victims, placement.name))
            if found == _MOST_ANSWERS or self._deadline.passed:
                return

    def _victims(self, within: str) -> tuple[str, ...]:
        """Pods of a placement without which the group fits; each of them is needed. () if there are none."""
        key = self._trial.group.topology_key if within else None
        pods = [
            pod
            for info in self._what_if.snapshot()
            if key is None or _label(info, key) == within
            for pod in info.pods.values()
            if not pod.belongs_to_node and pod.group_key != self._trial.group.key
        ]
        # Those that come first stay, if any may stay.
        pods.sort(key=lambda pod: (-pod.priority, pod.key))
        names = tuple(pod.key for pod in pods)
        return self._needed(names, (), within) if self._helps(names, within) else ()

    def _needed(
        self, names: tuple[str, ...], others: tuple[str, ...], within: str
    ) -> tuple[str, ...]:
        """The part of `names` that must go beside the others: what can stay, stays, halves at a time."""
        if self._helps(others, within) or self._cut_short:
            return ()
        if len(names) == 1:
            return names
        first, last = names[: len(names) // 2], names[len(names) // 2 :]
        of_first = self._needed(first, (*others, *last), within)
        return (*of_first, *self._needed(last, (*others, *of_first), within))

    def _helps(self, victims: tuple[str, ...], within: str) -> bool:
        return bool(victims) and self._try(EvictPods(victims, within)) is not None

    # Changes of the members

    def _tolerate(self) -> None:
        sets = {
            tuple(
                sorted(
                    taint_text(taint)
                    for taint in info.taints
                    if taint.refuses and not tolerated(taint, self._trial.pods[0].spec.tolerations)
                )
            )
            for info in self._what_if.snapshot()
        }
        self._first_few(Tolerate(taints) for taints in sorted(sets) if taints)

    def _lower_requests(self) -> None:
        asked = self._trial.pods[0].requests
        for resource, old in asked.items():
            if any(pod.requests.get(resource, 0) != old for pod in self._trial.pods):
                # Members differ: there is not one number to lower.
                continue
            # In steps of a hundredth, but whole devices.
            step = max(old // 100, 1)
            steps = -(-old // step)
            self._keep_least(
                lambda count, name=resource, old=old, step=step: LowerRequest(  # type: ignore[misc]
                    name, old, max(old - count * step, 0)
                ),
                steps,
            )


def _best(tried: Sequence[TriedPlacement]) -> TriedPlacement | None:
    fitting = [each for each in tried if each.fits]
    return max(fitting, key=lambda each: each.score or 0) if fitting else None


def _changed(group: PodGroup, change: LowerMinCount | DropTopology) -> PodGroup:
    if isinstance(change, LowerMinCount):
        policy = SchedulingPolicy(gang=GangPolicy(min_count=change.new))
        return replace(group, spec=replace(group.spec, scheduling_policy=policy))
    return replace(group, spec=replace(group.spec, scheduling_constraints=None))


def _label(info: NodeInfo, key: str) -> str | None:
    return info.node.labels.get(key) if info.node is not None else None
