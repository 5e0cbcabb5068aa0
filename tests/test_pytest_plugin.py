"""Scenarios as pytest tests, in a pytest of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.clusters import FITS
from tests.sim.scenarios.playing import HEAD

pytestmark = pytest.mark.long

pytest_plugins = ["pytester"]

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
GOOD = f"{HEAD}name: good\ncluster: cluster.yaml\nexpect: all pods placed\n"
BAD = f"{HEAD}name: bad\ncluster: cluster.yaml\nexpect: all pods on node n-1\n"


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Under its own name, whether or not the plugin is installed where the tests run."""
    pytester.makefile(".yaml", cluster=FITS)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")

    def run(*arguments: str, **scenarios: str) -> pytest.RunResult:
        for name, content in scenarios.items():
            (pytester.path / f"{name}.scenario.yaml").write_text(content)
        plugin = ("-p", "no:mooring", "-p", "mooring.pytest_plugin", "-p", "no:cacheprovider")
        return pytester.runpytest_subprocess(*plugin, *arguments, timeout=100)

    return run


def test_pytest_finds_the_plugin_wherever_mooring_is_installed():
    project = tomllib.loads(PYPROJECT.read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"mooring": "mooring.pytest_plugin"}


def test_every_scenario_is_a_test(run):
    result = run("-v", first=GOOD, second=f"{GOOD}---\n{BAD}")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["first.scenario.yaml::good PASSED*", "second.scenario.yaml::bad FAILED*"],
        consecutive=False,
    )


def test_a_failure_shows_the_difference_and_no_traceback(run):
    result = run(bad=BAD)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*bad.scenario.yaml:5: at the end, 0s of virtual time",
            "  expected  all pods on node n-1",
            "  found     1 of 2 pods",
            "            default/api on n-2",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_malformed_file_is_an_error_of_its_own(run):
    result = run(good=GOOD, malformed=f"{HEAD}expct: no pods pending\n")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*malformed.scenario.yaml:3: expct: unknown field; did you mean*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_step_that_cannot_be_done_says_so(run):
    drain = f"{HEAD}cluster: cluster.yaml\nsteps: [{{drain: nowhere}}]\nexpect: no pods pending\n"

    result = run(drain=drain)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*drain.scenario.yaml:4: steps?0?: there is no node 'nowhere'*"])


def test_files_of_other_tools_are_left_alone(run):
    result = run(other="scenario:\n  - something else\n")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
