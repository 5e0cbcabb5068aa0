"""The kit catches each kind of lie, and does not accuse honest plugins."""

from __future__ import annotations

import pytest

from mooring.errors import ConfigError, PluginError
from mooring.plugin_kit import BrokenPromise, check_plugin
from mooring.plugin_kit.check import check_subject
from mooring.plugin_kit.subject import load_subject, subject_of
from mooring.plugins.registry import BUILT_IN
from tests.plugin_kit import liars
from tests.plugin_kit.liars import LIARS, Honest, Reserves

#: Each takes a while; `mooring plugin check NAME --seeds 500` looks harder.
FEW = 1


@pytest.mark.long
@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_a_plugin_that_lies_is_caught(liar):
    report = check_subject(subject_of(liar), seeds=40, most_findings=1, shrinks=False)

    assert [finding.rule.name for finding in report.findings] == [LIARS[liar]]


@pytest.mark.long
@pytest.mark.parametrize("plugin", [Honest, Reserves])
def test_an_honest_plugin_is_not_accused(plugin):
    report = check_plugin(plugin, seeds=5)

    assert report.honest
    assert report.checked["hints"] > 10
    assert report.checked["depends_on"] > 100


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_plugin_keeps_its_promises(name):
    report = check_plugin(BUILT_IN[name], seeds=FEW)

    assert report.checked["repeats"]


def test_another_order_of_sets_in_another_process_is_noticed():
    target = f"{liars.__name__}:DependsOnTheOrderOfASet"
    report = check_subject(load_subject(target), seeds=1, target=target)

    assert [finding.rule.name for finding in report.findings] == ["repeats"]
    assert "another process" in report.findings[0].problem


def test_an_honest_plugin_answers_the_same_in_another_process():
    target = f"{liars.__name__}:Honest"

    assert check_subject(load_subject(target), seeds=1, target=target).honest


def test_a_finding_has_the_smallest_case_that_breaks_the_rule():
    """A pod comes to a node, and the score changes though Depends.NODE was declared."""
    report = check_subject(subject_of(liars.SaysNodeAndReadsPods), seeds=1)

    (finding,) = report.findings
    kinds = [event.manifest["kind"] for event in finding.case.events]
    assert kinds == ["Node", "Pod"]
    assert len(finding.case.pods) == 1
    assert "Depends.NODE" in finding.problem
    text = str(finding)
    assert "to do: return the wider Depends" in text
    assert "nodeName: " in text
    assert "taints" not in text


def test_a_finding_is_found_again_from_its_seed():
    first = check_subject(subject_of(liars.SignsNothing), seeds=5, most_findings=1)
    seed = first.findings[0].case.seed

    again = check_subject(subject_of(liars.SignsNothing), seeds=1, first_seed=seed)

    assert [finding.problem for finding in again.findings] == [first.findings[0].problem]


def test_a_broken_promise_is_a_failed_assertion_with_the_case():
    with pytest.raises(BrokenPromise, match="broken: scores are whole numbers") as raised:
        check_plugin(liars.ScoresTooHigh, seeds=2)

    assert isinstance(raised.value, AssertionError)
    assert not raised.value.report.honest


def test_what_a_rule_was_not_tried_on_is_said():
    class NeverRefuses:
        name = "NeverRefuses"

        def filter(self, state, pod, node):
            return None

    report = check_plugin(NeverRefuses, seeds=2)

    assert any("never refused" in note for note in report.notes)
    assert any("no depends_on" in note for note in report.notes)


def test_objects_of_the_user_are_drawn_from():
    """Without them, no node has so many cores."""

    class BigNodesOnly:
        name = "BigNodesOnly"

        def filter(self, state, pod, node):
            big = node.allocatable.get("cpu", 0) >= 1_000_000
            return None if big else liars.NO_DISK

    big = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "big"},
        "status": {"allocatable": {"cpu": "1000", "memory": "1Ti", "pods": "10"}},
    }

    without = check_plugin(BigNodesOnly, seeds=3)
    report = check_plugin(BigNodesOnly, seeds=3, objects=[big])

    assert any("never let a node pass" in note for note in without.notes)
    assert not any("never" in note for note in report.notes)


def test_the_cost_of_a_decision_is_measured_with_and_without_the_plugin():
    report = check_subject(subject_of(Honest), seeds=1, cost_nodes=50)

    assert report.cost is not None
    assert report.cost.without_us > 0
    assert report.cost.with_us > 0
    assert {"filter", "score"} & report.cost.by_method_us.keys()


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(42, "is not a class", id="a number"),
        pytest.param(dict, "has no method of any extension point", id="no plugin"),
        pytest.param("no.such.module:X", "cannot be loaded", id="no module"),
        pytest.param("json:Nothing", "cannot be loaded", id="no class"),
        pytest.param("Nothing", "no plugin is called 'Nothing'", id="no name"),
    ],
)
def test_what_is_no_plugin_cannot_be_checked(plugin, problem):
    with pytest.raises(PluginError, match=problem):
        check_plugin(plugin)


def test_args_that_the_plugin_refuses_cannot_be_checked():
    class Picky:
        name = "Picky"

        def __init__(self, args):
            if not args:
                raise ValueError("most is required")

        def filter(self, state, pod, node):
            return None

    with pytest.raises(ConfigError, match="most is required"):
        check_plugin(Picky)
    assert check_plugin(Picky, {"most": 1}, seeds=1).honest
