from __future__ import annotations

import pytest

from mooring.config import (
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    SchedulerProfile,
    default_config,
    load_config,
    parse_gates,
    with_defaults,
)
from mooring.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from mooring.config.durations import seconds
from mooring.config.gates import DEFAULT_GATES
from tests.config.documents import document, load, load_args

CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


def names_in_force(gates: str) -> list[str]:
    (profile,) = default_config(parse_gates(gates)).profiles
    return [plugin.name for plugin in profile.plugins.multi_point.enabled]


def test_a_configuration_that_says_nothing_is_the_default_one():
    assert load_config(document()) == default_config()


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("parallelism", 16),
        ("enable_profiling", True),
        ("enable_contention_profiling", True),
        ("percentage_of_nodes_to_score", 0),
        ("pod_initial_backoff_seconds", 1),
        ("pod_max_backoff_seconds", 10),
        ("extenders", ()),
        ("delay_cache_until_active", False),
        ("leader_election.leader_elect", True),
        ("leader_election.lease_duration", seconds(15)),
        ("leader_election.renew_deadline", seconds(10)),
        ("leader_election.retry_period", seconds(2)),
        ("leader_election.resource_lock", "leases"),
        ("leader_election.resource_name", "kube-scheduler"),
        ("leader_election.resource_namespace", "kube-system"),
        ("client_connection.kubeconfig", ""),
        ("client_connection.accept_content_types", ""),
        ("client_connection.content_type", "application/vnd.kubernetes.protobuf"),
        ("client_connection.qps", 50.0),
        ("client_connection.burst", 100),
    ],
)
def test_every_field_has_the_default_of_the_reference(field, expected):
    value = default_config()
    for name in field.split("."):
        value = getattr(value, name)

    assert value == expected


def test_zeros_and_empty_names_count_as_unset_where_the_reference_takes_them_so():
    config = load(
        leaderElection={
            "leaseDuration": "0s",
            "renewDeadline": "0s",
            "retryPeriod": "0",
            "resourceLock": "",
            "resourceName": "",
            "resourceNamespace": "",
        },
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
        extenders=[{"httpTimeout": "0s"}],
    )

    assert config.leader_election == default_config().leader_election
    assert config.client_connection == default_config().client_connection
    assert config.extenders[0].http_timeout == seconds(5)


@pytest.mark.parametrize(
    ("fields", "contention"),
    [
        ({}, True),
        ({"enableProfiling": True}, True),
        ({"enableProfiling": False}, False),
        ({"enableProfiling": False, "enableContentionProfiling": True}, True),
        ({"enableContentionProfiling": False}, False),
    ],
)
def test_contention_is_profiled_by_default_only_if_anything_is(fields, contention):
    assert load(**fields).enable_contention_profiling is contention


@pytest.mark.parametrize("profiles", [None, [], [{}], [None]])
def test_a_lone_profile_without_a_name_is_the_default_scheduler(profiles):
    assert [p.scheduler_name for p in load(profiles=profiles).profiles] == ["default-scheduler"]


@pytest.mark.parametrize(("own", "expected"), [(None, 40), (0, 0), (70, 70)])
def test_a_profile_may_have_its_own_percentage_of_nodes_to_score(own, expected):
    config = load(percentageOfNodesToScore=40, profiles=[{"percentageOfNodesToScore": own}])

    assert config.percentage_for(config.profiles[0]) == expected


def test_the_default_profile_has_the_plugins_of_the_reference_in_order():
    (profile,) = default_config().profiles

    assert [(p.name, p.weight) for p in profile.plugins.multi_point.enabled] == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    ]
    assert [key for key, found in profile.plugins.sets() if found != PluginSet()] == ["multiPoint"]


@pytest.mark.parametrize(
    ("gates", "last"),
    [
        ("", ["DefaultBinder", "NodeDeclaredFeatures"]),
        (
            "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false",
            ["ImageLocality", "DefaultBinder"],
        ),
        (
            "GenericWorkload=true,GangScheduling=true",
            ["NodeDeclaredFeatures", "GangScheduling"],
        ),
        (
            "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true",
            ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"],
        ),
    ],
)
def test_gates_append_the_plugins_that_belong_to_them(gates, last):
    assert names_in_force(gates)[-len(last) :] == last


def test_every_enabled_plugin_that_takes_args_has_some_in_order_of_name():
    (profile,) = default_config().profiles

    assert profile.plugin_config == (
        PluginConfig("DefaultPreemption", DefaultPreemptionArgs(10, 100)),
        PluginConfig("DynamicResources", DynamicResourcesArgs(seconds(10), seconds(600))),
        PluginConfig("InterPodAffinity", InterPodAffinityArgs(1, False)),
        PluginConfig("NodeAffinity", NodeAffinityArgs(None)),
        PluginConfig(
            "NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs(CPU_AND_MEMORY)
        ),
        PluginConfig(
            "NodeResourcesFit",
            NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", CPU_AND_MEMORY)),
        ),
        PluginConfig("PodTopologySpread", PodTopologySpreadArgs((), "System")),
        PluginConfig("VolumeBinding", VolumeBindingArgs(600, None)),
    )


def test_args_that_are_given_come_first_and_in_their_order():
    profile = {"pluginConfig": [{"name": "VolumeBinding"}, {"name": "Mine"}, {"name": "Another"}]}

    (loaded,) = load(profiles=[profile]).profiles

    assert [entry.name for entry in loaded.plugin_config[:4]] == [
        "VolumeBinding",
        "Mine",
        "Another",
        "DefaultPreemption",
    ]


def test_a_plugin_that_is_not_enabled_gets_no_args():
    profile = {
        "plugins": {
            "multiPoint": {"disabled": [{"name": "*"}]},
            "score": {"enabled": [{"name": "InterPodAffinity"}]},
        }
    }

    (loaded,) = load(profiles=[profile]).profiles

    assert [entry.name for entry in loaded.plugin_config] == ["InterPodAffinity"]


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated"}},
            NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("MostAllocated", CPU_AND_MEMORY)),
            id="a strategy without resources",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu"}, {"name": "memory", "weight": 5}],
                }
            },
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    "MostAllocated", (ResourceSpec("cpu", 1), ResourceSpec("memory", 5))
                )
            ),
            id="resources without a weight",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "nvidia.com/gpu", "weight": 0}]},
            NodeResourcesBalancedAllocationArgs((ResourceSpec("nvidia.com/gpu", 1),)),
            id="a weight of zero",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": ""},
            PodTopologySpreadArgs((), "System"),
            id="an empty defaulting type",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "0s"},
            DynamicResourcesArgs(seconds(0), seconds(600)),
            id="a timeout of zero is kept",
        ),
    ],
)
def test_args_are_completed(plugin, args, expected):
    assert load_args(plugin, args) == expected


def test_args_that_belong_to_a_gate_follow_it():
    gates = parse_gates(
        "StorageCapacityScoring=true,DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false"
    )

    assert load_args("VolumeBinding", {"shape": []}, gates) == VolumeBindingArgs(
        600, (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    )
    assert load_args("DynamicResources", {}, gates) == DynamicResourcesArgs(None, None)


def test_a_configuration_made_in_python_is_completed_alike():
    made = KubeSchedulerConfiguration(
        profiles=(
            SchedulerProfile(
                "default-scheduler",
                plugins=Plugins(multi_point=PluginSet(enabled=(Plugin("NodeAffinity", 9),))),
                plugin_config=(PluginConfig("VolumeBinding"),),
            ),
        )
    )

    assert with_defaults(made, DEFAULT_GATES) == load(
        profiles=[
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}},
                "pluginConfig": [{"name": "VolumeBinding"}],
            }
        ]
    )
