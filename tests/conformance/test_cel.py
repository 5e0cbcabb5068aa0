"""Replaying the golden cases of CEL: what differs is noticed."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.conformance.cel import cel_case, replay_cel
from mooring.conformance.report import check_case, check_file
from mooring.errors import InputError

GOLDEN = Path(__file__).parent.parent / "golden" / "cel.jsonl.gz"

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    with gzip.open(GOLDEN) as cases:
        return [json.loads(case) for case in cases]


def test_no_case_is_missing(lines):
    """`test_report.py` replays them."""
    assert len(lines) == 1500


def test_every_text_of_a_runtime_error_is_that_of_the_reference(lines):
    failing = [line for line in lines if "runtimeError" in line["expect"]]
    assert len(failing) > 200
    assert [line["name"] for line in failing if replay_cel(cel_case(line)) != line["expect"]] == []


@pytest.mark.parametrize(
    ("had", "change", "field"),
    [
        ("value", {"value": None}, "value"),
        ("value", {"cost": -1}, "cost"),
        ("compileError", {"runtimeError": "x"}, "compileError"),
    ],
)
def test_a_difference_is_noticed(lines, had, change, field):
    line = copy.deepcopy(
        next(
            line for line in lines if {had, "cost"} & set(line["expect"]) and had in line["expect"]
        )
    )
    if had == "compileError":
        line["expect"] = {}
    line["expect"].update(change)
    assert field in {difference.field for difference in check_case(cel_case(line))}


def test_a_line_that_expects_nothing_is_refused(tmp_path, lines):
    path = tmp_path / "cel.jsonl"
    path.write_text(json.dumps({**lines[0], "expect": {}}))
    with pytest.raises(InputError, match="line 1: not a golden case"):
        check_file(path)
