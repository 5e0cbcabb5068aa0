from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.config import (
    DEFAULT_GATES,
    KubeSchedulerConfiguration,
    PluginConfig,
    config_problems,
    default_config,
)
from mooring.config.args import InterPodAffinityArgs
from mooring.config.types import LeaderElectionConfiguration
from tests.config.documents import load, problems

REMOVED = (
    'was invalid in version "v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
    "; use NodeVolumeLimits, which counts these volumes by their CSI driver"
)
SORTED_BY_MINE = {"queueSort": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]}}


def test_the_default_configuration_can_be_used():
    assert config_problems(default_config(), DEFAULT_GATES) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"parallelism": 0},
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
        ),
        (
            {"parallelism": -4},
            ["parallelism: Invalid value: -4: should be an integer value greater than zero"],
        ),
        (
            {"percentageOfNodesToScore": 101},
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
        ),
        (
            {"percentageOfNodesToScore": -1},
            ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
        ),
        (
            {"podInitialBackoffSeconds": 0},
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            {"podInitialBackoffSeconds": 11},
            [
                "podMaxBackoffSeconds: Invalid value: 10: "
                "must be greater than or equal to PodInitialBackoffSeconds"
            ],
        ),
        (
            {"clientConnection": {"burst": -1}},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        (
            {"leaderElection": {"leaseDuration": "-1s"}},
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.leaseDuration: Invalid value: "10s": '
                "must be greater than `RenewDeadline`",
            ],
        ),
        (
            {"leaderElection": {"leaseDuration": "10s"}},
            [
                'leaderElection.leaseDuration: Invalid value: "10s": '
                "must be greater than `RenewDeadline`"
            ],
        ),
        (
            {"leaderElection": {"renewDeadline": "-1m", "retryPeriod": "-2ms"}},
            [
                'leaderElection.renewDeadline: Invalid value: "-1m0s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-2ms": must be greater than zero',
            ],
        ),
        (
            {"leaderElection": {"resourceLock": "configmaps"}},
            [
                'leaderElection.resourceLock: Invalid value: "configmaps": '
                'resourceLock value must be "leases"'
            ],
        ),
    ],
)
def test_a_field_outside_its_range_is_refused_in_the_words_of_the_reference(fields, expected):
    assert problems(**fields) == expected


@pytest.mark.parametrize(
    ("fields"),
    [
        {"percentageOfNodesToScore": 0},
        {"percentageOfNodesToScore": 100},
        {"podInitialBackoffSeconds": 10},
        {"leaderElection": {"leaseDuration": "10.000000001s"}},
        {"enableProfiling": False, "enableContentionProfiling": True},
    ],
)
def test_a_field_at_the_end_of_its_range_is_accepted(fields):
    load(**fields)


def test_without_leader_election_its_fields_are_not_looked_at():
    load(
        leaderElection={
            "leaderElect": False,
            "leaseDuration": "-1s",
            "renewDeadline": "-1s",
            "retryPeriod": "-1s",
            "resourceLock": "endpoints",
        }
    )


def test_leader_election_needs_a_lock_with_a_name():
    election = LeaderElectionConfiguration(
        resource_lock="", resource_name="", resource_namespace=""
    )
    config = replace(default_config(), leader_election=election)

    assert config_problems(config, DEFAULT_GATES) == [
        "leaderElection.resourceLock: Required value",
        "leaderElection.resourceNamespace: Required value",
        "leaderElection.resourceName: Required value",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ]


def test_a_configuration_needs_a_profile():
    config = KubeSchedulerConfiguration(profiles=())

    assert config_problems(config, DEFAULT_GATES) == ["profiles: Required value"]


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        pytest.param(
            [{"schedulerName": ""}],
            ["profiles[0].schedulerName: Required value"],
            id="a name that is empty, not absent",
        ),
        pytest.param(
            [{"schedulerName": "a"}, {}],
            ["profiles[1].schedulerName: Required value"],
            id="one of two without a name",
        ),
        pytest.param(
            [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}],
            ['profiles[2].schedulerName: Duplicate value: "profiles[0].schedulerName"'],
            id="a name twice",
        ),
        pytest.param(
            [{"percentageOfNodesToScore": 101}],
            [
                "profiles[0].percentageOfNodesToScore: Invalid value: 101: "
                "not in valid range [0-100]"
            ],
            id="a percentage out of range",
        ),
        pytest.param(
            [{"pluginConfig": [{"name": "Mine"}, {"name": "Mine"}, {"name": "Mine"}]}],
            [
                'profiles[0].pluginConfig[1]: Duplicate value: "Mine"',
                'profiles[0].pluginConfig[2]: Duplicate value: "Mine"',
            ],
            id="a plugin configured twice",
        ),
        pytest.param(
            [{"pluginConfig": [{"name": "EBSLimits", "args": {"a": 1}}]}],
            [f'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": {REMOVED}'],
            id="args for a plugin that is gone",
        ),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_in_the_words_of_the_reference(profiles, expected):
    assert problems(profiles=profiles) == expected


@pytest.mark.parametrize(
    "point",
    [
        "preEnqueue",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "queueSort",
    ],
)
@pytest.mark.parametrize("plugin", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_plugins_that_are_gone_cannot_be_enabled_at_a_point(point, plugin):
    plugins = {point: {"enabled": [{"name": plugin}]}}

    assert problems(profiles=[{"plugins": plugins}]) == [
        f'profiles[0].plugins.{point}.enabled[0]: Invalid value: "{plugin}": {REMOVED}'
    ]


@pytest.mark.parametrize("point", ["multiPoint", "placementGenerate", "placementScore"])
def test_plugins_that_are_gone_are_not_looked_for_elsewhere(point):
    load(profiles=[{"plugins": {point: {"enabled": [{"name": "EBSLimits"}]}}}])


def test_plugins_that_are_gone_may_be_disabled():
    load(profiles=[{"plugins": {"filter": {"disabled": [{"name": "EBSLimits"}]}}}])


def test_args_of_a_known_plugin_have_to_be_its_own():
    (profile,) = default_config().profiles
    wrong = replace(
        profile, plugin_config=(PluginConfig("DefaultPreemption", InterPodAffinityArgs()),)
    )
    config = replace(default_config(), profiles=(wrong,))

    assert config_problems(config, DEFAULT_GATES) == [
        "profiles[0].pluginConfig[0].args: Invalid value: "
        '{"HardPodAffinityWeight":1,"IgnorePreferredTermsOfExistingPods":false}: '
        "has to match plugin args"
    ]


def test_one_profile_may_enable_one_queue_sort_plugin():
    plugins = {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}

    assert problems(profiles=[{"plugins": plugins}]) == [
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
        "only one queue sort plugin can be enabled"
    ]


def test_all_profiles_have_to_sort_the_queue_alike():
    profiles = [
        {"schedulerName": "a", "plugins": SORTED_BY_MINE},
        {"schedulerName": "b", "plugins": SORTED_BY_MINE},
        {"schedulerName": "c"},
        {"schedulerName": "d", "plugins": {"queueSort": {"enabled": [{"name": "Other"}]}}},
    ]

    assert problems(profiles=profiles) == [
        'profiles[2].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":null}: '
        "must be the same for all profiles",
        "profiles[3].plugins.queueSort: Invalid value: "
        '{"Enabled":[{"Name":"Other","Weight":0}],"Disabled":null}: '
        "must be the same for all profiles",
    ]


def test_all_profiles_have_to_sort_the_queue_with_the_same_args():
    def profile(name: str, args: dict[str, int]) -> dict[str, object]:
        return {
            "schedulerName": name,
            "plugins": SORTED_BY_MINE,
            "pluginConfig": [{"name": "Mine", "args": args}],
        }

    assert problems(profiles=[profile("a", {"x": 1}), profile("b", {"x": 2})]) == [
        'profiles[1].pluginConfig.args: Invalid value: {"x":2}: '
        "queueSort must be the same for all profiles"
    ]
    load(profiles=[profile("a", {"x": 1}), profile("b", {"x": 1})])


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param(
            [{"prioritizeVerb": "prioritize"}],
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="priorities without weight",
        ),
        pytest.param(
            [{}, {"prioritizeVerb": "prioritize", "weight": -3}],
            ["extenders[1].weight: Invalid value: -3: must have a positive weight applied to it"],
            id="a negative weight",
        ),
        pytest.param(
            [{"bindVerb": "bind"}, {"bindVerb": "bind"}],
            [
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ],
            id="two that bind",
        ),
        pytest.param(
            [
                {"managedResources": [{"name": "example.com/a"}]},
                {"managedResources": [{"name": "example.com/b"}, {"name": "example.com/a"}]},
            ],
            [
                'extenders[1].managedResources[1].name: Invalid value: "example.com/a": '
                "duplicate extender managed resource name"
            ],
            id="a resource managed twice",
        ),
        pytest.param(
            [{"managedResources": [{"name": "cpu"}, {"name": "kubernetes.io/x"}]}],
            [
                'extenders[0].managedResources[0].name: Invalid value: "cpu": '
                "is an invalid extended resource name",
                'extenders[0].managedResources[1].name: Invalid value: "kubernetes.io/x": '
                "is an invalid extended resource name",
            ],
            id="resources of Kubernetes itself",
        ),
        pytest.param(
            [{"managedResources": [{"name": "example.com/"}]}],
            [
                'extenders[0].managedResources[0].name: Invalid value: "example.com/": '
                "name part must be non-empty",
                'extenders[0].managedResources[0].name: Invalid value: "example.com/": '
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                "'123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
            id="no name at all",
        ),
    ],
)
def test_extenders_that_cannot_be_used_are_refused_in_the_words_of_the_reference(
    extenders, expected
):
    assert problems(extenders=extenders) == expected


def test_every_problem_is_reported_in_the_order_of_the_reference():
    found = problems(
        parallelism=0,
        podInitialBackoffSeconds=-1,
        clientConnection={"burst": -5},
        leaderElection={"resourceLock": "x"},
        percentageOfNodesToScore=200,
        profiles=[
            {
                "schedulerName": "",
                "percentageOfNodesToScore": -1,
                "pluginConfig": [
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}
                ],
            }
        ],
        extenders=[{"prioritizeVerb": "p"}],
    )

    assert [line.partition(":")[0] for line in found] == [
        "clientConnection.burst",
        "leaderElection.resourceLock",
        "parallelism",
        "profiles[0].schedulerName",
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "extenders[0].weight",
    ]
