"""Two runs that have ended are compared without running them again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from mooring.explain.compare import Variant, compare
from mooring.web.comparison import Outcome, comparison_data, first_choices, seen_choices, why_data
from mooring.web.what_if import read_config
from tests.makers import make_node, make_pod
from tests.web_unit.clusters import BIG, run_of, run_spec

NAMES = ("before", "after")


def test_it_says_what_compare_says_of_the_same_runs():
    before = run_spec()
    after = replace(before, objects=(*before.objects, make_node("huge", cpu=64)))
    with closing(run_of(before)) as one, closing(run_of(after)) as two:
        data = comparison_data(NAMES, (Outcome.of(one), Outcome.of(two)))
    expected = compare([Variant("before", before), Variant("after", after)], explained=0).to_data()

    for mine, theirs in zip(data["variants"], expected["variants"], strict=True):
        wanted = {k: v for k, v in theirs["values"].items() if k != "decisionsPerSecond"}
        assert mine["values"] == wanted
        assert mine["pending"] == theirs["pending"]
    (difference,), (theirs,) = data["differences"], expected["differences"]
    moved = [{k: v for k, v in each.items() if k != "change"} for each in difference["moved"]]
    assert moved == theirs["moved"]
    assert next(each for each in difference["moved"] if each["pod"] == BIG)["change"] == "better"
    assert data["config"] == ""


def test_the_first_decisions_that_differ_are_explained_from_both_sides():
    before = run_spec()
    after = replace(before, objects=(*before.objects, make_node("huge", cpu=64)))
    with closing(run_of(before)) as one, closing(run_of(after)) as two:
        views = tuple(seen_choices(run.run_spec, first_choices(run, [BIG])) for run in (one, two))
    (why,) = why_data(NAMES, (views[0], views[1]))

    assert why["pod"] == BIG
    assert [side["node"] for side in why["sides"]] == [None, "huge"]


def test_numbered_pods_without_a_controller_are_one_line_of_the_workloads():
    """Each of them had a line of its own."""
    late = [make_pod(f"late-{i}", cpu=50) for i in range(3)]
    before = run_spec(*late)
    after = replace(before, objects=(*before.objects, make_node("huge", cpu=200)))
    with closing(run_of(before)) as one, closing(run_of(after)) as two:
        data = comparison_data(NAMES, (Outcome.of(one), Outcome.of(two)))

    better = {row["workload"]: row["better"] for row in data["workloads"] if row["better"]}
    assert better == {"default/late-*": 3, BIG: 1}


def test_a_pod_that_no_profile_schedules_is_on_no_node():
    """It was told as moved from a node that is called "other scheduler"."""
    before = run_spec(make_pod("own", cpu=1, scheduler="own"))
    profiles = "profiles: [{schedulerName: default-scheduler}, {schedulerName: own}]"
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    after = replace(before, config=read_config(header + profiles))
    with closing(run_of(before)) as one, closing(run_of(after)) as two:
        data = comparison_data(NAMES, (Outcome.of(one), Outcome.of(two)))

    (moved,) = [each for each in data["differences"][0]["moved"] if each["pod"] == "default/own"]
    assert (moved["baseline"], moved["change"]) == ("other scheduler", "better")
