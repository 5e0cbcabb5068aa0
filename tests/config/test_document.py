from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.config import load_config
from tests.config.documents import TYPE_META, document, problems_of

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    ("source"),
    [
        pytest.param(HEAD + "parallelism: 3\n", id="YAML"),
        pytest.param((HEAD + "parallelism: 3\n").encode(), id="bytes"),
        pytest.param("---\n" + HEAD + "parallelism: 3\n---\n", id="YAML between dashes"),
        pytest.param(json.dumps(document(parallelism=3)), id="JSON"),
        pytest.param("\n{\n\t" + json.dumps(document(parallelism=3))[1:], id="JSON with tabs"),
        pytest.param(
            "{apiVersion: kubescheduler.config.k8s.io/v1,"
            " kind: KubeSchedulerConfiguration, parallelism: 3}",
            id="YAML in flow style",
        ),
        pytest.param(document(parallelism=3), id="mapping"),
        pytest.param(HEAD + "parallelism: 3.0\n", id="a whole number with a point"),
        pytest.param(HEAD + "parallelism: 3e0\n", id="a whole number with an exponent"),
    ],
)
def test_a_configuration_comes_as_yaml_json_or_data(source):
    assert load_config(source).parallelism == 3


def test_a_path_is_read_as_a_file(tmp_path):
    path = tmp_path / "scheduler.yaml"
    path.write_text(HEAD + "parallelism: 3\n")

    assert load_config(path).parallelism == 3


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "absent.yaml"

    assert problems_of(path) == [f"{path}: No such file or directory"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "the configuration is empty; write one KubeSchedulerConfiguration"),
        ("# nothing\n", "the configuration is empty; write one KubeSchedulerConfiguration"),
        (
            "a: 1\n---\nb: 2\n",
            "the configuration is in none of 2 documents; write one KubeSchedulerConfiguration",
        ),
        ("- a\n", "expected a mapping at the top, got ['a']"),
        ("a: [\n", "line 2, column 1: not YAML: did not find expected node content"),
        ("{[a]: b}", "line 1, column 2: not YAML: found unhashable key"),
        (b"\xff", "the text is not UTF-8: invalid start byte"),
        ("&a {b: *a}", "the document refers to itself"),
    ],
)
def test_text_that_is_no_configuration_is_refused_with_the_reason(source, problem):
    assert problems_of(source) == [problem]


def test_a_key_that_stands_twice_is_reported_with_its_path_and_line():
    text = (
        HEAD + "profiles:\n- schedulerName: a\n  schedulerName: b\nparallelism: 1\nparallelism: 2"
    )

    assert problems_of(text) == [
        "parallelism: duplicate field, on line 7",
        "profiles[0].schedulerName: duplicate field, on line 5",
    ]


def test_a_key_that_stands_twice_in_json_is_reported_with_its_path():
    text = (
        json.dumps(TYPE_META)[:-1] + ', "profiles": [{"schedulerName": "a", "schedulerName": "b"}]}'
    )

    assert problems_of(text) == ["profiles[0].schedulerName: duplicate field"]


def test_a_key_that_stands_twice_in_the_args_of_a_foreign_plugin_is_reported():
    text = HEAD + "profiles: [{pluginConfig: [{name: Mine, args: {a: 1, a: 2}}]}]"

    assert problems_of(text) == [
        "profiles[0].pluginConfig[0].args.a: duplicate field, on line 3",
    ]


def test_a_merged_key_may_be_overridden():
    text = HEAD + (
        "profiles:\n"
        "- &common {schedulerName: a, percentageOfNodesToScore: 10}\n"
        "- <<: *common\n"
        "  schedulerName: b\n"
    )

    assert [
        (profile.scheduler_name, profile.percentage_of_nodes_to_score)
        for profile in load_config(text).profiles
    ] == [("a", 10), ("b", 10)]


def test_text_that_looks_like_a_date_stays_text():
    text = HEAD + "profiles: [{schedulerName: 2026-01-01}]"

    assert load_config(text).profiles[0].scheduler_name == "2026-01-01"


def test_keys_that_yaml_reads_as_something_else_are_still_keys():
    text = HEAD + "profiles: [{pluginConfig: [{name: Mine, args: {on: 1, 2: b}}]}]"

    assert load_config(text).profiles[0].args_of("Mine") == {"true": 1, "2": "b"}


def test_the_data_that_was_given_is_left_alone():
    given = document(profiles=[{"pluginConfig": [{"name": "Mine", "args": {"a": [1]}}]}])
    before = json.dumps(given)

    load_config(given).profiles[0].args_of("Mine")["a"].append(2)

    assert json.dumps(given) == before


def test_paths_are_told_from_text_by_their_type():
    assert problems_of("scheduler.yaml") == ["expected a mapping at the top, got 'scheduler.yaml'"]
    assert problems_of(Path("/nonexistent/scheduler.yaml")) == [
        "/nonexistent/scheduler.yaml: No such file or directory"
    ]
