"""Preemption as the plugin does it, beside preemption as the specification states it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mooring.cluster.node_info import NodeInfo
from mooring.config.args import DefaultPreemptionArgs
from mooring.framework.status import Code, Status
from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.pod import Pod
from mooring.objects.selectors import compile_selector
from mooring.objects.taints import Toleration
from mooring.plugins.default_preemption import DefaultPreemption
from mooring.runtime.plugin_calls import PluginFailure
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_affinity_term,
    make_node,
    make_pdb,
    make_pod,
    make_pod_affinity,
    make_spread,
)
from tests.plugins.preemption_world import World, at

pytestmark = pytest.mark.long

NODES = tuple(f"n{i}" for i in range(5))
PRIORITIES = (None, -5, 0, 3, 3, 10, 100)


# The specification


@dataclass
class Answer:
    """What preemption comes to, with pods and nodes by name."""

    code: Code
    message: str
    #: None leaves the nomination as it is.
    nominate: str | None = None
    victims: list[str] = field(default_factory=list)
    tied: list[str] = field(default_factory=list)
    candidates: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    rejected: dict[str, tuple[Code, str, str]] = field(default_factory=dict)


class Oracle:
    """Sections 6.4 to 6.8, one sentence after the other; nothing is done quickly."""

    def __init__(self, world: World, pod: Pod, args: DefaultPreemptionArgs) -> None:
        self.world, self.pod, self.args = world, pod, args
        self.now = datetime.fromtimestamp(world.clock.now(), UTC)
        self.snapshot = world.scheduler.cluster.snapshot()

    def answer(self, state, statuses) -> Answer:
        potential = [
            node for node in self.snapshot if statuses.get(node.name).code == Code.UNSCHEDULABLE
        ]
        wanted = len(potential) * self.args.min_candidate_nodes_percentage // 100
        wanted = min(max(wanted, self.args.min_candidate_nodes_absolute), len(potential))
        clean, violating, rejected, errors = {}, {}, {}, []
        for node in potential:
            victims, violations, status = self.select_victims(state.clone(), node.copy())
            if status.ok and victims:
                group = violating if violations else clean
                if len(group) < wanted:
                    group[node.name] = (victims, violations)
                if clean and len(clean) + len(violating) >= wanted:
                    break
                continue
            if status.ok:
                status = Status(
                    Code.ERROR, (f'expected at least one victim pod on node "{node.name}"',)
                )
            if status.code == Code.ERROR and status.message not in errors:
                errors.append(status.message)
            rejected[node.name] = status
        candidates = {**clean, **violating}
        if candidates:
            return self.choose(candidates, rejected)
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return Answer(Code.ERROR, f"preemption: {text}")
        return Answer(
            Code.UNSCHEDULABLE,
            f"preemption: {self.fit_error(rejected)}",
            "",
            rejected=said_by(rejected),
        )

    def select_victims(self, state, node: NodeInfo) -> tuple[list[Pod], int, Status]:
        framework, pod = self.world.framework, self.pod

        def fits() -> Status:
            try:
                return framework.filter_node(state, pod, node, self.snapshot)
            except PluginFailure as error:
                return error.as_status()

        def remove(other: Pod) -> None:
            node.remove_pod(other)
            framework.run_remove_pod(state, pod, other, node)

        def reprieved(other: Pod) -> bool:
            node.add_pod(other)
            framework.run_add_pod(state, pod, other, node)
            if fits().ok:
                return True
            remove(other)
            return False

        potential = [other for other in node.pods.values() if other.priority < pod.priority]
        for other in potential:
            remove(other)
        if not potential:
            reason = "No preemption victims found for incoming pod"
            return [], 0, Status(Code.UNRESOLVABLE, (reason,))
        status = fits()
        if not status.ok:
            return [], 0, status
        potential.sort(key=self.importance)
        protected, others = self.split_by_budget(potential)
        victims, violations = [], 0
        for other in protected:
            if not reprieved(other):
                victims.append(other)
                violations += 1
        victims += [other for other in others if not reprieved(other)]
        return sorted(victims, key=self.importance), violations, Status()

    def importance(self, pod: Pod):
        return -pod.priority, pod.status.start_time or self.now

    def split_by_budget(self, pods: list[Pod]) -> tuple[list[Pod], list[Pod]]:
        budgets = list(self.snapshot.listers.all(PodDisruptionBudget))
        allowed = [budget.status.disruptions_allowed for budget in budgets]
        groups: tuple[list[Pod], list[Pod]] = ([], [])
        for pod in pods:
            violates = False
            for i, budget in enumerate(budgets):
                selector = compile_selector(budget.spec.selector)
                if (
                    pod.labels
                    and budget.namespace == pod.namespace
                    and not selector.everything
                    and selector.matches(pod.labels)
                    and pod.name not in budget.status.disrupted_pods
                ):
                    allowed[i] -= 1
                    violates = violates or allowed[i] < 0
            groups[0 if violates else 1].append(pod)
        return groups

    def choose(self, candidates, rejected) -> Answer:
        criteria = (
            lambda victims, violations: violations,
            lambda victims, violations: victims[0].priority,
            lambda victims, violations: sum(v.priority + 2**31 for v in victims),
            lambda victims, violations: len(victims),
            lambda victims, violations: -self.earliest_start(victims).timestamp(),
        )
        best = list(candidates)
        for criterion in criteria:
            lowest = min(criterion(*candidates[name]) for name in best)
            best = [name for name in best if criterion(*candidates[name]) == lowest]
        best.sort()
        return Answer(
            Code.SUCCESS,
            "",
            best[0],
            [victim.key for victim in candidates[best[0]][0]],
            best,
            {name: ([v.key for v in vs], n) for name, (vs, n) in candidates.items()},
            said_by(rejected),
        )

    def earliest_start(self, victims: list[Pod]):
        highest = max(victim.priority for victim in victims)
        return min(v.status.start_time or self.now for v in victims if v.priority == highest)

    def fit_error(self, rejected: dict[str, Status]) -> str:
        nodes = len(self.snapshot)
        reasons = Counter(reason for status in rejected.values() for reason in status.all_reasons)
        if nodes > len(rejected):
            reasons["Preemption is not helpful for scheduling"] += nodes - len(rejected)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{nodes} nodes are available: {listed}."


def given_by(plugin: DefaultPreemption, pod: Pod, state, statuses) -> Answer:
    result, status = plugin.decide(state, pod, statuses)
    answer = Answer(status.code, status.message)
    if result is None:
        return answer
    detail = result.detail
    answer.nominate = result.nomination.node_name
    answer.victims = [victim.key for victim in detail.victims]
    answer.tied = list(detail.tied)
    answer.candidates = {
        name: ([victim.key for victim in each.victims], each.violations)
        for name, each in detail.candidates.items()
    }
    answer.rejected = said_by(detail.rejected)
    return answer


def said_by(statuses: Mapping[str, Status]) -> dict[str, tuple[Code, str, str]]:
    """Two errors with the same text are not equal, so statuses are compared by what they say."""
    return {name: (each.code, each.message, each.plugin) for name, each in statuses.items()}


class NodeByNode(DefaultPreemption):
    """A hook of its own keeps the plugin from trying many nodes at once."""

    def is_eligible_pod(self, node, victim, preemptor):
        return True


class AtOnce(DefaultPreemption):
    """Even a single node is tried by columns."""

    few_rows = 0


# Random clusters


def seldom(*values, otherwise=None) -> st.SearchStrategy:
    """One of these, once in a while."""
    return st.integers(0, 7).flatmap(
        lambda n: st.sampled_from(values) if n == 7 else st.just(otherwise)
    )


@cache
def placed_pods() -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries(
        {
            "node": st.sampled_from(NODES),
            "priority": st.sampled_from(PRIORITIES),
            "cpu": st.sampled_from(("100m", "250m", "500m", "1")),
            "memory": st.sampled_from((None, "100Mi", "1Gi")),
            "requests": st.sampled_from((None, None, {"example.com/gpu": 1})),
            "labels": st.sampled_from(({}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "1"})),
            "started": st.sampled_from((None, at(1), at(2), at(2), at(9), at(120))),
            "ports": seldom((80,), (80, 443), otherwise=()),
            "deleting": seldom(at(5)),
            "affinity": seldom(make_pod_affinity(anti=[make_affinity_term({"app": "in"}, ZONE)])),
        }
    )


@cache
def incoming_pods() -> st.SearchStrategy[dict]:
    affinities = (
        make_pod_affinity(anti=[make_affinity_term({"app": "a"}, HOSTNAME)]),
        make_pod_affinity(anti=[make_affinity_term({"app": "b"}, ZONE)]),
        make_pod_affinity(make_affinity_term({"app": "a"}, ZONE)),
    )
    spreads = (
        [make_spread(ZONE, labels={"app": "a"})],
        [make_spread(HOSTNAME, labels={"app": "in"})],
    )
    return st.fixed_dictionaries(
        {
            "priority": st.sampled_from((0, 4, 50, 1000)),
            "cpu": st.sampled_from(("100m", "900m", "1500m", "2")),
            "memory": st.sampled_from((None, "1Gi", "2Gi")),
            "requests": seldom({"example.com/gpu": 1}),
            "labels": st.sampled_from(({}, {"app": "in"}, {"app": "a"})),
            "ports": seldom((80,), (443,), otherwise=()),
            "tolerations": st.sampled_from(((), (Toleration(operator="Exists"),))),
            "affinity": seldom(*affinities),
            "spread": seldom(*spreads, otherwise=()),
            "nominated": seldom(*NODES),
        }
    )


@cache
def nodes() -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries(
        {
            "cpu": st.sampled_from(("1", "2", "2")),
            "memory": st.sampled_from(("1Gi", "2Gi")),
            "pods": st.sampled_from(("2", "4", "110")),
            "example.com/gpu": st.sampled_from(("0", "1", "2")),
            "zone": st.sampled_from((None, "x", "x", "y")),
            "taints": seldom(("t:NoSchedule",), otherwise=()),
            "unschedulable": seldom(True, otherwise=False),
        }
    )


def _that_many_pods(number: int) -> st.SearchStrategy[list[dict]]:
    return st.lists(incoming_pods(), min_size=number, max_size=number)


BUDGETS = (
    make_pdb("a0", labels={"app": "a"}),
    make_pdb("a1", labels={"app": "a"}, allowed=1),
    make_pdb("b", labels={"app": "b"}),
    make_pdb("tier", labels={"tier": "1"}, allowed=1, disrupted={"p0": at(0)}),
    make_pdb("all", labels={}),
)


#: Changes the cluster between two pods.
Change = Callable[[World], None]


def _budget_changes(name: str, labels: dict[str, str], **fields) -> Change:
    """The budget gets another status or selector, or appears."""
    return lambda world: world.scheduler.cluster.listers.put(
        make_pdb(name, labels=labels, **fields)
    )


def _budget_goes(name: str) -> Change:
    def change(world: World) -> None:
        listers = world.scheduler.cluster.listers
        for budget in list(listers.all(PodDisruptionBudget)):
            if budget.name == name:
                listers.drop(budget)

    return change


def _node_changes(name: str, cpu: str) -> Change:
    def change(world: World) -> None:
        if world.scheduler.cluster.snapshot().get(name) is not None:
            world.scheduler.cluster.update_node(make_node(name, cpu=cpu))

    return change


def _time_passes(minutes: int) -> Change:
    return lambda world: world.clock.advance(60 * minutes)


def _nominated(node: str) -> Change:
    """A pod that was waiting for room elsewhere is nominated here, or moves here from another node."""

    def change(world: World) -> None:
        pod = make_pod("held", cpu="900m", priority=2000, nominated=node)
        known = world.scheduler.observed_pods.get(pod.key)
        if known is not None:
            world.scheduler.nominator.delete(known)
        world.add(pod)

    return change


def _nothing_changes(world: World) -> None: ...


CHANGES: tuple[Change, ...] = (
    *(_nothing_changes,) * 4,
    *(_budget_changes("a0", {"app": "a"}, allowed=allowed) for allowed in (-1, 0, 1, 2)),
    *(_budget_changes("b", {"app": "b"}, allowed=allowed) for allowed in (0, 1)),
    _budget_changes("a0", {"app": "a"}, disrupted={"p1": at(0), "p2": at(0)}),
    _budget_changes("a1", {"tier": "1"}),
    _budget_goes("a0"),
    *(_node_changes(name, cpu) for name in NODES[:2] for cpu in ("1", "2")),
    *map(_nominated, NODES[:3]),
    _time_passes(1),
    _time_passes(100),
)


@dataclass(repr=False)
class Scene:
    """A cluster, three times, and pods that come to it one after the other."""

    args: DefaultPreemptionArgs
    world: World
    at_once: World
    plain: World
    incoming: list[Pod]
    #: What happens before each of them comes.
    before: list[Change]

    def __repr__(self) -> str:
        """Short: the whole is tens of thousands of characters."""
        pods = [f"{p.name}@{p.node_name}:{p.priority}" for p in self.world.pods]
        incoming = [f"{p.name}:{p.priority}" for p in self.incoming]
        return f"Scene({[n.name for n in self.world.nodes]}, {pods}, {incoming})"


@st.composite
def _like_pods(draw) -> list[Pod]:
    """Few kinds of pods, so that many of them are alike."""
    kinds = draw(st.lists(incoming_pods(), min_size=1, max_size=2))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6))
    return [make_pod(f"in{i}", **fields) for i, fields in enumerate(chosen)]


@st.composite
def scenes(draw) -> Scene:
    absolute, percentage = draw(st.sampled_from(((100, 10), (1, 0), (2, 0), (0, 50))))
    objects = {
        "nodes": [
            make_node(name, **draw(nodes()))
            for name in draw(st.permutations(NODES))
            if draw(st.integers(0, 9))
        ],
        "pods": [
            *(
                make_pod(f"p{i}", **fields)
                for i, fields in enumerate(draw(st.lists(placed_pods(), min_size=5, max_size=20)))
            ),
            *(
                make_pod(f"held{i}", **{**fields, "nominated": draw(st.sampled_from(NODES))})
                for i, fields in enumerate(draw(seldom(1, 2, otherwise=0).flatmap(_that_many_pods)))
            ),
        ],
        "others": draw(st.lists(st.sampled_from(BUDGETS), unique_by=lambda budget: budget.name)),
        "args": {
            "minCandidateNodesAbsolute": absolute,
            "minCandidateNodesPercentage": percentage,
        },
    }
    scene = Scene(
        DefaultPreemptionArgs(
            min_candidate_nodes_absolute=absolute, min_candidate_nodes_percentage=percentage
        ),
        World(**objects),
        World(**objects, preemption=AtOnce),
        World(**objects, preemption=NodeByNode),
        draw(_like_pods()),
        [draw(st.sampled_from(CHANGES)) for _ in range(6)],
    )
    for world in (scene.world, scene.at_once, scene.plain):
        world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get
    return scene


@given(scene=scenes())
def test_preemption_does_what_the_specification_says(scene):
    """Pod after pod: who finds a node takes it, and victims leave, so that what is kept grows stale."""
    for pod, change in zip(scene.incoming, scene.before, strict=False):
        answers = []
        for world in (scene.world, scene.at_once, scene.plain):
            change(world)
            if not len(world.scheduler.cluster.snapshot()):
                return
            decision, state = world.attempt(pod)
            if decision.node_name is not None:
                world.add(pod.placed_on(decision.node_name))
                continue
            oracle = Oracle(world, pod, scene.args).answer(state, decision.diagnosis)
            answers += [oracle, given_by(world.plugin, pod, state, decision.diagnosis)]
            for key in oracle.victims:
                world.scheduler.cluster.remove_pod(world.scheduler.observed_pods.pop(key))
            if oracle.nominate and not pod.nominated_node_name:
                world.add(pod.with_status(nominated_node_name=oracle.nominate))
        if answers:
            event(f"{answers[0].code.title}")
            assert answers[1:] == answers[:1] * (len(answers) - 1)


@given(scene=scenes(), part_size=st.integers(1, 4))
def test_many_nodes_at_once_say_what_each_node_says_however_they_are_divided(scene, part_size):
    pod, world = scene.incoming[0], scene.at_once
    if not len(world.scheduler.cluster.snapshot()):
        return
    decision, state = world.attempt(pod)
    if decision.node_name is not None:
        return
    snapshot = world.scheduler.cluster.snapshot()
    rows = decision.diagnosis.rows_with(Code.UNSCHEDULABLE)
    trial = world.plugin._trial(state, pod, snapshot)

    at_once = {}
    for start in range(0, len(rows), part_size):
        at_once |= _by_row(trial.on_rows(rows[start : start + part_size]))

    assert _said(at_once) == _said({row: trial.run.on_node(snapshot.at(row)) for row in rows})


def _by_row(outcomes):
    found = dict(outcomes.alone)
    for rows, status in outcomes.refused:
        found |= dict.fromkeys(rows.tolist(), status)
    for reprieved in outcomes.together:
        found |= {row: reprieved.candidate(row) for row in reprieved.rows.tolist()}
    return found


def _said(outcomes):
    return {
        row: said_by({row: what}) if isinstance(what, Status) else what
        for row, what in outcomes.items()
    }
