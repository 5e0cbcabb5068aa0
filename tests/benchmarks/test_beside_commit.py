"""Two commits side by side: what is called slower, and what cannot be compared."""

from pathlib import Path

import pytest

from benchmarks import beside_commit
from benchmarks.beside_commit import Row, Side
from benchmarks.workloads import WORKLOADS


def test_speed_is_that_of_now_against_before() -> None:
    row = Row("basic", 500, before=Side(1000.0, 60.0), now=Side(900.0, 61.0))

    assert row.speed == 0.9


def test_of_several_rounds_the_fastest_and_the_smallest_count() -> None:
    rounds = iter([Side(10.0, 5.0), Side(20.0, 6.0), Side(12.0, 4.0), Side(18.0, 7.0)])

    before, now = beside_commit.alternate(lambda _: next(rounds), Path("before"), 2)

    assert before == Side(12.0, 4.0)
    assert now == Side(20.0, 6.0)


def test_a_round_runs_the_suite_in_a_process_of_its_own() -> None:
    side = beside_commit.one_round(beside_commit.HERE, workload="basic", nodes=20, most_s=0.05)

    assert side.decisions_per_s > 0
    assert side.peak_mb > 10


def test_the_workloads_of_a_checkout_are_asked_of_it() -> None:
    assert beside_commit.workloads_of(beside_commit.HERE) == set(WORKLOADS)


def test_a_commit_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert beside_commit.main(["no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err
