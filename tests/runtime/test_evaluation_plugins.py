"""Plugins of every allowed form: whatever is kept, the decision is that of asking everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config import default_config, load_config
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends
from mooring.framework.status import SUCCESS, unschedulable
from mooring.framework.verdicts import by_mask
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.choosing import SeededSpread, first_by_name
from mooring.scheduler.decision import Decision, NoNodesError
from mooring.scheduler.node_search import NodeSearch
from tests.decisions import assert_same_decision
from tests.engine import Engine
from tests.makers import ZONE, make_node, make_pod, make_spread
from tests.plugin.worlds import engine_with
from tests.runtime.drawn_plugins import (
    CLASS,
    CLASSES,
    COLOR,
    DESIGNS,
    Design,
)
from tests.runtime.drawn_plugins import make_plugin as drawn_plugin

FULL = unschedulable("node(s) were full enough")

NODES = 4


@dataclass(frozen=True)
class Form:
    """How a plugin is written."""

    scores: bool
    per_node: bool
    rows: bool
    depends: Depends
    normalizes: bool
    #: What tells its answers from another plugin's.
    number: int


def make_plugin(form: Form) -> type:
    """It scores, or refuses, a node by the number of pods on it, or by the node alone."""

    def value(row: int, pods: int) -> int:
        seen = pods if form.depends == Depends.USAGE else 0
        return (row * (form.number + 2) + seen * (form.number + 3)) % 90

    def score(self: object, state: Any, pod: Any, node: Any) -> int:
        return value(node.row, len(node.pods))

    def score_rows(self: object, state: Any, pod: Any, columns: Any, rows: Any) -> Any:
        numbers = np.arange(columns.size)[rows]
        counts = columns.pod_count[rows]
        return np.array(
            [value(int(r), int(c)) for r, c in zip(numbers, counts, strict=True)], np.int64
        )

    def accepts(row: int, pods: int) -> bool:
        return value(row, pods) % 7 != 0

    def filter_node(self: object, state: Any, pod: Any, node: Any) -> Any:
        return SUCCESS if accepts(node.row, len(node.pods)) else FULL

    def filter_rows(self: object, state: Any, pod: Any, columns: Any, rows: Any) -> Any:
        numbers = np.arange(columns.size)[rows]
        counts = columns.pod_count[rows]
        mask = [accepts(int(r), int(c)) for r, c in zip(numbers, counts, strict=True)]
        return by_mask(np.array(mask, np.bool_), FULL)

    def normalize_scores(self: object, state: Any, pod: Any, scores: Any) -> None:
        scores[:] = scores - scores.min()

    body: dict[str, Any] = {
        "name": f"P{form.number}",
        "depends_on": lambda self, pod: form.depends,
        "sign": lambda self, pod: {},
    }
    one, many = (("score", score), ("score_rows", score_rows))
    if not form.scores:
        one, many = (("filter", filter_node), ("filter_rows", filter_rows))
    if form.per_node:
        body[one[0]] = one[1]
    if form.rows:
        body[many[0]] = many[1]
    if form.scores and form.normalizes:
        body["normalize_scores"] = normalize_scores
    return type(f"P{form.number}", (), body)


def engine(forms: list[Form], *, keep: bool) -> Engine:
    enabled = [{"name": f"P{form.number}", "weight": 3} for form in forms]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    return Engine(
        *(make_node(f"n{i}", cpu="100") for i in range(NODES)),
        config=load_config(config),
        plugins={f"P{form.number}": make_plugin(form) for form in forms},
        keep_answers=keep,
    )


def choices(forms: list[Form], *, keep: bool, pods: int = 12) -> list[tuple[str, str | None]]:
    tested = engine(forms, keep=keep)
    for number in range(pods):
        tested.handlers.added(make_pod(f"p{number}", cpu="100m", labels={"app": "a"}))
        while tested.scheduler.schedule_one():
            pass
        if number % 2:
            tested.scheduler.validate()
    assert len(tested.decisions) >= pods
    return [(decision.pod.name, decision.node_name) for decision in tested.decisions[:pods]]


@pytest.mark.parametrize("scores", [True, False], ids=["score_rows", "filter_rows"])
def test_a_plugin_that_has_only_the_form_for_rows_may_depend_on_usage(scores):
    """A kept ranking brought one row up to date by the form for a node, which there was not."""
    form = Form(scores, False, True, Depends.USAGE, False, 1)

    assert choices([form], keep=True) == choices([form], keep=False)


def test_a_score_that_normalizes_does_not_hide_the_next_one_that_depends_on_usage():
    """After the first such plugin had normalised, the scores of the second stayed as they were."""
    forms = [
        Form(True, True, False, Depends.USAGE, True, 1),
        Form(True, True, False, Depends.USAGE, False, 5),
    ]

    assert choices(forms, keep=True, pods=40) == choices(forms, keep=False, pods=40)


FORMS = st.lists(
    st.builds(
        lambda scores, which, depends, normalizes: (scores, which, depends, normalizes),
        st.booleans(),
        st.sampled_from(("node", "rows", "both")),
        st.sampled_from((Depends.NODE, Depends.USAGE, Depends.NODES, Depends.CLUSTER)),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.long
@given(FORMS)
def test_whatever_the_plugins_a_ranking_chooses_what_a_full_evaluation_does(drawn):
    forms = [
        Form(scores, which != "rows", which != "node", depends, normalizes, number)
        for number, (scores, which, depends, normalizes) in enumerate(drawn)
    ]

    assert choices(forms, keep=True) == choices(forms, keep=False)


@dataclass(frozen=True)
class Step:
    """Something happens in the cluster, then a pod is decided on."""

    happens: str
    #: Which node or pod it happens to; and what colour, zone or size a node gets.
    which: int
    how: int
    #: What the pod is like.
    shape: int
    pod_class: str
    #: Whether the pod goes where it was decided to go.
    placed: bool
    #: Whether everything that is kept is checked afterwards, and so brought up to date.
    validated: bool


STEPS = st.builds(
    Step,
    happens=st.sampled_from(
        [
            "nothing",
            "nothing",
            "a node comes or changes",
            "a node goes",
            "a pod comes",
            "a pod goes",
            "many pods come",
            "a pod is seen on an unknown node",
            "a node is held for a pod",
            "a held node is given up",
        ]
    ),
    which=st.integers(0, 11),
    how=st.integers(0, 11),
    shape=st.integers(0, 6),
    pod_class=st.sampled_from(CLASSES),
    placed=st.booleans(),
    validated=st.sampled_from([False, False, False, False, False, True]),
)


class Story:
    """A life of a cluster; each pod is decided on with kept answers and from scratch."""

    def __init__(self, designs: list[Design], *, first: bool, nodes: int, seed: int | None) -> None:
        drawn = [{"name": f"P{i}", "weight": design.weight} for i, design in enumerate(designs)]
        enabled: dict[str, Any] = {"enabled": drawn}
        if first:
            defaults = default_config().profiles[0].plugins.multi_point.enabled
            others = [{"name": plugin.name, "weight": plugin.weight} for plugin in defaults]
            enabled = {"disabled": [{"name": "*"}], "enabled": drawn + others}
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": enabled}}],
        }
        self.engine = Engine(
            config=load_config(config),
            plugins={f"P{i}": drawn_plugin(f"P{i}", design) for i, design in enumerate(designs)},
            tie_break=first_by_name if seed is None else SeededSpread(seed),
        )
        self.scheduler = self.engine.scheduler
        #: Pods that wait while a node is held for them.
        self.waiting: list[Pod] = []
        self.count = 0
        for number in range(nodes):
            self.engine.handlers.added(_node(number, number))

    def take(self, step: Step) -> None:
        self._happen(step)
        pod = self._pod(step)
        node_name = self.decide(pod)
        if node_name is not None and step.placed:
            self.engine.handlers.added(pod.placed_on(node_name))
        if step.validated:
            self.validate()

    def validate(self) -> None:
        """Not after each step: what is kept is to follow whether or not somebody looks at it."""
        self.scheduler.validate()

    def decide(self, pod: Pod) -> str | None:
        """Raises AssertionError unless both decisions are the same in everything."""
        framework = self.scheduler.frameworks["default-scheduler"]
        keeping = self.scheduler.searches["default-scheduler"]
        from_scratch = NodeSearch(keeping.tie_break)
        expected, expected_state = self._search(from_scratch, framework, pod)
        got, state = self._search(keeping, framework, pod)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            # Whatever a plugin does, only the attempt fails, and says which plugin it was.
            assert (type(got), str(got)) == (type(expected), str(expected))
            assert isinstance(got, PluginFailure | NoNodesError), got
            return None
        assert state.skip_filter == expected_state.skip_filter
        if expected.scored is not None:
            assert state.skip_score == expected_state.skip_score
        assert_same_decision(got, expected)
        assert got.diagnosis.message == expected.diagnosis.message
        return got.node_name

    def _search(
        self, search: NodeSearch, framework: Framework, pod: Pod
    ) -> tuple[Decision | Exception, CycleState]:
        state = CycleState()
        try:
            return search.schedule_pod(
                framework, state, pod, self.scheduler.cluster.snapshot()
            ), state
        except Exception as error:
            return error, state

    # What happens

    def _happen(self, step: Step) -> None:
        handlers, cluster = self.engine.handlers, self.scheduler.cluster
        name = f"node-{step.which}"
        known = cluster.infos.get(name)
        node = known.node if known is not None else None
        pods = list(cluster.pods.values())
        if step.happens == "a node comes or changes":
            changed = _node(step.which, step.how)
            if node is None:
                handlers.added(changed)
            else:
                handlers.updated(node, changed)
        elif step.happens == "a node goes" and node is not None:
            handlers.deleted(node)
        elif step.happens == "a pod comes":
            handlers.added(self._pod(step).placed_on(name))
        elif step.happens == "many pods come":
            for number in range(step.how + 1):
                handlers.added(self._pod(step).placed_on(f"node-{(step.which + number) % 12}"))
        elif step.happens == "a pod goes" and pods:
            handlers.deleted(pods[step.how % len(pods)])
        elif step.happens == "a pod is seen on an unknown node":
            handlers.added(self._pod(step).placed_on(f"unseen-{step.how % 3}"))
        elif step.happens == "a node is held for a pod":
            self.waiting.append(self._pod(step, nominated=name))
            handlers.added(self.waiting[-1])
        elif step.happens == "a held node is given up" and self.waiting:
            handlers.deleted(self.waiting.pop(step.how % len(self.waiting)))

    def _pod(self, step: Step, nominated: str | None = None) -> Pod:
        self.count += 1
        if step.shape == 6:
            nominated = f"node-{step.how}"
        return make_pod(
            f"pod-{self.count}",
            cpu="1" if step.shape % 2 else "100m",
            labels={CLASS: step.pod_class},
            ports=[8080] if step.shape == 2 else [],
            spread=(
                [make_spread(ZONE, hard=step.shape == 3, labels={CLASS: step.pod_class})]
                if step.shape in (3, 4)
                else []
            ),
            priority=10 if step.shape == 5 else 0,
            nominated=nominated,
        )


def _node(number: int, how: int) -> Node:
    return make_node(
        f"node-{number}",
        cpu=str(2 + how % 3),
        zone="xyz"[how % 3],
        labels={COLOR: "red" if how % 2 else "blue"},
        taints=["k=v:NoSchedule"] if how == 11 else [],
    )


@pytest.mark.long
@given(
    designs=st.lists(DESIGNS, min_size=1, max_size=5),
    first=st.booleans(),
    nodes=st.integers(0, 12),
    seed=st.one_of(st.none(), st.integers(0, 99)),
    steps=st.lists(STEPS, min_size=1, max_size=25),
)
def test_whatever_the_plugins_a_kept_evaluation_decides_what_one_from_scratch_decides(
    designs, first, nodes, seed, steps
):
    story = Story(designs, first=first, nodes=nodes, seed=seed)

    for step in steps:
        story.take(step)
    story.validate()


def test_a_version_of_signatures_that_cannot_be_had_is_told_once(caplog):
    """Each decision asks for it."""

    class Versions:
        name = "Versions"

        def filter(self, state, pod, node): ...

        def depends_on(self, pod):
            return Depends.NODE

        def sign(self, pod):
            return {}

        def sign_version(self):
            raise ValueError("no version")

    engine = engine_with(Versions, objects=(make_node("n"), *map(make_pod, "abc")))
    while engine.scheduler.schedule_one():
        pass

    assert caplog.messages == [
        "plugin Versions cannot say whether signatures have changed: ValueError: no version"
    ]
