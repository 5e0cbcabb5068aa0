"""Files of a grid are read before the first cell, and fingerprints follow what results depend on."""

from __future__ import annotations

import importlib
import shutil

import pytest

from mooring.errors import InputError
from mooring.sweep.grid import Cell, read_grid
from mooring.sweep.loading import LoadedGrid, load_grid
from tests.sweep.grids import DATA, MOST_ALLOCATED, loaded_grid, small_grid

PLUGIN = """
class Sideways:
    name = "Sideways"

    def score(self, state, pod, node):
        return {score}
"""

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {score: {enabled: [{name: "MODULE:Sideways"}]}}}]
"""


def fingerprints(loaded: LoadedGrid) -> list[str]:
    return [loaded.fingerprint(cell) for cell in loaded.grid.cells()]


def test_cells_of_equal_content_have_equal_fingerprints_in_every_run():
    assert fingerprints(loaded_grid()) == fingerprints(loaded_grid())
    assert len(set(fingerprints(loaded_grid(seeds=5)))) == 5


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(
            {"configs": [{"name": "other", "config": MOST_ALLOCATED}]}, id="configuration"
        ),
        pytest.param(
            {"inputs": [{"name": "trace", "trace": str(DATA / "trace"), "endless": True}]},
            id="option of the input",
        ),
        pytest.param(
            {"inputs": [{"name": "trace", "trace": str(DATA / "trace"), "nodes": "3x8cpu,32Gi"}]},
            id="nodes",
        ),
        pytest.param({"inputs": [{"name": "trace", "trace": str(DATA / "openb")}]}, id="trace"),
    ],
)
def test_a_change_of_what_a_result_depends_on_changes_the_fingerprint(changed):
    assert not set(fingerprints(loaded_grid())) & set(fingerprints(loaded_grid(**changed)))


def test_names_do_not_change_the_fingerprint():
    renamed = loaded_grid(inputs=[{"name": "other", "trace": str(DATA / "trace")}])

    assert fingerprints(renamed) == fingerprints(loaded_grid())


def test_a_changed_row_of_a_trace_changes_the_fingerprint(tmp_path):
    shutil.copytree(DATA / "trace", tmp_path / "trace")
    inputs = [{"name": "trace", "trace": str(tmp_path / "trace")}]
    before = fingerprints(loaded_grid(inputs=inputs))
    pods = tmp_path / "trace" / "pods.csv"
    pods.write_text("\n".join(pods.read_text().splitlines()[:-1]) + "\n")

    assert not set(before) & set(fingerprints(loaded_grid(inputs=inputs)))


def test_the_source_of_a_plugin_is_part_of_the_fingerprint_and_sent_to_workers(tmp_path):
    module = "sideways_of_loading"
    (tmp_path / f"{module}.py").write_text(PLUGIN.format(score=1))
    (tmp_path / "config.yaml").write_text(CONFIG.replace("MODULE", module))
    grid = small_grid(configs=[str(tmp_path / "config.yaml")], seeds=1)
    before = load_grid(read_grid(grid))
    (tmp_path / f"{module}.py").write_text(PLUGIN.format(score=2))
    after = load_grid(read_grid(grid))

    assert fingerprints(before) != fingerprints(after)
    from mooring.sweep.work import unpack_config

    sent = unpack_config(after.work(Cell("config", "trace", 0)).config).modules
    assert [name for name, _ in sent] == [f"{module}.py"]
    assert b"return 2" in sent[0][1]


def test_two_configurations_cannot_have_plugins_in_modules_of_one_name(tmp_path):
    """Python would import the first module for both, and the second policy would never run."""
    module = "twice_of_loading"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{module}.py").write_text(PLUGIN.format(score=1))
        (tmp_path / folder / f"{folder}.yaml").write_text(CONFIG.replace("MODULE", module))
    configs = [str(tmp_path / "a" / "a.yaml"), str(tmp_path / "b" / "b.yaml")]

    with pytest.raises(InputError) as refused:
        loaded_grid(configs=configs)

    hidden, other = tmp_path / "b" / f"{module}.py", tmp_path / "a" / f"{module}.py"
    assert refused.value.problems == (
        f"{tmp_path / 'b' / 'b.yaml'}: {hidden} is hidden: Python imports {module} from {other};"
        " rename one of the modules",
    )


def test_a_module_that_was_sent_again_with_changes_is_imported_again():
    from mooring.sweep.sent_modules import place_modules

    name = "sent_of_loading"
    values = []
    for value in (b"1", b"2", b"2", b"1"):
        place_modules(((f"{name}.py", b"VALUE = " + value + b"\n"),))
        values.append(importlib.import_module(name).VALUE)

    assert values == [1, 2, 2, 1]


def test_the_problems_of_all_files_are_told_at_once(tmp_path):
    (tmp_path / "broken.yaml").write_text("kind: KubeSchedulerConfiguration\nprofile: []\n")
    grid = {
        "configs": [str(tmp_path / "broken.yaml"), str(tmp_path / "missing.yaml")],
        "inputs": [
            {"trace": str(tmp_path / "nowhere")},
            {"name": "c", "cluster": str(DATA), "nodes": ["3xnothing"]},
        ],
    }
    with pytest.raises(InputError) as refused:
        load_grid(read_grid(grid))

    text = "\n".join(refused.value.problems)
    assert "broken.yaml: " in text
    assert "missing.yaml: cannot be read: No such file or directory" in text
    assert "inputs[0]: " in text
    assert "inputs[1]: nodes: '3xnothing' is not a file, and describes no nodes" in text
