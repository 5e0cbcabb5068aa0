"""The benchmarks run, at a size at which they measure nothing, and do not time wrong answers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import answers, beside_reference, growth, machine, memory, plots, report, suite
from benchmarks.answers import Answer, WrongAnswer
from benchmarks.harness import Size, measure
from benchmarks.workloads import WORKLOADS

ALL = list(WORKLOADS.values())
TINY = Size(20, pods=15, repeats=1)
BESIDE = beside_reference.Row(
    workload="basic",
    nodes=5000,
    rounds=3,
    sampling_cpu_ms=2.4,
    all_nodes_cpu_ms=21.0,
    mooring_cpu_ms=0.12,
    sampling_per_wall_s=500.0,
    all_nodes_per_wall_s=50.0,
    mooring_per_wall_s=8000.0,
)


@pytest.fixture(scope="module")
def measured():
    # The backlog is as long at every size, and takes as long to be tried.
    workloads = [replace(workload, backlog=min(5, workload.backlog)) for workload in ALL]
    return suite.run(workloads, [TINY])


def test_every_workload_runs_and_says_how_fast(measured):
    json.dumps(measured)

    assert [result["workload"] for result in measured["results"]] == [w.name for w in ALL]
    for result in measured["results"]:
        for clock in ("per_cpu_s", "per_wall_s"):
            rate = result[clock]
            assert 0 < rate["low"] <= rate["median"] <= rate["high"]
        assert 0 < result["pods"] <= TINY.pods
        assert result["nodes"] == 20
        assert result["bound"] == (80 if result["workload"] == "preemption" else 20)
        assert 0 < result["attempt_us"]["median"] <= result["attempt_us"]["longest"]
        assert result["passes_per_decision"] > 0


def test_results_say_what_they_were_measured_on(measured):
    facts = measured["machine"]

    assert {
        "cpu",
        "cores",
        "python",
        "numpy",
        "load_average_at_start",
        "load_average_at_end",
    } <= set(facts)


def test_a_table_names_every_workload(measured):
    table = suite.table(measured)

    assert all(workload.name in table for workload in ALL)


def test_nothing_is_reported_of_a_workload_that_is_answered_wrongly():
    in_no_zone = replace(WORKLOADS["basic"], holds=lambda _: answers.in_zones(()))

    with pytest.raises(WrongAnswer, match=r"basic: .* outside of zones"):
        measure(in_no_zone, TINY)


def test_the_command_fails_on_a_wrong_answer(capsys):
    too_few = replace(WORKLOADS["basic"], holds=lambda _: answers.fits(1))

    assert suite.main(["--nodes", "20", "--pods", "5"], {"basic": too_few}) == 1
    assert "wrong answer: basic" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("holds", "placed"),
    [
        pytest.param(answers.all_placed, {"a": "node-1"}, id="a pod is missing"),
        pytest.param(answers.fits(1), {"a": "node-1", "b": "node-1"}, id="a node is too full"),
        pytest.param(answers.in_zones([1]), {"a": "node-2", "b": "node-1"}, id="another zone"),
        pytest.param(
            answers.one_a_node(lambda _: True),
            {"a": "node-1", "b": "node-1"},
            id="two that keep apart on one node",
        ),
        pytest.param(
            answers.one_a_node(lambda _: True),
            {"a": "node-0", "b": "node-1"},
            id="beside one that was there",
        ),
        pytest.param(
            answers.beside_one(lambda _: True), {"a": "node-1", "b": "node-0"}, id="left alone"
        ),
        pytest.param(
            answers.apart_while_possible(lambda _: True, 20),
            {"a": "node-1", "b": "node-1"},
            id="together without need",
        ),
        pytest.param(
            answers.zones_within(1), {"a": "node-1", "b": "node-11"}, id="two in one zone"
        ),
        pytest.param(answers.victims_per_pod(3), {"a": "node-1"}, id="nobody went"),
    ],
)
def test_a_wrong_answer_is_noticed(holds, placed):
    answer = Answer(placed, bound={"default/bound-0": "node-0"}, wanted=2, bound_before=1)

    with pytest.raises(WrongAnswer):
        holds(answer)


def test_another_choice_than_by_full_evaluation_is_noticed():
    answers.same_as({"a": "node-1"}, {"a": "node-1"})

    with pytest.raises(WrongAnswer, match="a is on node-2, but evaluated in full on node-1"):
        answers.same_as({"a": "node-1"}, {"a": "node-2"})


def test_results_become_tables_and_plots(measured, tmp_path):
    as_if = {**measured, "results": [{**r, "nodes": 5000} for r in measured["results"]]}
    first = as_if["results"][0]
    grown = {
        "machine": measured["machine"],
        "results": [
            {**first, "against": "bound pods", "series": "basic", "x": x} for x in (100, 1000)
        ],
    }
    held = memory.run(10, 20, repeats=1, call=lambda function, *given: function(*given))
    suite.write(as_if, tmp_path / suite.FILE)
    suite.write(grown, tmp_path / growth.FILE)
    suite.write(held, tmp_path / memory.FILE)
    beside = {"machine": measured["machine"], "rows": [asdict(BESIDE)]}
    suite.write(beside, tmp_path / beside_reference.FILE)

    found = report.tables(tmp_path)
    report.write_plots(tmp_path)

    assert "| basic, decisions/s | ≥ 20,000 |" in found["goals"]
    assert "| basic | 5,000 | 2.40 | 21.0 | 0.120 | 20 | 175 |" in found["reference"]
    assert "10 nodes and 20 pods" in found["goals"]
    for name in ("rates.svg", "growth-bound-pods.svg"):
        assert (tmp_path / name).read_text().startswith("<svg ")


def test_only_what_stands_between_the_marks_is_written():
    page = "before\n<!-- begin: goals -->\nold\n<!-- end: goals -->\nafter\n"

    written = report.with_tables(page, {"goals": "new"})

    assert written == "before\n<!-- begin: goals -->\nnew\n<!-- end: goals -->\nafter\n"
    with pytest.raises(ValueError, match="0 places for memory"):
        report.with_tables(page, {"memory": "new"})


def test_the_page_has_a_place_for_every_table():
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()

    for name in ("machine", "goals", "reference", "workloads", "sizes", "growth", "memory"):
        report.with_tables(page, {name: ""})


def test_a_plot_stays_within_its_edges():
    bar = plots.Bar("basic", 5800.0, 3000.0, 13_000.0, {"goal": 12_000, "reference": 22})
    series = {"a": [(500.0, 61.0), (15_000.0, 980.0)], "b": [(500.0, 3.0)]}

    for text in (plots.bars("rates", "per second", [bar] * 18), plots.lines("g", "x", "y", series)):
        drawn = ElementTree.fromstring(text)
        width, height = (float(drawn.attrib[side]) for side in ("width", "height"))
        for shape in drawn.iter():
            for names, most in (
                (("x", "x1", "x2", "cx"), width),
                (("y", "y1", "y2", "cy"), height),
            ):
                assert all(0 <= float(shape.attrib.get(name, 0)) <= most for name in names)


def test_a_row_beside_the_reference_says_how_many_times_it_takes():
    assert (BESIDE.times_sampling, BESIDE.times_all_nodes) == (
        pytest.approx(20),
        pytest.approx(175),
    )
    assert "20.0" in beside_reference.table([BESIDE])


def test_the_report_names_the_rows_that_miss_the_goal(tmp_path):
    slow = replace(BESIDE, workload="zone-spread", nodes=500, mooring_cpu_ms=0.15)
    facts = machine.facts() | {"load_average_at_end": (0.0, 0.0, 0.0)}
    for rows, said in (
        ([BESIDE], "Every row reaches the goal"),
        ([BESIDE, slow], "sample: zone-spread at 500 nodes (16.0; 0.120 ms would do)."),
    ):
        data = {"machine": facts, "rows": [asdict(row) for row in rows], "missing": []}
        beside_reference.write(tmp_path, data)

        assert said in report.tables(tmp_path)["reference"]


def test_a_workload_that_the_reference_fails_on_costs_no_other_row():
    class Reference:
        def decide(self, workload, nodes, percentage):
            if nodes == 20:
                raise beside_reference.ReferenceFailed("out of memory")
            return 2.4, 500.0

    kept = []
    data = beside_reference.run(
        Reference(), ["basic"], [20, 30], 5, 1, keep=lambda data: kept.append(len(data["rows"]))
    )

    assert [row["nodes"] for row in data["rows"]] == [30]
    assert data["missing"] == [{"workload": "basic", "nodes": 20}]
    assert kept == [1]


def test_every_workload_of_the_reference_is_one_of_ours():
    assert set(beside_reference.BOTH_HAVE) <= set(WORKLOADS)
    source = (Path(beside_reference.__file__).parent / "reference" / "workloads.go").read_text()
    assert all(f'case "{name}":' in source for name in beside_reference.BOTH_HAVE)


def test_mooring_decides_what_the_reference_is_asked():
    for name in ("basic", "unschedulable", "preemption"):
        cpu_ms, per_s = beside_reference.mooring(name, nodes=20, pods=10)()
        assert cpu_ms > 0
        assert per_s > 0
