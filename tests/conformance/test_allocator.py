"""Replaying the golden cases of the allocator: what differs is noticed, and only that."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.conformance.allocator import allocator_case
from mooring.conformance.report import check_case

GOLDEN = Path(__file__).parent.parent / "golden" / "allocator.jsonl.gz"

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    with gzip.open(GOLDEN) as cases:
        return [json.loads(case) for case in cases]


def first(lines: list[Line], has: Callable[[Line], bool]) -> tuple[Line, str]:
    """A copy of the first case with such an answer, and the node of that."""
    return next(
        (copy.deepcopy(line), node)
        for line in lines
        for node, answer in line["expect"]["nodes"].items()
        if has(answer)
    )


def fields(line: Line) -> list[tuple[str, str]]:
    return [(each.answer, each.field) for each in check_case(allocator_case(line))]


def another_device(answer: Line) -> None:
    answer["allocations"][0]["devices"]["results"][0]["device"] = "another"


def nothing(answer: Line) -> None:
    del answer["none"]
    answer["allocations"] = []


def another_text(answer: Line) -> None:
    answer["error"] += ", or not"


def the_whole_pod(answer: Line) -> None:
    del answer["nodeOnly"]


def has_results(answer: Line) -> bool:
    return any("results" in each["devices"] for each in answer.get("allocations", []))


@pytest.mark.parametrize(
    ("has", "corrupt", "found"),
    [
        pytest.param(has_results, another_device, ["allocations"], id="a device"),
        pytest.param(lambda answer: "none" in answer, nothing, ["allocations", "none"], id="none"),
        pytest.param(
            lambda answer: "claim limit" in answer.get("error", ""),
            another_text,
            ["error"],
            id="the text of an error",
        ),
        pytest.param(
            lambda answer: "nodeOnly" in answer, the_whole_pod, ["nodeOnly"], id="who is concerned"
        ),
        pytest.param(
            lambda answer: "CEL runtime error" in answer.get("error", ""),
            another_text,
            [],
            id="text for information",
        ),
    ],
)
def test_what_differs_is_noticed(lines, has, corrupt, found):
    line, node = first(lines, has)

    corrupt(line["expect"]["nodes"][node])

    assert sorted(fields(line)) == sorted((f"node {node}", field) for field in found)


def test_a_node_without_an_answer_is_noticed(lines):
    line, node = first(lines, has_results)
    line["objects"] = [each for each in line["objects"] if each["metadata"]["name"] != node]

    assert (f"node {node}", "allocations") in fields(line)


def test_the_order_of_objects_does_not_matter(lines):
    """The reference gave the same answers with slices, nodes and claims in reverse."""
    for line in lines:
        line = {**line, "objects": line["objects"][::-1]}
        assert fields(line) == []
