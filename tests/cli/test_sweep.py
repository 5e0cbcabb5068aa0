"""`mooring sweep` runs a grid, and goes on where it was interrupted."""

from __future__ import annotations

import csv
import io
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import polars
import pytest

from tests.cli.running import mooring, mooring_process

DATA = Path(__file__).parents[1] / "data"

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {score: {enabled: [{name: "%s"}]}}}]
"""
#: Interrupts the sweep, once, when the third cell begins.
INTERRUPTING = """
import os, signal
from pathlib import Path

class Interrupting:
    name = "Interrupting"

    def __init__(self):
        with open(Path(os.environ["BUILT"]), "ab") as built:
            built.write(b".")
            third = built.tell() == 3
        if third:
            os.kill(os.getppid(), signal.SIGINT)

    def score(self, state, pod, node):
        return 1
"""


def write_sweep(folder: Path, text: str = "seeds: 3\n") -> Path:
    path = folder / "sweep.yaml"
    path.write_text(
        "apiVersion: mooring.dev/v1\nkind: Sweep\n"
        f"inputs: [{{name: trace, trace: {DATA / 'trace'}}}]\n" + text
    )
    return path


def test_the_table_has_a_row_for_each_configuration_and_ends_with_the_answer(tmp_path):
    path = write_sweep(tmp_path, "seeds: 3\nmeasures: [placed, utilisation.cpu]\n")

    result = mooring("sweep", path, "--jobs", 1)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "MEANS AND STANDARD DEVIATIONS",
        "CONFIG   INPUT  CELLS     PLACED  UTILISATION.CPU",
        "default  trace      3  7.0 ± 0.0    75.00% ± 0.00",
        "",
        "3 of 3 cells finished",
    ]


def test_a_second_run_takes_the_results_of_the_first(tmp_path):
    path = write_sweep(tmp_path)
    first = mooring("sweep", path, "--jobs", 1)
    again = mooring("sweep", path, "--jobs", 1)

    assert again.stdout == first.stdout
    assert again.stderr == (
        f"note: 3 of 3 cells have results in {tmp_path / 'sweep.results.jsonl'} already\n"
    )
    assert len((tmp_path / "sweep.results.jsonl").read_text().splitlines()) == 3


def test_results_of_a_changed_grid_are_not_used_and_the_user_is_told(tmp_path):
    mooring("sweep", write_sweep(tmp_path, "seeds: [1, 2]\n"), "--jobs", 1)

    result = mooring("sweep", write_sweep(tmp_path, "seeds: [2, 3]\n"), "--jobs", 1)

    assert "1 result of another grid, or of input that has changed since" in result.stderr
    assert "1 of 2 cells has a result" in result.stderr


def test_results_can_be_written_as_parquet_csv_and_json_lines_and_drawn(tmp_path):
    names = ("r.parquet", "r.csv", "r.jsonl")
    written = [each for name in names for each in ("--write", tmp_path / name)]

    mooring("sweep", write_sweep(tmp_path), "-j", 1, *written, "--plot", tmp_path / "r.svg")

    frame = polars.read_parquet(tmp_path / "r.parquet")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert frame["seed"].to_list() == [int(row["seed"]) for row in rows] == [0, 1, 2]
    assert frame["placed"].to_list() == [line["placed"] for line in lines] == [7, 7, 7]
    assert frame.schema["load"] == polars.Float64
    circles = ET.parse(tmp_path / "r.svg").getroot().findall("{*}circle")
    assert len(circles) >= 3


def test_json_has_cells_and_means(tmp_path):
    data = json.loads(mooring("sweep", write_sweep(tmp_path), "-j", 1, "-o", "json").stdout)

    assert [cell["seed"] for cell in data["cells"]] == [0, 1, 2]
    assert data["groups"][0]["measures"]["placed"] == {
        "count": 3,
        "mean": 7.0,
        "deviation": 0.0,
        "least": 7.0,
        "most": 7.0,
    }


def test_a_failed_cell_is_listed_and_the_answer_is_no(tmp_path):
    (tmp_path / "falling.py").write_text(
        "class Falling:\n    name = 'Falling'\n"
        "    def score(self, state, pod, node):\n        raise RuntimeError('fell over')\n"
    )
    (tmp_path / "falling.yaml").write_text(CONFIG % "falling:Falling")
    path = write_sweep(tmp_path, "seeds: 1\nconfigs: [default, falling.yaml]\n")

    result = mooring("sweep", path, "--jobs", 1)

    assert result.exit_code == 1
    assert "falling × trace × seed 0" in result.stdout
    assert "fell over" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 of 2 cells finished, 1 failed"


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        pytest.param("seeds: x\n", [], "sweep.yaml:4: seeds: must be a whole number", id="grid"),
        pytest.param("", ["--write", "r.xlsx"], "must end in .parquet, .csv, .jsonl", id="format"),
        pytest.param("", ["--measure", "palced"], "did you mean 'placed'?", id="measure"),
        pytest.param("", ["--dask", "nonsense://x"], "no Dask scheduler answers at", id="address"),
        pytest.param("", ["--results", "/no/where.jsonl"], "cannot be written", id="results"),
        pytest.param(
            "configs: [{name: x, config: {kind: Nonsense}}]\n",
            [],
            "sweep.yaml:4: configs[0]: ",
            id="content",
        ),
        pytest.param("configs: [gone.yaml]\n", [], "gone.yaml: cannot be read", id="configuration"),
    ],
)
def test_what_cannot_run_is_told_without_a_traceback(tmp_path, text, options, problem):
    result = mooring("sweep", write_sweep(tmp_path, text), *options)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path):
    """Ctrl-C while cells run: exit 130, and the next run does only what is missing."""
    (tmp_path / "interrupting.py").write_text(INTERRUPTING)
    (tmp_path / "interrupting.yaml").write_text(CONFIG % "interrupting:Interrupting")
    path = write_sweep(tmp_path, "seeds: 6\nconfigs: [interrupting.yaml]\n")
    environment = {**os.environ, "BUILT": str(tmp_path / "built")}
    first = mooring_process("sweep", path, "-j", 2, **environment)
    kept = (tmp_path / "sweep.results.jsonl").read_text().splitlines()
    second = mooring_process("sweep", path, "-j", 1, **environment)

    assert first.returncode == 130
    assert "run the sweep again to go on" in first.stderr
    assert "Traceback" not in first.stderr
    assert len(kept) < 6
    assert second.returncode == 0
    lines = [
        json.loads(text) for text in (tmp_path / "sweep.results.jsonl").read_text().splitlines()
    ]
    assert sorted(line["seed"] for line in lines) == list(range(6))
