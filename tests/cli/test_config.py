"""`mooring config check` and `mooring config view`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mooring.config import load_config
from tests.cli.running import mooring

HEAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""


@pytest.fixture
def config(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "scheduler.yaml"
        path.write_text(text)
        return path

    return write


def test_a_valid_configuration_exits_0(config):
    path = config(HEAD)

    result = mooring("config", "check", path)

    assert result.exit_code == 0
    assert result.stdout == f"{path}: valid\n"


def test_an_invalid_configuration_exits_1_with_a_line_for_every_problem(config):
    path = config(HEAD + "parallelism: -1\npodMaxBackoffSeconds: -5\n")

    result = mooring("config", "check", path)

    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith(f"error: {path}: ") for line in lines)
    assert any("parallelism: Invalid value: -1" in line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [1", id="no YAML"),
        pytest.param("", id="nothing"),
        pytest.param("apiVersion: v1\nkind: Pod\n", id="another kind"),
        pytest.param(
            HEAD + "profiles: [{plugins: {filter: {enabled: [{name: NoSuchPlugin}]}}}]",
            id="an unknown plugin",
        ),
    ],
)
def test_what_is_no_configuration_is_not_valid(config, text):
    assert mooring("config", "check", config(text)).exit_code == 1


def test_a_file_that_cannot_be_read_exits_2(tmp_path):
    assert mooring("config", "check", tmp_path / "nothing.yaml").exit_code == 2
    assert mooring("config", "check", tmp_path).exit_code == 2
    assert mooring("config", "view", tmp_path).exit_code == 2


def test_a_configuration_may_come_from_standard_input():
    assert mooring("config", "check", "-", stdin=HEAD).stdout == "standard input: valid\n"
    assert mooring("config", "view", "-", stdin=HEAD).exit_code == 0


def test_view_shows_the_default_configuration_and_its_plugins_with_weights():
    result = mooring("config", "view")

    assert result.exit_code == 0
    assert "kind: KubeSchedulerConfiguration" in result.stdout
    assert "PROFILE default-scheduler" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["score", "TaintToleration", "3"] in rows
    assert ["queueSort", "PrioritySort"] in rows


def test_view_as_yaml_is_a_configuration_that_comes_to_the_same():
    first = mooring("config", "view", "-o", "yaml").stdout
    second = mooring("config", "view", "-o", "yaml", "-", stdin=first).stdout

    assert first == second
    assert yaml.safe_load(first)["kind"] == "KubeSchedulerConfiguration"
    load_config(first)


def test_view_as_json_has_the_configuration_and_the_plugins_of_each_profile(config):
    path = config(
        HEAD + "profiles: [{schedulerName: a, plugins: {score: {disabled: [{name: '*'}],"
        " enabled: [{name: ImageLocality, weight: 7}]}}}, {schedulerName: b}]"
    )

    data = json.loads(mooring("config", "view", path, "-o", "json").stdout)

    assert data["configuration"]["kind"] == "KubeSchedulerConfiguration"
    assert data["plugins"]["a"]["score"] == [{"name": "ImageLocality", "weight": 7}]
    assert data["plugins"]["a"]["bind"] == [{"name": "DefaultBinder"}]
    assert len(data["plugins"]["b"]["score"]) > 1


def test_view_of_an_invalid_configuration_exits_2(config):
    path = config(HEAD + "parallelism: -1\n")

    result = mooring("config", "view", path)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {path}: parallelism")
