"""What is said of a scheduler under pressure is what the audit log says; a wrong answer is noticed."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from dataclasses import replace

import pytest

from benchmarks import report
from benchmarks.answers import WrongAnswer
from benchmarks.pressure import _scenario, merged
from benchmarks.pressure_audit import Answer, Pods, Requests, percentile
from benchmarks.pressure_scenarios import SCENARIOS, quantity, within_allocatable
from benchmarks.pressure_table import FILE, SECTION, line, markdown, plain
from tests.live import objects
from tests.live.proxy import Fate, Fault, everything, refusal

SCHEDULER = "system:kube-scheduler"


def answer(verb: str, resource: str, name: str, at_s: float = 1.0, code: int = 201) -> Answer:
    return Answer(at_s, SCHEDULER, verb, resource, name, code)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([], 0.5, None, id="of nothing"),
        pytest.param([3.0], 0.99, 3.0, id="of one"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 0.5, 2.0, id="two of four do not exceed it"),
        pytest.param(list(range(1, 201)), 0.99, 198, id="198 of 200 do not exceed it"),
        pytest.param([1.0, 2.0], 0.0, 1.0, id="the smallest"),
    ],
)
def test_a_percentile_is_one_of_the_values(values, share, expected):
    assert percentile(values, share) == expected


def test_a_line_of_the_audit_log_is_an_answer():
    document = {
        "stageTimestamp": "1970-01-01T00:00:10.250000Z",
        "user": {"username": SCHEDULER},
        "verb": "create",
        "objectRef": {"resource": "pods", "subresource": "binding", "name": "web-1"},
        "responseStatus": {"code": 201},
    }

    assert Answer.read(document) == answer("create", "pods/binding", "web-1", 10.25)


def test_a_pod_that_a_controller_creates_has_the_name_that_the_api_server_answers():
    document = {
        "stageTimestamp": "1970-01-01T00:00:10Z",
        "user": {"username": SCHEDULER},
        "verb": "create",
        "objectRef": {"resource": "pods"},
        "responseStatus": {"code": 201},
        "responseObject": {"metadata": {"name": "web-x7k2p"}},
    }

    assert Answer.read(document).name == "web-x7k2p"


def test_pods_are_followed_from_creation_to_bind_to_deletion():
    pods = Pods()
    for each in (
        answer("create", "pods", "before", 1.0),
        answer("create", "pods", "stays", 10.0),
        answer("create", "pods", "deleted", 10.0),
        answer("create", "pods", "evicted", 10.0),
        answer("create", "pods", "refused", 10.0),
        answer("create", "pods/binding", "before", 11.0),
        answer("create", "pods/binding", "stays", 12.5),
        answer("create", "pods/binding", "deleted", 9.9),
        answer("create", "pods/binding", "evicted", 14.0),
        answer("create", "pods/binding", "refused", 14.0, code=409),
        answer("delete", "pods", "deleted", 15.0, code=200),
        answer("delete", "pods", "stays", 15.0, code=404),
        answer("create", "pods/eviction", "evicted", 15.0),
        answer("create", "pods/eviction", "stays", 15.0, code=429),
    ):
        pods.note(each)

    assert pods.bound_since(10.0) == ["stays", "deleted", "evicted"]
    assert pods.bound_since(10.0, prefix="ev") == ["evicted"]
    assert pods.placed_since(10.0) == ["stays"]
    assert pods.placed_since(0.0) == ["before", "stays"]
    # The answer to the creation of "deleted" came after the bind.
    assert pods.latencies_s(["stays", "deleted", "evicted"]) == [2.5, 0.0, 4.0]


def test_requests_are_counted_by_kind_and_by_answer():
    asked = [
        answer("create", "pods/binding", "a"),
        answer("create", "pods/binding", "b", code=409),
        answer("delete", "pods", "victim", code=200),
        answer("delete", "pods", "victim", code=404),
        answer("patch", "pods/status", "a", code=200),
        answer("patch", "pods/status", "a", code=409),
        answer("patch", "pods/status", "a", code=200),
        answer("patch", "pods/status", "b", code=404),
        answer("create", "events", "a.1"),
        answer("patch", "events", "a.1", code=200),
    ]
    of_others = [
        Answer(1.0, "admin", "delete", "pods", "c", 200),
        answer("create", "pods/binding", "too-early", 0.5),
    ]

    assert Requests.count(asked + of_others, user=SCHEDULER, since_s=1.0) == Requests(
        binds=2,
        binds_refused=1,
        deletions=2,
        deletions_gone=1,
        status_patches=4,
        status_gone=1,
        status_conflicts=1,
        most_status_patches=3,
        events_created=1,
        events_patched=1,
    )


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [("100m", 100), ("4", 4000), ("2Ki", 2_048_000), ("1Mi", 1_048_576_000)],
)
def test_quantities_are_compared_in_thousandths(text, thousandths):
    assert quantity(text) == thousandths


@pytest.mark.parametrize(
    ("count", "cpu"), [pytest.param(2, "2500m", id="cpu"), pytest.param(4, "1", id="places")]
)
def test_a_node_that_has_more_than_it_can_hold_is_a_wrong_answer(count, cpu):
    node = objects.node("n", cpu="4", pods=3)
    pods = [objects.pod(f"p-{number}", cpu=cpu, nodeName="n") for number in range(count)]

    within_allocatable([node], [*pods[:-1], objects.pod("waits", cpu="100")])
    with pytest.raises(WrongAnswer, match="n has"):
        within_allocatable([node], pods)


def test_a_refusal_says_when_to_try_again():
    fault = Fault(Fate.REFUSED, everything, times=1, status=429)

    assert b"Retry-After" not in refusal(fault)
    assert refusal(replace(fault, retry_after_s=1)).startswith(
        b"HTTP/1.1 429 Refused\r\nRetry-After: 1\r\n"
    )


def test_every_scenario_has_a_name_and_says_what_happens():
    assert list(SCENARIOS) == list("abcdefgh")
    assert len({scenario.name for scenario in SCENARIOS.values()}) == len(SCENARIOS)
    assert all(scenario.says and not scenario.says.endswith(".") for scenario in SCENARIOS.values())


def run(*, bound: int = 500, seconds: float | None = 20.0) -> dict[str, object]:
    requests = {
        "binds": 500,
        "binds_refused": 0,
        "deletions": 0,
        "deletions_gone": 0,
        "status_patches": 1600,
        "status_gone": 2,
        "status_conflicts": 1,
        "most_status_patches": 4,
        "events_created": 500,
        "events_patched": 0,
    }
    return {
        "wanted": 500,
        "bound": bound,
        "seconds": seconds,
        "p50_s": 0.5,
        "p99_s": 1.5,
        "cpu_s": 3.0,
        "api_server_cpu_s": 9.0,
        "peak_mb": 120.0,
        "start_mb": 80.0,
        "end_mb": 95.0,
        "requests": requests,
        "refused_writes": 0,
        "is_idle": True,
    }


def result(scheduler: str, *runs: dict[str, object], scale: float = 1.0, **other: object):
    return {
        "scenario": "f",
        "name": "slow API server",
        "says": "everything takes longer",
        "qps": "default",
        "scheduler": scheduler,
        "scale": scale,
        "runs": list(runs),
        "problems": [],
        **other,
    }


def test_a_row_of_the_page_has_both_schedulers_side_by_side():
    results = [
        result("mooring", run()),
        result("kube-scheduler", run(bound=480, seconds=None)),
        result("mooring", run(), scale=0.1),
    ]

    said, _, _, _, *rest = markdown({"results": results}).splitlines()
    rows = rest[: rest.index("")]

    assert said == "- **slow API server**: everything takes longer."
    assert rows == [
        "| slow API server | default | 500 / 480 of 500 | 20.0 / – | 0.50 / 0.50 | 1.50 / 1.50"
        " | 3.0 / 3.0 | 120 / 120 | 15 / 15 | 500 / 500 | 0 / 0 | 1,600 (2, 1) / 1,600 (2, 1)"
        " | 4 / 4 | 500 / 500 | 0 / 0 |",
        "| slow API server, 1/10 of the size | default | 500 / – | 20.0 / – | 0.50 / – | 1.50 / –"
        " | 3.0 / – | 120 / – | 15 / – | 500 / – | 0 / – | 1,600 (2, 1) / –"
        " | 4 / – | 500 / – | 0 / – |",
    ]


def test_a_scheduler_that_was_not_measured_or_failed_has_no_figures():
    [*_, alone] = markdown({"results": [result("mooring", run())]}).splitlines()
    failed = result("kube-scheduler", problems=["WrongAnswer: n has too much"])
    [*_, beside] = markdown({"results": [result("mooring", run()), failed]}).splitlines()

    assert alone.startswith("| slow API server | default | 500 / – | 20.0 / – |")
    assert beside.startswith("| slow API server | default | 500 / failed | 20.0 / – |")


def test_a_figure_of_several_runs_is_their_median_with_the_extremes():
    table = plain([result("mooring", run(seconds=20.0), run(seconds=24.0), run(seconds=21.0))])

    head, row = table.splitlines()
    assert head.startswith("scenario           qps      scheduler")
    assert "21.0 (20.0 – 24.0)" in row


def test_a_run_that_is_not_finished_says_how_far_it_came():
    assert line(run(bound=480, seconds=None)) == (
        "480 of 500 bound, not finished, p99 1.50 s, 3.0 s CPU, 120 MB"
    )


def test_what_is_measured_again_replaces_what_was_known():
    before = [result("mooring", run()), result("kube-scheduler", run())]
    again = result("mooring", run(seconds=5.0))
    other = result("mooring", run(), scenario="a")

    assert merged(before, [again, other]) == [other, before[1], again]


def test_the_page_gets_a_section_once(tmp_path):
    machine = {
        "cores": 2,
        "cpu": "a CPU",
        "memory_gb": 1,
        "system": "Linux",
        "python": "CPython",
        "numpy": "2",
        "commit": "",
        "started": "2026-01-01",
        "load_average_at_start": [0.0],
        "load_average_at_end": [0.0],
    }
    data = {"machine": machine, "results": [result("mooring", run())]}
    (tmp_path / FILE).write_text(json.dumps(data))
    found = report.tables(tmp_path)
    page = "# Performance\n\n## What is measured\n\nthis\n"

    once = report.with_section(page, SECTION, before="## What is measured")
    written = report.with_tables(once, found)

    assert "| slow API server | default | 500 / – |" in written
    assert written.endswith("<!-- end: pressure -->\n\n## What is measured\n\nthis\n")
    assert report.with_section(written, SECTION, before="## What is measured") == written
    assert report.with_section("# P\n", "## S\n", before="## Q") == "# P\n\n## S\n"


def test_a_pod_with_the_name_of_one_that_is_gone_is_another_pod():
    """A refill waited in vain for its last place: the pod that had it was taken for a deleted one."""
    pods = Pods()
    for each in (
        answer("create", "pods", "twice", 1.0),
        answer("create", "pods/binding", "twice", 2.0),
        answer("delete", "pods", "twice", 11.0, code=200),
        answer("create", "pods", "twice", 12.0),
    ):
        pods.note(each)
    assert pods.placed_since(10.0) == []

    pods.note(answer("create", "pods/binding", "twice", 13.0))

    assert pods.placed_since(10.0) == ["twice"]
    assert pods.latencies_s(["twice"]) == [1.0]


@pytest.mark.parametrize(("text", "chosen"), [("c", ("c", 1.0)), ("c/10", ("c", 0.1))])
def test_a_scenario_is_chosen_with_its_scale(text, chosen):
    assert _scenario(text) == chosen


@pytest.mark.parametrize("text", ["z", "c/0", "c/x", "c/1.5", ""])
def test_what_is_no_scenario_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="none of a, b"):
        _scenario(text)


@pytest.mark.parametrize(
    ("scenario", "qps", "ours", "theirs", "row"),
    [
        pytest.param(
            "a",
            "5000",
            {"seconds": 5.0, "cpu_s": 1.0},
            {"seconds": 10.0, "cpu_s": 3.1},
            "2.00 | ≥ 2 | 1.00 | 0.32 | ≤ 0.33 | – |",
            id="reached",
        ),
        pytest.param(
            "a",
            "5000",
            {"seconds": 5.5, "cpu_s": 2.0},
            {"seconds": 10.0, "cpu_s": 3.0},
            "1.82 | ≥ 2 | 1.00 | 0.67 | ≤ 0.33 | speed, CPU |",
            id="missed",
        ),
        pytest.param(
            "a",
            "default",
            {"seconds": 10.0, "cpu_s": 1.0},
            {"seconds": 10.0, "cpu_s": 3.1},
            "1.00 | ≥ 1 | 1.00 | 0.32 | ≤ 0.33 | – |",
            id="with the default limit it need not be faster",
        ),
        pytest.param(
            "f",
            "5000",
            {"seconds": 10.0, "cpu_s": 1.0},
            {"seconds": 10.0, "cpu_s": 3.1},
            "1.00 | ≥ 1 | 1.00 | 0.32 | ≤ 0.33 | – |",
            id="nor where the API server sets the pace",
        ),
        pytest.param(
            "a",
            "default",
            {"seconds": None},
            {"seconds": 10.0},
            "– | ≥ 1 | 1.00 | 1.00 | ≤ 0.33 | speed, CPU |",
            id="not finished",
        ),
        pytest.param(
            "a",
            "default",
            {"cpu_s": 1.0},
            {"seconds": None},
            "– | ≥ 1 | 1.00 | 0.33 | ≤ 0.33 | – |",
            id="kube-scheduler does not finish",
        ),
    ],
)
def test_what_was_wanted_and_missed_follows_from_the_figures(scenario, qps, ours, theirs, row):
    results = [
        result(scheduler, run() | figures, scenario=scenario, qps=qps, name="s")
        for scheduler, figures in (("mooring", ours), ("kube-scheduler", theirs))
    ]

    assert markdown({"results": results}).splitlines()[-1] == f"| s | {qps} | {row}"
