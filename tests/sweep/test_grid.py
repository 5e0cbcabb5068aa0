"""A grid is read strictly, with all mistakes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.errors import InputError
from mooring.sweep.grid import Cell, read_grid
from tests.sweep.grids import MOST_ALLOCATED, small_grid

HEAD = "apiVersion: mooring.dev/v1\nkind: Sweep\n"


def read(tmp_path: Path, text: str):
    path = tmp_path / "sweep.yaml"
    path.write_text(HEAD + text)
    return read_grid(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    return [line.removeprefix(str(tmp_path) + "/") for line in refused.value.problems]


def test_cells_are_all_combinations_and_the_seeds_change_slowest(tmp_path):
    grid = read(
        tmp_path,
        "configs: [default, packing.yaml]\n"
        "inputs: [{trace: a.csv}, {name: b, trace: c.csv}]\n"
        "seeds: [7, 3]\n"
        "loads: [0.5, 1.3]\n",
    )

    cells = list(grid.cells())
    assert len(cells) == len(set(cells)) == len(grid) == 16
    assert cells[0] == Cell("default", "a", 7, 0.5)
    assert [cell.seed for cell in cells] == [7] * 8 + [3] * 8


def test_files_are_relative_to_the_file_of_the_grid(tmp_path):
    grid = read(
        tmp_path, "configs: [packing.yaml]\ninputs: [{name: c, cluster: [nodes.yaml, pods/]}]\n"
    )

    assert grid.configs[0].path == tmp_path / "packing.yaml"
    assert grid.inputs[0].cluster == (tmp_path / "nodes.yaml", tmp_path / "pods")


def test_a_mapping_is_a_grid_without_a_file():
    grid = read_grid(small_grid(configs=[{"name": "packing", "config": MOST_ALLOCATED}]))

    assert [cell.config for cell in grid.cells()] == ["packing", "packing"]


def test_every_mistake_is_told_with_its_line_and_path(tmp_path):
    found = problems(
        tmp_path,
        "configs: [{name: x, file: q, config: {a: 1}}, 7]\n"
        "inputs:\n"
        "- {trace: a, cluster: b}\n"
        "- {trace: a, gpuSharing: half, endles: true}\n"
        "seeds: none\n"
        "loads: [-1]\n"
        "colour: red\n",
    )

    assert found == [
        "sweep.yaml:3: configs[0]: has a file and a config; write one of them",
        "sweep.yaml:3: configs[1]: must be a mapping, not 7",
        "sweep.yaml:5: inputs[0]: needs either a trace or a cluster",
        "sweep.yaml:6: inputs[1].gpuSharing: must be pool or whole, not 'half'",
        "sweep.yaml:6: inputs[1].endles: unknown field; did you mean 'endless'?",
        "sweep.yaml:7: seeds: must be a whole number, not 'none'",
        "sweep.yaml:8: loads: must be a number above 0, such as 1.3, not -1",
        "sweep.yaml:9: colour: unknown field; known fields: apiVersion, kind, configs, inputs, seeds,"
        " loads, measures",
        "sweep.yaml:6: inputs[1]: the name 'a' is taken; give this entry another name",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("seeds: 3\n", "needs inputs: at least one trace or cluster", id="no inputs"),
        pytest.param("inputs: []\n", "inputs: must not be empty", id="empty inputs"),
        pytest.param(
            "inputs: [{trace: a}]\nseeds: [1, 1]\n", "seeds: has a value twice", id="twice"
        ),
        pytest.param(
            "inputs: [{trace: a}]\nmeasures: [placed, utilization.cpu]\n",
            "measures: there is no measure 'utilization.cpu'; did you mean 'utilisation.cpu'?",
            id="a measure that does not exist",
        ),
        pytest.param("inputs: [{trace: a}]\nseeds: 0\n", "seeds: must be at least 1", id="no seed"),
        pytest.param(
            "inputs: [{name: c, cluster: b}]\nloads: [1]\n",
            "inputs[0]: is a cluster; loads are only for traces",
            id="load of a cluster",
        ),
        pytest.param(
            "inputs: [{name: c, cluster: b, endless: true}]\n",
            "inputs[0].endless: is only for traces",
            id="an endless cluster",
        ),
        pytest.param(
            "inputs: [{trace: a}]\nseeds: 1000000\nloads: [1, 2]\n",
            "has 2,000,000 cells",
            id="too many",
        ),
    ],
)
def test_a_grid_that_cannot_run_is_refused(tmp_path, text, problem):
    assert any(problem in line for line in problems(tmp_path, text))


def test_a_mapping_has_mistakes_without_lines():
    with pytest.raises(InputError) as refused:
        read_grid({"inputs": [{"name": "x"}], "seed": 3})

    assert refused.value.problems == (
        "inputs[0]: needs either a trace or a cluster",
        "seed: unknown field; did you mean 'seeds'?",
    )
