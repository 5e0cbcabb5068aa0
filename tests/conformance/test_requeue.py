"""Replaying the golden cases of requeuing: what a case says is done, and what differs is noticed."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.conformance.report import check_case, check_file
from mooring.conformance.requeue import replay_requeue, requeue_case
from mooring.errors import InputError

GOLDEN = Path(__file__).parent.parent / "golden" / "requeue.jsonl.gz"

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    with gzip.open(GOLDEN) as cases:
        return [json.loads(case) for case in cases]


def first(lines: list[Line], has: Callable[[Line], bool]) -> tuple[Line, int]:
    """A copy of the first case with such an expectation, and the step of that."""
    return next(
        (copy.deepcopy(line), position)
        for line in lines
        for position, expected in enumerate(line["expect"])
        if has(expected)
    )


def has_two_attempts(expected: Line) -> bool:
    return len({attempt["pod"] for attempt in expected["attempts"]}) > 1


def swap_attempts(expected: Line) -> None:
    expected["attempts"].reverse()


def forget_an_attempt(expected: Line) -> None:
    expected["attempts"].pop()


def another_outcome(expected: Line) -> None:
    expected["attempts"][0]["outcome"] = "elsewhere"


def another_second(expected: Line) -> None:
    expected["attempts"][0]["after"] += 1


def in_queue(expected: Line, field: str) -> Line | None:
    return next((pod for pod in expected["queue"].values() if field in pod), None)


def another(field: str) -> Callable[[Line], None]:
    def change(expected: Line) -> None:
        pod = in_queue(expected, field)
        assert pod is not None
        pod[field] = ["Nobody"] if field == "plugins" else "nowhere"

    return change


def forget_a_pod(expected: Line) -> None:
    expected["queue"].popitem()


def forget_evictions(expected: Line) -> None:
    del expected["evicted"]


@pytest.mark.parametrize(
    ("has", "corrupt", "field"),
    [
        pytest.param(has_two_attempts, swap_attempts, "attempts", id="order of attempts"),
        pytest.param(has_two_attempts, forget_an_attempt, "attempts", id="an attempt"),
        pytest.param(has_two_attempts, another_outcome, "attempts", id="an outcome"),
        pytest.param(
            lambda expected: any("after" in each for each in expected["attempts"][:1]),
            another_second,
            "attempts",
            id="the second of an attempt",
        ),
        *(
            pytest.param(
                lambda expected, field=field: in_queue(expected, field) is not None,
                another(field),
                f".{field}",
                id=f"a waiting pod's {field}",
            )
            for field in ("where", "plugins", "gate", "nominated")
        ),
        pytest.param(
            lambda expected: expected["queue"], forget_a_pod, "queue.", id="a waiting pod"
        ),
        pytest.param(
            lambda expected: "evicted" in expected, forget_evictions, "evicted", id="evicted"
        ),
    ],
)
def test_a_corrupted_expectation_is_noticed_in_its_step(lines, has, corrupt, field):
    line, position = first(lines, has)
    corrupt(line["expect"][position])

    differences = list(check_case(requeue_case(line)))

    assert {difference.position for difference in differences} == {position}
    assert {difference.answer for difference in differences} == {f"step {position + 1}"}
    assert all(field in difference.field for difference in differences)


def test_a_case_is_told_in_steps_and_counted_in_attempts(tmp_path, lines):
    path = tmp_path / "requeue.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]))

    report = check_file(path)

    assert (report.area, report.total, report.passed) == ("requeue", 3, 3)
    assert report.attempts == sum(
        len(step["attempts"]) for line in lines[:3] for step in line["expect"]
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"expect": []}, "steps, but 0 expectations", id="steps without expectations"),
    ],
)
def test_a_line_that_cannot_be_replayed_says_why(tmp_path, lines, change, problem):
    path = tmp_path / "requeue.jsonl"
    path.write_text(json.dumps({**lines[0], **change}) + "\n")

    with pytest.raises(InputError, match=problem):
        check_file(path)


# Small cases, for what the golden ones have rarely or not at all


def node(name: str, *, cpu: str = "1") -> Line:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}},
    }


def pod(name: str, *, cpu: str = "1", uid: str = "", **spec: Any) -> Line:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or name},
        "spec": {"containers": [container], **spec},
    }


def replayed(objects: list[Line], *steps: Line, **more: Any) -> list[Line]:
    line = {"name": "small", "objects": objects, "steps": list(steps), **more}
    return replay_requeue(requeue_case({**line, "expect": [{} for _ in steps]}))


def test_a_change_during_an_attempt_is_not_in_its_snapshot_but_wakes_the_pod():
    (seen,) = replayed(
        [node("a", cpu="500m")],
        {
            "create": [pod("web")],
            "during": {"pod": "default/web", "create": [node("b")]},
        },
    )

    assert [attempt["outcome"] for attempt in seen["attempts"]] == ["unschedulable", "b"]


def test_preemption_during_a_change_chooses_its_victims_by_the_snapshot():
    """The node that comes would spare the victim, but the attempt has not seen it."""
    (seen,) = replayed(
        [node("a"), pod("meek", nodeName="a")],
        {
            "create": [pod("web", priority=10)],
            "during": {"pod": "default/web", "create": [node("b")]},
        },
    )

    assert seen["evicted"] == ["default/meek"]


def test_a_pod_that_is_deleted_during_its_attempt_is_gone():
    (seen,) = replayed(
        [node("a")],
        {"create": [pod("web")], "during": {"pod": "default/web", "delete": ["Pod/default/web"]}},
    )

    assert seen == {"attempts": [{"pod": "default/web", "outcome": "gone"}], "queue": {}}


def test_victims_that_linger_keep_their_place_until_a_step_deletes_them():
    evicting, freed = replayed(
        [node("a"), pod("meek", nodeName="a")],
        {"create": [pod("web", priority=10)]},
        {"delete": ["Pod/default/meek"]},
        lingering=True,
    )

    assert evicting["evicted"] == ["default/meek"]
    assert evicting["queue"]["default/web"]["nominated"] == "a"
    assert freed["attempts"] == [{"pod": "default/web", "outcome": "a"}]


def test_a_pod_that_finishes_makes_room_and_one_that_is_gone_is_passed_over():
    done = {**pod("meek", nodeName="a"), "status": {"phase": "Succeeded"}}
    seen = replayed(
        [node("a"), pod("meek", nodeName="a")],
        {"create": [pod("web")]},
        {"update": [done]},
        {"update": [done], "delete": ["Pod/default/meek"]},
    )

    assert [each["attempts"] for each in seen[1:]] == [[{"pod": "default/web", "outcome": "a"}], []]


def test_a_binding_that_is_refused_is_tried_again_after_the_backoff_of_errors():
    refused, tried = replayed(
        [node("a")],
        {"create": [pod("web")]},
        {"advance": 3},
        bindingsFail={"default/web": 1},
    )

    assert refused["attempts"] == [{"pod": "default/web", "outcome": "error"}]
    assert refused["queue"] == {"default/web": {"where": "backoff"}}
    assert tried["attempts"] == [{"pod": "default/web", "outcome": "a", "after": 2}]
