"""`mooring plugin check` and `mooring plugin new`."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import mooring

HONEST = "tests.plugin_kit.liars:Honest"
LIAR = "tests.plugin_kit.liars:ScoresTooHigh"


def test_an_honest_plugin_exits_0():
    result = mooring("plugin", "check", HONEST, "--seeds", 2, "--nodes", 20)

    assert result.exit_code == 0
    assert "all rows at once say what each node says" in result.stdout
    assert "COST OF A DECISION AT 20 NODES" in result.stdout
    assert "Honest: keeps its promises, on 2 random clusters" in result.stdout


def test_a_liar_exits_1_with_the_rule_the_case_and_what_to_do():
    result = mooring("plugin", "check", LIAR, "--seeds", 1, "--nodes", 0)

    assert result.exit_code == 1
    assert "broken: scores are whole numbers, from 0 to 100 after normalizing" in result.stdout
    assert "the score is 101" in result.stdout
    assert "kind: Node" in result.stdout
    assert "to do: " in result.stdout


def test_json_has_the_case_as_objects():
    result = mooring("plugin", "check", LIAR, "--seeds", 1, "--nodes", 0, "-o", "json")

    data = json.loads(result.stdout)
    assert not data["honest"]
    assert data["findings"][0]["rule"] == "scores"
    assert data["findings"][0]["case"][0]["object"]["kind"] == "Node"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["no_such_module:X"], "cannot be loaded", id="no module"),
        pytest.param(["json:dumps"], "is not a class", id="a function"),
        pytest.param(["Nothing"], "no plugin is called 'Nothing'", id="no name"),
        pytest.param([HONEST, "--args", "{"], "is not JSON", id="no JSON"),
        pytest.param([HONEST, "--args", "[]"], "is not a mapping", id="a list"),
        pytest.param([HONEST, "--objects", "no.yaml"], "cannot be read", id="no file"),
        pytest.param([HONEST, "--seeds", "0"], "0 is not in the range", id="no seed"),
    ],
)
def test_what_cannot_be_checked_exits_2_and_says_why(arguments, problem):
    result = mooring("plugin", "check", *arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr


def test_objects_that_are_none_are_named(tmp_path):
    file = tmp_path / "objects.yaml"
    file.write_text("kind: Node\n---\n- 1\n")

    result = mooring("plugin", "check", HONEST, "--objects", file)

    assert result.exit_code == 2
    assert f"{file}, document 1: this is no Kubernetes object" in result.stderr
    assert f"{file}, document 2: " in result.stderr


def test_a_new_package_is_written_and_the_next_steps_are_shown(tmp_path):
    result = mooring("plugin", "new", "QuietNodes", "--folder", tmp_path)

    assert result.exit_code == 0
    assert "mooring plugin check quiet_nodes:QuietNodes" in result.stdout
    assert (tmp_path / "quiet-nodes" / "src" / "quiet_nodes" / "__init__.py").exists()


def test_a_package_that_exists_exits_2(tmp_path):
    mooring("plugin", "new", "QuietNodes", "--folder", tmp_path)

    result = mooring("plugin", "new", "QuietNodes", "--folder", tmp_path)

    assert result.exit_code == 2
    assert "exists already" in result.stderr
