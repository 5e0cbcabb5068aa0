from __future__ import annotations

import pytest

from mooring.errors import ConfigError, InputError
from mooring.web.source_lines import located
from mooring.web.what_if import read_beside, read_config

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 0
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: Whatever
"""
OBJECTS = """\
# two documents
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    resources:
      requests:
        cpu: -1
"""


def test_problems_of_a_configuration_are_at_the_line_of_their_field():
    with pytest.raises(ConfigError) as caught:
        read_config(CONFIG)

    found = {each.path: each.line for each in located(caught.value.problems, CONFIG)}

    assert found == {
        "parallelism": 3,
        "profiles[0].pluginConfig[0].args.scoringStrategy.type": 9,
    }


def test_problems_of_objects_are_at_the_line_in_their_document():
    with pytest.raises(InputError) as caught:
        read_beside(OBJECTS, [])

    (problem,) = located(caught.value.problems, OBJECTS)

    assert problem.path == "spec.containers[0].resources.requests.cpu"
    assert problem.line == 14
    assert problem.text.startswith("-1 is negative")


def test_text_that_is_no_yaml_has_the_line_that_its_reader_says():
    with pytest.raises(ConfigError) as caught:
        read_config("a: b\nc: [")

    (problem,) = located(caught.value.problems, "a: b\nc: [")

    assert problem.line is not None
    assert not problem.text.startswith("line ")


@pytest.mark.parametrize("problem", ["", "x", "a.b[", "a[9].b: wrong", "]: x", "..: y"])
def test_any_line_can_be_looked_for(problem):
    (found,) = located([problem], "a: [1]")

    assert found.line is None or found.line == 1
