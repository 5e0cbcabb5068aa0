"""A sweep on a real Dask cluster: a scheduler and two workers as processes, on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from mooring.sweep.sweep import run_loaded
from tests.sweep.grids import loaded_grid

pytestmark = pytest.mark.long

SOURCES = Path(__file__).parents[2] / "src"


class DaskCluster:
    """Processes that a test may kill."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0")
        #: Without a nanny, so that nobody starts a killed worker again.
        self.workers = [self._start("worker", "--no-nanny", "--nthreads", "1") for _ in range(2)]

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, "--host", "127.0.0.1"]
        common = ["--no-dashboard", "--scheduler-file", str(self._file)]
        path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [*command, *common, *options],
            cwd=self._file.parent,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> str:
        """The address, once both workers are there."""
        with Client(scheduler_file=str(self._file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            address: str = client.scheduler.address
            return address

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    started = DaskCluster(tmp_path)
    yield started
    started.close()


def write_plugin(folder: Path) -> Path:
    """A configuration, with a plugin beside it that no worker has."""
    folder.mkdir()
    (folder / "last_node_first.py").write_text(
        "class LastNodeFirst:\n    name = 'LastNodeFirst'\n"
        "    def score(self, state, pod, node):\n        return node.row\n"
    )
    path = folder / "last.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {disabled: [{name: '*'}],"
        " enabled: [{name: 'last_node_first:LastNodeFirst'}]}}}]\n"
    )
    return path


def test_a_worker_that_is_killed_half_way_loses_no_cell_and_none_runs_into_the_results_twice(
    cluster, tmp_path
):
    configs = ["default", str(write_plugin(tmp_path / "elsewhere"))]
    loaded, path = loaded_grid(configs=configs, seeds=20), tmp_path / "results.jsonl"
    address = cluster.wait()
    killed_at: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done >= total // 2 and not killed_at:
            killed_at.append(done)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    found = run_loaded(loaded, results=path, dask=address, on_progress=kill_one)

    assert killed_at
    assert killed_at[0] < 40
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert cluster.workers[1].poll() is None
    assert not found.failed
    written = [json.loads(line) for line in path.read_text().splitlines()]
    cells = [(line["config"], line["seed"]) for line in written]
    assert sorted(cells) == sorted((cell.config, cell.seed) for cell in loaded.grid.cells())
    alone = run_loaded(loaded, jobs=1)
    imbalances = [line.measures["imbalance.cpu"] for line in found.lines]
    assert imbalances == [line.measures["imbalance.cpu"] for line in alone.lines]
    assert len(set(imbalances)) > 1
