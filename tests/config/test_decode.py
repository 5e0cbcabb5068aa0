from __future__ import annotations

import pytest

from mooring.config import load_config
from mooring.config.args import DefaultPreemptionArgs, NodeResourcesFitArgs
from mooring.config.durations import seconds
from mooring.config.types import ExtenderTLSConfig
from tests.config.documents import document, load, load_args, problems, problems_of


@pytest.mark.parametrize(
    ("type_meta", "expected"),
    [
        (
            {},
            [
                'apiVersion: missing; write "kubescheduler.config.k8s.io/v1"',
                'kind: missing; write "KubeSchedulerConfiguration"',
            ],
        ),
        (
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1alpha2",
                "kind": "KubeSchedulerConfiguration",
            },
            [
                'apiVersion: this is "kubescheduler.config.k8s.io/v1alpha2"; '
                'only "kubescheduler.config.k8s.io/v1" can be read'
            ],
        ),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "Pod"},
            ['kind: this is "Pod"; only "KubeSchedulerConfiguration" can be read'],
        ),
    ],
)
def test_only_a_v1_scheduler_configuration_is_read(type_meta, expected):
    assert problems_of({**type_meta, "parallelism": 0}) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"paralelism": 3},
            'paralelism: unknown field; did you mean "parallelism"?',
        ),
        (
            {"Parallelism": 3},
            'Parallelism: unknown field; did you mean "parallelism"?',
        ),
        ({"zzz": None}, "zzz: unknown field"),
        (
            {"leaderElection": {"leaseSeconds": 3}},
            "leaderElection.leaseSeconds: unknown field",
        ),
        (
            {"profiles": [{"plugins": {"filter": {"enable": []}}}]},
            'profiles[0].plugins.filter.enable: unknown field; did you mean "enabled"?',
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "X", "arguments": {}}]}]},
            'profiles[0].pluginConfig[0].arguments: unknown field; did you mean "args"?',
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {
                                "name": "NodeResourcesFit",
                                "args": {
                                    "scoringStrategy": {
                                        "type": "LeastAllocated",
                                        "resources": [{"Name": "cpu"}],
                                    }
                                },
                            }
                        ]
                    }
                ]
            },
            "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].Name: "
            'unknown field; did you mean "name"?',
        ),
        (
            {"extenders": [{"enableHttps": True}]},
            'extenders[0].enableHttps: unknown field; did you mean "enableHTTPS"?',
        ),
    ],
)
def test_a_field_that_does_not_exist_is_refused_with_its_path(fields, expected):
    assert problems(**fields) == [expected]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"parallelism": "many"}, 'parallelism: expected an integer, got "many"'),
        ({"parallelism": True}, "parallelism: expected an integer, got true"),
        ({"parallelism": 1.5}, "parallelism: expected an integer, got 1.5"),
        (
            {"parallelism": 2**31},
            "parallelism: expected an integer from -2147483648 to 2147483647, got 2147483648",
        ),
        (
            {"podMaxBackoffSeconds": 2**63},
            "podMaxBackoffSeconds: expected an integer from -9223372036854775808 to "
            "9223372036854775807, got 9223372036854775808",
        ),
        ({"enableProfiling": "yes"}, 'enableProfiling: expected true or false, got "yes"'),
        ({"leaderElection": []}, "leaderElection: expected a mapping, got []"),
        ({"profiles": {}}, "profiles: expected a list, got {}"),
        ({"profiles": ["default"]}, 'profiles[0]: expected a mapping, got "default"'),
        (
            {"clientConnection": {"qps": "fast"}},
            'clientConnection.qps: expected a number, got "fast"',
        ),
        ({"clientConnection": {"qps": True}}, "clientConnection.qps: expected a number, got true"),
        (
            {"profiles": [{"schedulerName": 7}]},
            "profiles[0].schedulerName: expected a string, got 7",
        ),
        (
            {"leaderElection": {"leaseDuration": 15}},
            'leaderElection.leaseDuration: expected a duration such as "15s", got 15',
        ),
        (
            {"leaderElection": {"leaseDuration": "15"}},
            'leaderElection.leaseDuration: time: missing unit in duration "15"',
        ),
        (
            {"extenders": [{"tlsConfig": {"caData": "not base64"}}]},
            'extenders[0].tlsConfig.caData: expected base64 text, got "not base64"',
        ),
        (
            {"profiles": [{"pluginConfig": ["NodeName"]}]},
            'profiles[0].pluginConfig[0]: expected a mapping, got "NodeName"',
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": ["NodeName"]}]}]},
            'profiles[0].pluginConfig[0].name: expected a string, got ["NodeName"]',
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "Mine", "args": "fast"}]}]},
            'profiles[0].pluginConfig[0].args: expected a mapping, got "fast"',
        ),
        (
            {
                "profiles": [
                    {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": "x"}}]}
                ]
            },
            'profiles[0].pluginConfig[0].args.addedAffinity: expected a mapping, got "x"',
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {
                                "name": "PodTopologySpread",
                                "args": {
                                    "defaultConstraints": [{"labelSelector": {"matchLabels": "x"}}]
                                },
                            }
                        ]
                    }
                ]
            },
            "profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector.matchLabels: "
            'expected a mapping, got "x"',
        ),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_path(fields, expected):
    assert problems(**fields) == [expected]


def test_every_mistake_is_reported_and_not_the_first_alone():
    assert problems(parallelism="many", profile=[], extenders=[{"weight": "x"}, {"weigth": 1}]) == [
        'profile: unknown field; did you mean "profiles"?',
        'parallelism: expected an integer, got "many"',
        'extenders[0].weight: expected an integer, got "x"',
        'extenders[1].weigth: unknown field; did you mean "weight"?',
    ]


def test_unknown_fields_do_not_hide_what_is_wrong_with_the_known_ones():
    assert problems(profile=[], parallelism=0) == [
        'profile: unknown field; did you mean "profiles"?',
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


def test_null_is_a_field_that_is_not_given():
    nothing = dict.fromkeys(
        (
            "parallelism",
            "leaderElection",
            "clientConnection",
            "enableProfiling",
            "enableContentionProfiling",
            "percentageOfNodesToScore",
            "podInitialBackoffSeconds",
            "podMaxBackoffSeconds",
            "profiles",
            "extenders",
            "delayCacheUntilActive",
        )
    )

    assert load(**nothing) == load()


def test_null_in_a_list_is_an_empty_item():
    assert load(profiles=[None]) == load()
    assert load(extenders=[None]) == load(extenders=[{}])
    assert load(profiles=[{"pluginConfig": [None]}]) == load(profiles=[{"pluginConfig": [{}]}])


@pytest.mark.parametrize(
    ("args"),
    [
        pytest.param({"minCandidateNodesPercentage": 50}, id="without a kind"),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "DefaultPreemptionArgs",
                "minCandidateNodesPercentage": 50,
            },
            id="with their kind",
        ),
    ],
)
def test_args_of_a_known_plugin_are_of_its_kind(args):
    assert load_args("DefaultPreemption", args) == DefaultPreemptionArgs(50, 100)


def test_args_of_a_known_plugin_may_be_empty_or_absent():
    assert load_args("NodeResourcesFit", None) == NodeResourcesFitArgs()
    assert load_args("NodeResourcesFit", {}) == NodeResourcesFitArgs()


@pytest.mark.parametrize(
    ("type_meta", "problem"),
    [
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs"},
            "decoding .profiles[0].pluginConfig[0]: args for plugin DefaultPreemption were not of "
            "type DefaultPreemptionArgs.kubescheduler.config.k8s.io, "
            "got InterPodAffinityArgs.kubescheduler.config.k8s.io",
        ),
        (
            {"kind": "PreemptionArgs"},
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: "
            'no kind "PreemptionArgs" is registered for version "kubescheduler.config.k8s.io/v1"',
        ),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: "
            'no kind "DefaultPreemptionArgs" is registered for version '
            '"kubescheduler.config.k8s.io/v1beta3"',
        ),
    ],
)
def test_args_of_another_kind_are_refused(type_meta, problem):
    entry = {"name": "DefaultPreemption", "args": type_meta}

    assert problems(profiles=[{"pluginConfig": [entry]}]) == [problem]


@pytest.mark.parametrize("plugin", ["OutOfTree", "my_package.plugins:PackTightly"])
def test_args_of_a_plugin_from_elsewhere_stay_as_they_are(plugin):
    args = {"apiVersion": "example.com/v7", "kind": "Own", "deep": [{"er": None}]}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": plugin, "weight": 5}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }

    loaded = load(profiles=[profile]).profiles[0]

    assert loaded.args_of(plugin) == args
    assert plugin in loaded.plugins.enabled_names


def test_an_extender_is_read_whole():
    config = load_config(
        document(
            extenders=[
                {
                    "urlPrefix": "https://extender:8080/",
                    "filterVerb": "filter",
                    "preemptVerb": "preempt",
                    "prioritizeVerb": "prioritize",
                    "weight": 7,
                    "bindVerb": "bind",
                    "enableHTTPS": True,
                    "tlsConfig": {
                        "insecure": False,
                        "serverName": "extender",
                        "certFile": "/c",
                        "keyFile": "/k",
                        "caFile": "/a",
                        "certData": "Yw==",
                        "keyData": "aw==",
                        "caData": "YQ==",
                    },
                    "httpTimeout": "2s",
                    "nodeCacheCapable": True,
                    "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
                    "ignorable": True,
                }
            ]
        )
    )

    (extender,) = config.extenders
    assert extender.url_prefix == "https://extender:8080/"
    assert extender.enable_https
    assert extender.http_timeout == seconds(2)
    assert extender.weight == 7
    assert extender.ignorable
    assert extender.tls_config == ExtenderTLSConfig(
        server_name="extender",
        cert_file="/c",
        key_file="/k",
        ca_file="/a",
        cert_data=b"c",
        key_data=b"k",
        ca_data=b"a",
    )
