"""Configurations as people have them: with plugins of others, for schedulers that no pod asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.clusters import NODES, pod
from tests.cli.running import mooring

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FOREIGN = HEAD + (
    "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: QOSSort}]}\n"
    "    queueSort: {enabled: [{name: QOSSort}], disabled: [{name: '*'}]}\n"
    "  pluginConfig: [{name: QOSSort, args: {any: 10}}]\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(NODES + pod("web") + pod("api"))
    (tmp_path / "foreign.yaml").write_text(FOREIGN)
    (tmp_path / "mine.yaml").write_text(f"{HEAD}profiles: [{{schedulerName: mine}}]\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("NodeResourcesMostAllocated", "NodeResourcesFit with scoringStrategy.type: MostAllocated"),
        ("NodeResourcesLeastAllocated", "scoringStrategy.type: LeastAllocated"),
        ("RequestedToCapacityRatio", "scoringStrategy.type: RequestedToCapacityRatio"),
        ("NodeLabel", "NodeAffinity"),
        ("ServiceAffinity", "InterPodAffinity"),
        ("NodePreferAvoidPods", "PreferNoSchedule"),
        ("SelectorSpread", "PodTopologySpread"),
        ("EBSLimits", "NodeVolumeLimits"),
        ("GCEPDLimits", "NodeVolumeLimits"),
        ("AzureDiskLimits", "NodeVolumeLimits"),
        ("CinderLimits", "NodeVolumeLimits"),
        ("QOSSort", "kubernetes-sigs/scheduler-plugins"),
        ("NodeAfinity", 'did you mean "NodeAffinity"'),
    ],
)
@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_an_unknown_plugin_is_answered_by_what_replaced_it(files, name, instead, point):
    plugins = f"{{{point}: {{enabled: [{{name: {name}}}]}}}}"
    (files / "c.yaml").write_text(f"{HEAD}profiles: [{{plugins: {plugins}}}]\n")

    result = mooring("config", "check", files / "c.yaml")

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert instead in line


def test_unknown_plugins_are_reported_with_all_other_problems(files):
    (files / "c.yaml").write_text(
        f"{HEAD}parallelism: 0\nprofiles:\n- plugins:\n"
        "    score: {enabled: [{name: A}, {name: NodeName}]}\n"
        "    filter: {enabled: [{name: B}]}\n"
    )

    result = mooring("config", "check", files / "c.yaml")

    assert result.exit_code == 1
    for said in ("parallelism", '"A"', '"B"', '"NodeName" does not extend Score'):
        assert said in result.stderr
    assert len(result.stderr.splitlines()) == 4


def test_an_unknown_plugin_is_named_by_its_place_in_the_file(files):
    """Its index was that in the list with the default plugins: enabled[20]."""
    (files / "c.yaml").write_text(
        f"{HEAD}profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins:\n"
        "    multiPoint: {enabled: [{name: NodeName}, {name: NodeAffinitty}]}\n"
    )

    result = mooring("config", "check", files / "c.yaml")

    assert "profiles[1].plugins.multiPoint.enabled[1].name: " in result.stderr


def test_unknown_plugins_can_be_left_out_for_an_approximate_answer(files):
    arguments = ("simulate", files / "cluster.yaml", "--config", files / "foreign.yaml")
    assert mooring(*arguments).exit_code == 2

    result = mooring(*arguments, "--ignore-unknown-plugins", "-o", "json")

    assert result.exit_code == 0
    assert "the answer is approximate: mooring does not have QOSSort" in result.stderr
    data = json.loads(result.stdout)
    assert (data["approximate"], data["leftOutPlugins"]) == (True, ["QOSSort"])
    assert data["summary"]["placed"] == 2


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "web"),
        ("capacity", "--drain", "n-1"),
        ("compare", "--config", "default"),
        ("simulate",),
    ],
)
def test_every_command_with_a_configuration_says_what_it_left_out(files, command):
    result = mooring(
        *(*command, "-f", files / "cluster.yaml", "--config", files / "foreign.yaml"),
        *("--ignore-unknown-plugins", "-o", "json"),
    )

    assert result.exit_code in (0, 1)
    assert json.loads(result.stdout)["approximate"] is True


def test_a_configuration_without_unknown_plugins_gives_an_exact_answer(files):
    result = mooring("simulate", files / "cluster.yaml", "--ignore-unknown-plugins", "-o", "json")

    assert "approximate" not in json.loads(result.stdout)


def test_the_checks_say_which_entries_have_no_effect(files):
    (files / "c.yaml").write_text(
        f"{HEAD}profiles:\n- plugins: {{score: {{disabled: [{{name: Nonsense}}]}}}}\n"
        "  pluginConfig: [{name: Elsewhere, args: {}}]\n"
    )

    result = mooring("config", "check", files / "c.yaml")

    assert result.exit_code == 0
    assert '"Nonsense" has no effect: no plugin has this name' in result.stderr
    assert 'pluginConfig[0]: has no effect: plugin "Elsewhere" does not exist' in result.stderr


def test_plugins_of_gates_that_are_off_are_said_to_be_without_effect(files):
    plugins = "{multiPoint: {enabled: [{name: GangScheduling}]}}"
    (files / "c.yaml").write_text(f"{HEAD}profiles: [{{plugins: {plugins}}}]\n")

    result = mooring("config", "check", files / "c.yaml")

    assert result.exit_code == 0
    assert "GangScheduling has no effect: the feature gate GangScheduling is off" in result.stderr


def test_an_older_version_is_used_with_a_note(files):
    (files / "old.yaml").write_text(HEAD.replace("/v1", "/v1beta3"))

    result = mooring("simulate", files / "cluster.yaml", "--config", files / "old.yaml")

    assert result.exit_code == 0
    assert "old.yaml: apiVersion: v1beta3 was removed in Kubernetes 1.29" in result.stderr


# Schedulers that no pod asks for


def test_comparing_with_a_scheduler_that_no_pod_asks_for_is_refused_with_what_to_do(files):
    result = mooring(
        "compare", files / "cluster.yaml", "--config", "default", "--config", files / "mine.yaml"
    )

    assert result.exit_code == 2
    assert "no pod asks for its scheduler mine; pods ask: 2 for default-scheduler" in result.stderr
    assert "Add --scheduler-name mine" in result.stderr


def test_with_a_scheduler_name_all_pods_are_compared(files):
    result = mooring(
        *(
            "compare",
            files / "cluster.yaml",
            "--config",
            "default",
            "--config",
            files / "mine.yaml",
        ),
        *("--scheduler-name", "mine", "-o", "json"),
    )

    assert result.exit_code == 0, result.output
    values = [each["values"] for each in json.loads(result.stdout)["variants"]]
    assert [each["placed"] for each in values] == [2, 2]
    assert [each["otherSchedulers"] for each in values] == [0, 0]


def test_pods_for_other_schedulers_are_counted_apart_in_a_comparison(files):
    (files / "some.yaml").write_text(NODES + pod("a") + pod("b", spec=", schedulerName: mine"))

    arguments = (
        "compare",
        files / "some.yaml",
        "--config",
        "default",
        "--config",
        files / "mine.yaml",
    )
    data = json.loads(mooring(*arguments, "-o", "json").stdout)

    assert [each["values"]["pending"] for each in data["variants"]] == [0, 0]
    assert [each["otherSchedulers"] for each in data["variants"]] == [["default/b"], ["default/a"]]
    assert "for other schedulers" in mooring(*arguments).stdout


def test_a_simulation_counts_pods_for_other_schedulers_apart(files):
    (files / "some.yaml").write_text(NODES + pod("a") + pod("b", spec=", schedulerName: volcano"))

    table = mooring("simulate", files / "some.yaml")

    assert table.exit_code == 1
    assert "1 placed, 0 pending, 1 for other schedulers" in table.stdout
    assert "no profile has the scheduler name 'volcano'" in table.stdout


def test_a_simulation_warns_if_no_pod_asks_for_its_scheduler(files):
    arguments = ("simulate", files / "cluster.yaml", "--config", files / "mine.yaml")

    without = mooring(*arguments)
    with_name = mooring(*arguments, "--scheduler-name", "mine")

    assert without.exit_code == 1
    assert "Add --scheduler-name mine" in without.stderr
    assert with_name.exit_code == 0


def test_explain_names_the_schedulers_of_the_configuration(files):
    arguments = ("explain", "web", files / "cluster.yaml", "--config", files / "mine.yaml")

    result = mooring(*arguments, "-o", "json")

    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["state"] == "ignored"
    assert "the configuration has mine" in data["message"]
    assert mooring(*arguments, "--scheduler-name", "mine").exit_code == 0


def test_a_scheduler_name_that_no_configuration_has_is_refused(files):
    simulated = mooring("simulate", files / "cluster.yaml", "--scheduler-name", "mine")
    compared = mooring(
        *(
            "compare",
            files / "cluster.yaml",
            "--config",
            "default",
            "--config",
            files / "mine.yaml",
        ),
        *("--scheduler-name", "other"),
    )

    assert (simulated.exit_code, compared.exit_code) == (2, 2)
    assert "the default configuration has no such profile" in simulated.stderr
    assert "no configuration has it; they have default-scheduler, mine" in compared.stderr
