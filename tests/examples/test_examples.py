"""The examples run as they stand and print what they say."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.plugin_kit import check_plugin

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SOURCES = Path(__file__).parent.parent.parent / "src"
#: Exit codes: some pods of the examples are meant to stay pending.
FOLDERS = {
    "01-simulate": 1,
    "02-plugin-package": 0,
    "03-gang": 1,
    "04-scenarios": 0,
    "05-training": 0,
    "06-nodes-from-nothing": 0,
    "07-rows-and-column": 0,
    "08-hints": 0,
    "09-post-filter": 0,
    "10-fed-by-metrics": 0,
    "11-learned-policy": 0,
}


def run(folder: Path, *python_path: Path) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    return subprocess.run(
        ["sh", "run.sh"],
        cwd=folder,
        env={
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, (*python_path, SOURCES))),
            "COLUMNS": "120",
            "NO_COLOR": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin package, installed for real, but nowhere that outlives the test."""
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(EXAMPLES / "02-plugin-package", source)
    target = tmp_path_factory.mktemp("installed")
    install = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", *install, "--target", str(target), str(source)],
        check=True,
        timeout=120,
    )
    return target


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == FOLDERS.keys()


def test_the_readme_of_the_training_cluster_has_its_time_line():
    folder = EXAMPLES / "05-training"
    timeline, _, _ = (folder / "output.txt").read_text().partition("\n\nPLACEMENTS")

    assert timeline.startswith("TIMELINE")
    assert f"```text\n{timeline}\n```" in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_prints_what_stands_beside_it(name, installed):
    result = run(EXAMPLES / name, installed)

    assert result.stderr == ""
    assert result.stdout == (EXAMPLES / name / "output.txt").read_text()
    assert result.returncode == FOLDERS[name]


@pytest.mark.parametrize(
    ("folder", "module", "name"),
    [
        ("02-plugin-package/src", "quiet_nodes", "QuietNodes"),
        ("03-gang", "gang", "Gang"),
        ("07-rows-and-column", "batch_spread", "BatchSpread"),
        ("08-hints", "one_build", "OneBuild"),
        ("09-post-filter", "make_room", "MakeRoom"),
        ("10-fed-by-metrics", "cool_nodes", "CoolNodes"),
    ],
)
def test_the_plugin_of_an_example_keeps_its_promises(folder, module, name, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / folder)
    plugin = getattr(importlib.import_module(module), name)

    report = check_plugin(plugin, seeds=4)

    assert report.checked["repeats"] > 100


def test_the_plugin_of_a_package_changes_where_a_pod_goes(installed, tmp_path):
    """The same cluster without the plugin: the pod goes to the other node."""
    example = EXAMPLES / "02-plugin-package"
    shutil.copy(example / "cluster.yaml", tmp_path)
    (tmp_path / "run.sh").write_text("mooring simulate -f cluster.yaml --output csv")

    without = run(tmp_path).stdout
    quiet = run(example, installed).stdout

    assert "newcomer" in without
    assert "large" in next(line for line in without.splitlines() if "newcomer" in line)
    assert "small" in next(line for line in quiet.splitlines() if "newcomer" in line)


def test_the_readme_shows_what_simulate_prints():
    """Line by line and in order; `…` stands for what the README leaves out."""
    root = EXAMPLES.parent
    blocks = (root / "README.md").read_text().split("```\n")
    shown = [block.splitlines() for block in blocks if block.startswith("$ mooring simulate ")]
    assert [block[0].split()[3] for block in shown] == ["-f", "--nodes"]

    for command, *lines in shown:
        done = subprocess.run(
            [sys.executable, "-m", *command.removeprefix("$ ").split()],
            cwd=root,
            env={"PYTHONPATH": str(SOURCES), "COLUMNS": "400", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        printed = iter(done.stdout.splitlines())
        for line in filter(None, lines):
            start, dots, _ = line.partition("…")
            if start:
                assert any(p == line or (dots and p.startswith(start)) for p in printed), line
