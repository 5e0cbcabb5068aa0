"""What `mooring plugin new` writes works as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mooring.errors import InputError, MooringError
from mooring.plugin_kit.package import write_package

pytestmark = pytest.mark.long

SOURCES = Path(__file__).parent.parent.parent / "src"


def test_a_package_passes_its_own_tests_and_the_kit(tmp_path):
    package = write_package("GpuQuota", tmp_path)
    (package.folder / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\npythonpath = src\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )

    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:mooring", "-p", "mooring.pytest_plugin"],
        cwd=package.folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed" in result.stdout


def test_a_package_offers_its_plugin_by_an_entry_point(tmp_path):
    package = write_package("GPUQuota2", tmp_path)

    project = tomllib.loads((package.folder / "pyproject.toml").read_text())["project"]

    assert package.module == "gpu_quota2"
    assert project["entry-points"]["mooring.plugins"] == {"GPUQuota2": "gpu_quota2:GPUQuota2"}
    assert project["name"] == "gpu-quota2"


def test_the_plugin_has_the_style_of_the_project(tmp_path):
    """A line that is too long, or a name that is not used, would be the first thing that a user sees."""
    package = write_package("QuietNodes", tmp_path)
    files = [str(path) for path in package.folder.rglob("*.py")]

    for command in (["check", "--ignore", "D1,I001"], ["format", "--check"]):
        result = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", "pyproject.toml", *files],
            cwd=SOURCES.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, result.stdout


def test_nothing_is_overwritten(tmp_path):
    write_package("QuietNodes", tmp_path)

    with pytest.raises(InputError, match="exists already"):
        write_package("QuietNodes", tmp_path)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("quiet", "is no name for a plugin", id="small letter"),
        pytest.param("quiet-nodes", "write it as a class: QuietNodes", id="dash"),
        pytest.param("", "is no name for a plugin", id="empty"),
        pytest.param("../Evil", "is no name for a plugin", id="path"),
        pytest.param("NodeName", "already exists", id="built in"),
        pytest.param("Json", "exists in Python", id="module of Python"),
        pytest.param("Class", "exists in Python", id="keyword"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_is_written(tmp_path, name, problem):
    with pytest.raises(MooringError, match=problem):
        write_package(name, tmp_path)

    assert not list(tmp_path.iterdir())
