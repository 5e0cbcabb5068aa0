"""A sweep runs what is missing, keeps what is done, and reports what failed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import msgspec
import pytest

import mooring
from mooring.errors import InputError
from mooring.sweep.cell import Measures, run_cell
from mooring.sweep.results import Line, open_results
from mooring.sweep.run import plan, run_missing
from mooring.sweep.sweep import Sweep, run_loaded
from mooring.sweep.work import Work
from mooring.sweep.workers import Processes, Workers
from tests.sweep.grids import DATA, MOST_ALLOCATED, loaded_grid, small_grid

pytestmark = pytest.mark.long

CONFIGS = ["default", {"name": "packing", "config": MOST_ALLOCATED}]


class FakeWorkers(Workers):
    """Runs cells in this process; `fate` may raise instead of the cell `number`."""

    slots = 3

    def __init__(self, fate) -> None:
        self.fate = fate
        self.submitted: list[Work] = []
        self.replaced = 0

    def submit(self, work: Work) -> Future[Measures]:
        self.submitted.append(work)
        future: Future[Measures] = Future()
        try:
            self.fate(len(self.submitted), work)
            future.set_result({"placed": 1.0})
        except Exception as error:
            future.set_exception(error)
        return future

    def replace_lost(self) -> None:
        self.replaced += 1

    def close(self) -> None:
        pass


def run_with(workers: Workers, path: Path, **fields: object) -> Sweep:
    loaded = loaded_grid(**fields)
    with open_results(path) as results:
        lines = run_missing(plan(loaded, results.found), workers, results, lambda done, total: None)
    return Sweep(loaded.grid, tuple(lines))


def lines_of(path: Path) -> list[Line]:
    return [msgspec.json.decode(text, type=Line) for text in path.read_bytes().splitlines()]


def nothing(number: int, work: Work) -> None:
    pass


def test_a_sweep_gives_a_line_for_each_cell_in_the_order_of_the_grid():
    found = mooring.run_sweep(small_grid(configs=CONFIGS), jobs=1)

    assert [line.cell for line in found.lines] == list(found.grid.cells())
    assert not found.failed
    assert {line.measures["pods"] for line in found.lines} == {8}


def test_a_cell_measures_what_a_replay_shows():
    from mooring.explain.over_time import replay
    from mooring.sim.simulation import SimOptions
    from mooring.sim.traces.reading import read_trace

    line = mooring.run_sweep(small_grid(seeds=[3]), jobs=1).lines[0]
    trace = read_trace(DATA / "trace")
    report = replay(trace, SimOptions(seed=3), also_at=[trace.last_arrival_s])
    sample = next(each for each in report.samples if each.at_s == trace.last_arrival_s)

    assert line.measures["placed"] == report.placed
    assert line.measures["waiting_mean_s"] == report.waiting.mean_s
    for each in sample.resources:
        assert line.measures[f"utilisation.{each.resource}"] == each.utilisation
        assert line.measures[f"fragmentation.{each.resource}"] == each.fragmentation


def test_every_measure_of_a_cell_has_a_known_name():
    from mooring.sweep.measure_names import FIXED, measure_problem

    measures = mooring.run_sweep(small_grid(seeds=1), jobs=1).lines[0].measures

    assert [measure_problem(name) for name in measures if measure_problem(name)] == []
    assert set(FIXED) <= measures.keys()


def test_a_cluster_is_simulated(tmp_path):
    path = tmp_path / "pods.yaml"
    path.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 5\n"
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
        "    spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n"
    )
    inputs = [{"name": "web", "cluster": str(path), "nodes": "2x8cpu,32Gi"}]

    measures = mooring.run_sweep(small_grid(inputs=inputs, seeds=1), jobs=1).lines[0].measures

    assert (measures["pods"], measures["placed"], measures["pending"]) == (5, 4, 1)
    assert measures["nodes_in_use"] == 2


def test_a_load_draws_pods_by_the_seed():
    inputs = [{"name": "gpus", "trace": str(DATA / "openb")}]
    found = mooring.run_sweep(small_grid(inputs=inputs, seeds=3, loads=[0.5, 2.0]), jobs=1)

    pods = {(line.load, line.seed): line.measures["pods"] for line in found.lines}
    assert len(pods) == 6
    assert all(pods[2.0, seed] > pods[0.5, seed] for seed in range(3))
    again = mooring.run_sweep(small_grid(inputs=inputs, seeds=3, loads=[0.5, 2.0]), jobs=1)
    assert [_timeless(line) for line in again.lines] == [_timeless(line) for line in found.lines]


def test_a_rerun_runs_only_what_is_missing(tmp_path):
    path = tmp_path / "r.jsonl"
    run_with(FakeWorkers(nothing), path, seeds=3)
    again = FakeWorkers(nothing)

    found = run_with(again, path, seeds=5)

    assert [work.cell.seed for work in again.submitted] == [3, 4]
    assert len(found.lines) == len(lines_of(path)) == 5


def test_results_of_a_changed_input_are_run_again_and_counted(tmp_path):
    path = tmp_path / "r.jsonl"
    run_with(FakeWorkers(nothing), path, seeds=3)
    loaded = loaded_grid(seeds=3, inputs=[{"trace": str(DATA / "trace"), "endless": True}])

    with open_results(path) as results:
        planned = plan(loaded, results.found)

    assert (len(planned.done), len(planned.missing), planned.outdated) == (0, 3, 3)


def test_a_renamed_input_keeps_its_results_under_its_new_name(tmp_path):
    path = tmp_path / "r.jsonl"
    run_with(FakeWorkers(nothing), path)
    workers = FakeWorkers(nothing)

    found = run_with(workers, path, inputs=[{"name": "new", "trace": str(DATA / "trace")}])

    assert not workers.submitted
    assert {line.input for line in found.lines} == {"new"}


def test_a_failed_cell_is_told_and_does_not_end_the_sweep_and_is_tried_again(tmp_path):
    def second_fails(number: int, work: Work) -> None:
        if number == 2:
            raise ValueError("out of luck")

    path = tmp_path / "r.jsonl"
    found = run_with(FakeWorkers(second_fails), path, seeds=4)
    assert [(line.seed, line.error) for line in found.failed] == [(1, "ValueError: out of luck")]
    again = FakeWorkers(nothing)

    assert not run_with(again, path, seeds=4).failed
    assert [work.cell.seed for work in again.submitted] == [1]


def test_a_plugin_that_crashes_fails_its_cell_only(tmp_path):
    (tmp_path / "crashing_score.py").write_text(
        "class Crashing:\n    name = 'Crashing'\n"
        "    def score(self, state, pod, node):\n        raise RuntimeError('boom')\n"
    )
    (tmp_path / "crashing.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: 'crashing_score:Crashing'}]}}}]\n"
    )
    grid = small_grid(configs=["default", str(tmp_path / "crashing.yaml")], seeds=1)

    found = mooring.run_sweep(grid, jobs=1)

    assert [line.config for line in found.failed] == ["crashing"]
    assert "boom" in found.failed[0].error


def test_a_cell_whose_worker_dies_is_given_to_another_worker(tmp_path):
    def first_dies(number: int, work: Work) -> None:
        if number == 1:
            raise BrokenExecutor

    path, workers = tmp_path / "r.jsonl", FakeWorkers(first_dies)
    found = run_with(workers, path, seeds=6)

    assert not found.failed
    assert workers.replaced == 1
    assert sorted(line.seed for line in lines_of(path)) == list(range(6))


def test_a_cell_that_kills_its_workers_fails_and_the_others_end(tmp_path):
    def third_seed_kills(number: int, work: Work) -> None:
        if work.cell.seed == 2:
            raise BrokenExecutor

    found = run_with(FakeWorkers(third_seed_kills), tmp_path / "r.jsonl", seeds=5)

    assert [(line.seed, line.error) for line in found.failed] == [(2, "its worker died 3 times")]


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    path = tmp_path / "r.jsonl"
    run_with(FakeWorkers(nothing), path, seeds=3)
    last = lines_of(path)[-1].seed
    path.write_bytes(path.read_bytes()[:-20])
    again = FakeWorkers(nothing)

    run_with(again, path, seeds=3)

    assert [work.cell.seed for work in again.submitted] == [last]
    assert sorted(line.seed for line in lines_of(path)) == [0, 1, 2]


def test_a_file_that_holds_no_results_is_left_alone(tmp_path):
    path = tmp_path / "precious.txt"
    path.write_text("do not\ntouch")

    with pytest.raises(InputError, match=r"precious.txt:1: is not a result of a sweep"):
        run_with(FakeWorkers(nothing), path)

    assert path.read_text() == "do not\ntouch"


def test_two_sweeps_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "r.jsonl"
    with (
        open_results(path),
        pytest.raises(InputError, match="another sweep is writing to it"),
        open_results(path),
    ):
        pass


def test_a_worker_of_another_version_refuses():
    loaded = loaded_grid()
    work = loaded.work(next(iter(loaded.grid.cells())))
    other = Work(work.cell, "0.0.0", work.config, work.input)

    with pytest.raises(mooring.errors.MooringError, match="install the same version"):
        run_cell(other)


def test_processes_give_what_one_process_gives_though_one_of_them_is_killed(tmp_path):
    """Half-way, one process is killed as the kernel would; the pool breaks and a new one goes on."""
    loaded, path = loaded_grid(configs=CONFIGS, seeds=4), tmp_path / "r.jsonl"
    workers = Processes(2)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done >= 3 and not killed:
            killed.append(workers._started()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    try:
        with open_results(path) as results:
            lines = run_missing(plan(loaded, []), workers, results, kill_one)
    finally:
        workers.close()

    assert killed
    alone = run_loaded(loaded, jobs=1)
    assert [_timeless(line) for line in lines] == [_timeless(line) for line in alone.lines]
    assert len(lines_of(path)) == len({line.cell for line in lines_of(path)}) == 8


def _timeless(line: Line) -> dict[str, object]:
    return {**line.to_data(), "measures": {**line.measures, "cpu_seconds": 0}}
