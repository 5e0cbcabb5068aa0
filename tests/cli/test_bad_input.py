"""Input that cannot be used gets clear lines and exit code 2; never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cli.clusters import FITS, NODES, pod
from tests.cli.running import mooring

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""


def refused(text: str | bytes, *arguments: object) -> list[str]:
    """The lines that this input gets."""
    result = mooring("simulate", "-", *arguments, stdin=text)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines), lines
    return lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: [1", "standard input: document 1", id="wrong YAML"),
        pytest.param(NODES + pod("p", cpu="[1]"), "spec.containers[0]", id="a wrong type"),
        pytest.param(NODES + pod("p", cpu="-1"), "cpu", id="a negative quantity"),
        pytest.param(NODES + pod("p", cpu="1zz"), "1zz", id="no quantity at all"),
        pytest.param(NODES + pod("p") + pod("p", cpu="2"), "default/p", id="a name twice"),
        pytest.param(
            NODES
            + pod(
                "p",
                spec=", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
                " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}}}",
            ),
            "matchExpressions[0].operator: must be In, NotIn, Exists, DoesNotExist, Gt or Lt",
            id="a selector that does not parse",
        ),
        pytest.param("[" * 50_000, "standard input", id="deep nesting"),
        pytest.param(
            NODES + pod("p", metadata=', annotations: {mooring.dev/run-seconds: "soon"}'),
            "pod default/p: metadata.annotations[mooring.dev/run-seconds]: 'soon'",
            id="a run time in words",
        ),
    ],
)
def test_bad_input_is_refused_in_one_clear_line(text, said):
    (line,) = refused(text)

    assert said in line


def test_ten_megabytes_of_garbage_are_refused():
    garbage = random.Random(1).randbytes(10_000_000)

    lines = refused(garbage)

    assert len(lines) <= 101
    assert all(len(line) < 1000 for line in lines)


def test_a_broken_document_does_not_hide_the_errors_of_the_others():
    text = NODES + pod("p", cpu="-1") + "\n---\na: [1\n" + pod("q", cpu="many")

    lines = refused(text)

    assert len(lines) == 3
    assert sum("default/p" in line or "default/q" in line for line in lines) == 2


def test_a_great_many_problems_are_summed_up():
    lines = refused(NODES + "".join(pod(f"p{i}", cpu="-1") for i in range(150)))

    assert len(lines) == 101
    assert lines[-1] == "error: … and 50 more problems"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            CONFIG + "profiles: [{plugins: {score: {enabled:"
            " [{name: ImageLocality}, {name: ImageLocality}]}}}]",
            "ImageLocality",
            id="a plugin twice",
        ),
        pytest.param(
            CONFIG + "parallelism: -1", "parallelism: Invalid value: -1", id="a bad value"
        ),
        pytest.param(CONFIG + "paralelism: 1", "paralelism", id="an unknown field"),
        pytest.param(
            CONFIG + "profiles: [{plugins: {filter: {enabled: [{name: NodePort}]}}}]",
            'did you mean "NodePorts"?',
            id="an unknown plugin",
        ),
        pytest.param(
            CONFIG + "profiles: [{plugins: {filter: {enabled: [{name: 'no_such_module:X'}]}}}]",
            "no_such_module",
            id="a module that is not there",
        ),
        pytest.param("a: [1", "not YAML", id="no YAML"),
    ],
)
def test_a_bad_configuration_is_refused_by_the_name_of_its_file(tmp_path: Path, text, said):
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)

    lines = refused(FITS, "--config", path)

    assert all(line.startswith(f"error: {path}: ") for line in lines)
    assert any(said in line for line in lines)


def test_a_configuration_that_is_not_there_is_refused():
    (line,) = refused(FITS, "--config", "/no/such/file")

    assert line == "error: /no/such/file: cannot be read: No such file or directory"
