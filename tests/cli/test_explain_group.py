"""`mooring explain podgroup/NAME`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import mooring

TRAINING = Path(__file__).parents[2] / "examples" / "05-training" / "cluster.yaml"
GATES = (
    "--feature-gates",
    "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true",
)


def explain(name: str, *more: str):
    return mooring("explain", name, TRAINING, *GATES, *more)


def test_a_gang_that_waits_is_explained_as_a_whole():
    result = explain("podgroup/vision", "--until", "10m")

    assert result.exit_code == 1, result.output
    text = result.stdout
    assert "PodGroup default/vision: 4 pods, minCount 4, within one example.com/rack" in text
    assert "TRIED IN 2 PLACEMENTS" in text
    assert "add 2 nodes like b-1" in text
    assert text.splitlines()[-1].startswith("default/vision is unschedulable: 0/2 placements are")


def test_a_gang_that_is_placed_is_said_to_be_with_the_scores_of_its_placements():
    result = explain("podgroup/llm", "--until", "10m")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "default/llm is scheduled: 4 pods on 2 nodes"
    assert any(
        line.split()[:6] == ["a", "2", "4", "of", "4", "100"] for line in result.stdout.splitlines()
    )


def test_json_has_every_placement_with_every_member_and_every_change():
    result = explain("podgroup/default/vision", "--until", "10m", "-o", "json")
    told = json.loads(result.stdout)

    assert (told["state"], told["fits"], told["minCount"]) == ("unschedulable", False, 4)
    assert [
        (each["name"], each["placed"], len(each["members"])) for each in told["placements"]
    ] == [
        ("a", 0, 4),
        ("b", 0, 4),
    ]
    assert told["stoppedBy"]["message"].endswith("2 Insufficient nvidia.com/gpu.")
    assert "add-node" in {each["change"]["kind"] for each in told["wouldFitIf"]["answers"]}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("podgroup/visoin",), "did you mean default/vision?"),
        (("podgroup/other/vision",), "there is no pod group 'other/vision'"),
        (("podgroup/vision", "--node", "a-1"), "--node is about a pod"),
        (("podgroup/vision", "--feature-gates", "GenericWorkload=false"), "--feature-gates"),
    ],
)
def test_what_it_cannot_answer_it_says_and_exits_2(arguments, problem):
    result = explain(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.output
