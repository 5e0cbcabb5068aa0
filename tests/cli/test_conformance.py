"""`mooring conformance`: what it says of golden files that agree and of those that do not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.runtime.answers import Answers
from tests.cli.running import mooring

GOLDEN = Path(__file__).parents[1] / "golden" / "taints.jsonl.gz"


@pytest.fixture
def cases() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN) as lines:
        return [json.loads(line) for line, _ in zip(lines, range(3), strict=False)]


@pytest.fixture
def golden(tmp_path: Path):
    def write(cases: list[dict[str, Any]], name: str = "taints.jsonl") -> Path:
        path = tmp_path / name
        text = "".join(f"{json.dumps(case)}\n" for case in cases)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", ["taints.jsonl", "taints.jsonl.gz"])
def test_it_prints_the_area_and_exits_0_if_all_agree(golden, cases, name):
    result = mooring("conformance", golden(cases, name))

    assert result.exit_code == 0
    assert result.stdout == "taints 3/3\n"


def scheduled(case: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in case["expect"]["results"] if each["outcome"] == "scheduled")


def test_it_shows_what_was_expected_and_what_it_got_and_exits_1(golden, cases):
    answer = scheduled(cases[1])
    right, answer["chosen"] = answer["chosen"], "elsewhere"

    result = mooring("conformance", golden(cases))

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "taints 2/3"
    assert cases[1]["name"] in lines[1]
    assert "replay" not in lines[1]
    assert answer["pod"] in lines[1]
    assert [line.strip() for line in lines[2:5]] == [
        "chosen",
        'expected  "elsewhere"',
        f'got       "{right}"',
    ]


def test_it_shows_as_many_answers_as_it_is_asked_to(golden, cases):
    for case in cases:
        scheduled(case)["chosen"] = "elsewhere"
    path = golden(cases)

    one, none = mooring("conformance", path, "--show", 1), mooring("conformance", path, "--show", 0)

    assert one.stdout.count("elsewhere") == 1
    assert (
        "… and 2 more answers that differ; use --show 3 or --output json to see all" in one.stdout
    )
    assert none.stdout.count("elsewhere") == 0


def test_it_says_which_answers_differ_in_the_warm_replay_only(golden, cases, monkeypatch):
    monkeypatch.setattr(Answers, "catch_up", lambda self, size: None)
    path = golden(cases)

    result = mooring("conformance", path)
    in_json = mooring("conformance", path, "-o", "json")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].endswith(" (warm replay)")
    (file,) = json.loads(in_json.stdout)["files"]
    assert {difference["replay"] for difference in file["differences"]} == {"warm"}


def test_json_has_every_difference(golden, cases):
    scheduled(cases[0])["chosen"] = "elsewhere"

    result = mooring("conformance", golden(cases), "-o", "json")

    assert result.exit_code == 1
    (file,) = json.loads(result.stdout)["files"]
    assert (file["area"], file["total"], file["passed"]) == ("taints", 3, 2)
    (difference,) = file["differences"]
    assert difference["field"] == "chosen"
    assert difference["expected"] == "elsewhere"
    assert difference["replay"] == "both"


def test_a_file_that_cannot_be_read_exits_2_and_the_others_are_checked(golden, cases, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")

    result = mooring("conformance", broken, golden(cases), tmp_path / "nothing.jsonl.gz")

    assert result.exit_code == 2
    assert result.stdout == "taints 3/3\n"
    first, second = result.stderr.splitlines()
    assert first.startswith(f"error: {broken}: line 1: not a golden case")
    assert second == (
        f"error: {tmp_path / 'nothing.jsonl.gz'}: cannot be read: No such file or directory"
    )


def test_a_file_without_cases_proves_nothing_and_exits_2(golden):
    file = golden([])

    result = mooring("conformance", file)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"error: {file}: holds no cases, so nothing was compared\n"
