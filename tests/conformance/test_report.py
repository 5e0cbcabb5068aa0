"""Mooring decides as kube-scheduler v1.36 did, on every public case."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from mooring.conformance.decisions import Case, decision_case, read_lines
from mooring.conformance.report import BOTH, WARM, check_case, check_file
from mooring.runtime.answers import Answers

GOLDEN = Path(__file__).parent.parent / "golden"

AREAS = sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.jsonl.gz"))


def test_the_golden_files_are_there():
    assert len(AREAS) == 20


@pytest.mark.parametrize("area", AREAS)
def test_every_case_is_decided_as_the_reference_decided_it(area):
    report = check_file(GOLDEN / f"{area}.jsonl.gz")

    assert report.differences == []
    assert report.passed == report.total


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    lines = read_lines(GOLDEN / "resources.jsonl.gz", decision_case)
    return [case for case, _ in zip(lines, range(10), strict=False)]


def test_a_wrong_answer_is_noticed_by_both_replays(cases):
    case = copy.deepcopy(cases[0])
    case.expect["results"][0]["outcome"] = "lost"

    (difference,) = check_case(case)

    assert (difference.field, difference.replay) == ("outcome", BOTH)


def test_an_answer_that_is_kept_too_long_is_noticed_by_the_warm_replay_alone(cases, monkeypatch):
    monkeypatch.setattr(Answers, "catch_up", lambda self, size: None)

    differences = [difference for case in cases for difference in check_case(case)]

    assert differences
    assert {difference.replay for difference in differences} == {WARM}
