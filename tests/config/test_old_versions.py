"""Configurations of v1beta2 and v1beta3 are read as v1, with a note of what changed."""

from __future__ import annotations

import pytest

from mooring.config import load_config, write_config
from mooring.errors import ConfigError

GROUP = "kubescheduler.config.k8s.io"


def of(version, **fields):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields}


def read(version, **fields):
    notes: list[str] = []
    return load_config(of(version, **fields), notes=notes), notes


def refused(version, **fields):
    with pytest.raises(ConfigError) as refusal:
        load_config(of(version, **fields))
    return list(refusal.value.problems)


def weights(config):
    enabled = config.profiles[0].plugins.multi_point.enabled
    return {plugin.name: plugin.weight for plugin in enabled if plugin.weight}


def test_v1beta3_has_the_defaults_of_v1():
    config, notes = read("v1beta3")

    assert config == read("v1")[0]
    assert len(notes) == 1
    assert "removed in Kubernetes 1.29" in notes[0]


def test_v1beta2_keeps_its_score_weights():
    config, notes = read("v1beta2")

    old, new = weights(config), weights(read("v1")[0])
    changed = {name: (old[name], new[name]) for name in new if old[name] != new[name]}
    assert changed == {
        "TaintToleration": (1, 3),
        "NodeAffinity": (1, 2),
        "InterPodAffinity": (1, 2),
    }
    assert "its score weights are kept" in notes[0]


def test_a_weight_that_v1beta2_sets_is_used():
    plugins = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 7}]}}
    config, _ = read("v1beta2", profiles=[{"plugins": plugins}])

    assert config.profiles[0].plugins.score.enabled[0].weight == 7


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_written_as_v1_it_means_the_same(version):
    config, _ = read(version)

    notes: list[str] = []
    assert load_config(write_config(config), notes=notes) == config
    assert notes == []


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_args_of_the_same_version_are_read(version):
    args = {"apiVersion": f"{GROUP}/{version}", "kind": "NodeResourcesFitArgs"}
    args["scoringStrategy"] = {"type": "MostAllocated"}
    config, _ = read(
        version, profiles=[{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}]
    )

    assert config.profiles[0].args_of("NodeResourcesFit").scoring_strategy.type == "MostAllocated"


def test_plugins_that_v1_folds_into_another_are_left_out_with_a_note():
    plugins = {
        "filter": {"enabled": [{"name": "EBSLimits"}], "disabled": [{"name": "GCEPDLimits"}]}
    }
    config, notes = read("v1beta3", profiles=[{"plugins": plugins}])

    assert not config.profiles[0].plugins.filter.enabled
    assert [
        note for note in notes if note.startswith("EBSLimits: left out; v1 has NodeVolumeLimits")
    ]


def test_fields_that_v1_does_not_have_are_left_out_with_a_note():
    _, notes = read("v1beta2", healthzBindAddress="0.0.0.0:10251", metricsBindAddress="")

    assert sum("v1 does not have it" in note for note in notes) == 2


def test_multi_point_has_no_effect_in_v1beta2():
    plugins = {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}
    config, notes = read("v1beta2", profiles=[{"plugins": plugins}])

    assert "ImageLocality" in config.profiles[0].plugins.enabled_names
    assert any("multiPoint: kube-scheduler ignores it in v1beta2" in note for note in notes)
    assert (
        "ImageLocality"
        not in read("v1beta3", profiles=[{"plugins": plugins}])[0].profiles[0].plugins.enabled_names
    )


def test_a_percentage_of_a_profile_came_with_v1():
    (problem,) = refused("v1beta3", profiles=[{"percentageOfNodesToScore": 10}])

    assert problem == "profiles[0].percentageOfNodesToScore: unknown field in v1beta3; v1 has it"


def test_v1beta1_is_refused_with_what_to_write_instead():
    problems = refused("v1beta1", parallelism=0)

    assert "cannot be read; write kubescheduler.config.k8s.io/v1" in problems[0]
    assert "NodeResourcesFit with a scoringStrategy" in problems[0]
    assert problems[1].startswith("parallelism: ")


def test_all_problems_are_reported_at_once():
    problems = refused(
        "v1",
        parallelism="many",
        podMaxBackoffSeconds=-1,
        nonsense=1,
        profiles=[{"schedulerName": 3}, {"schedulerName": "b", "percentageOfNodesToScore": 200}],
    )

    assert {problem.partition(":")[0] for problem in problems} == {
        "parallelism",
        "podMaxBackoffSeconds",
        "nonsense",
        "profiles[0].schedulerName",
        "profiles[1].percentageOfNodesToScore",
    }
    assert len(problems) == 5


# Where the configuration is

YAML = f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n"


def indented(text, by):
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scheduler}\ndata:\n  other: 'a: ['\n"
    f"  config.yaml: |\n{indented(YAML, 4)}"
)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (YAML, ""),
        (f"apiVersion: v1\nkind: Pod\n---\n{YAML}", "document 2 of 2"),
        (CONFIG_MAP, "in ConfigMap scheduler, data[config.yaml]"),
        (f"kind: Deployment\n---\n{CONFIG_MAP}", "in ConfigMap scheduler, data[config.yaml]"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n- "
            + indented(CONFIG_MAP, 2).lstrip(),
            "in ConfigMap scheduler, data[config.yaml]",
        ),
    ],
)
def test_a_configuration_is_found_among_other_documents_and_in_a_config_map(text, where):
    notes: list[str] = []

    assert load_config(text, notes=notes).parallelism == 3
    assert notes == ([f"the configuration is {where}"] if where else [])


def test_two_configurations_are_refused():
    with pytest.raises(ConfigError, match="there are 2 configurations"):
        load_config(f"{YAML}---\n{YAML}")
