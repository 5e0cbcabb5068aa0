"""Plugins of every allowed form: whatever is kept, the decision is that of asking everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config import load_config
from mooring.framework.interface import Depends
from mooring.framework.status import SUCCESS, unschedulable
from mooring.framework.verdicts import by_mask
from tests.engine import Engine
from tests.makers import make_node, make_pod

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
            tested.scheduler.cluster.validate()
            tested.scheduler.queue.validate()
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


@given(FORMS)
def test_whatever_the_plugins_a_ranking_chooses_what_a_full_evaluation_does(drawn):
    forms = [
        Form(scores, which != "rows", which != "node", depends, normalizes, number)
        for number, (scores, which, depends, normalizes) in enumerate(drawn)
    ]

    assert choices(forms, keep=True) == choices(forms, keep=False)
