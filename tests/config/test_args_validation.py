from __future__ import annotations

import pytest

from mooring.config import DEFAULT_GATES, parse_gates
from mooring.config import args_problems as problems_below
from mooring.config.args import NodeResourcesFitArgs, ScoringStrategy
from tests.config.documents import args_problems, load, load_args, problems

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SORTED_SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def strategy(kind: str = "LeastAllocated", **fields: object) -> dict[str, object]:
    return {"scoringStrategy": {"type": kind, **fields}}


def ratio(*points: tuple[int, int]) -> dict[str, object]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def spread(**changes: object) -> dict[str, object]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": "List", "defaultConstraints": [{**constraint, **changes}]}


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": -1, "minCandidateNodesAbsolute": -1},
            [
                "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "minCandidateNodesPercentage: Invalid value: 0: "
                "cannot be zero at the same time as minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: "
                "cannot be zero at the same time as minCandidateNodesPercentage",
            ],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": -1},
            ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "memory", "weight": 2}, {"name": "cpu"}]},
            [
                "resources[1].weight: Invalid value: 2: must be 1",
                'resources[2].name: Duplicate value: "cpu"',
            ],
        ),
        (
            "NodeResourcesFit",
            strategy("Tightest"),
            [
                'scoringStrategy.type: Unsupported value: "Tightest": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
            [
                'scoringStrategy.type: Unsupported value: "": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ],
        ),
        (
            "NodeResourcesFit",
            strategy(resources=[{"name": "cpu", "weight": 101}, {"name": "memory", "weight": -1}]),
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of cpu not in valid range (0, 100]",
                "scoringStrategy.resources[1].weight: Invalid value: -1: "
                "resource weight of memory not in valid range (0, 100]",
            ],
        ),
        (
            "NodeResourcesFit",
            strategy("RequestedToCapacityRatio"),
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ],
        ),
        (
            "NodeResourcesFit",
            strategy("MostAllocated", requestedToCapacityRatio={}),
            [
                "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ],
        ),
        (
            "NodeResourcesFit",
            ratio(),
            [
                "scoringStrategy.requestedToCapacityRatio.shape: Required value: "
                "at least one point must be specified"
            ],
        ),
        (
            "NodeResourcesFit",
            ratio((50, 1), (50, 2), (40, 3)),
            [
                "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: "
                "Invalid value: 50: values must be sorted in increasing order"
            ],
        ),
        (
            "NodeResourcesFit",
            ratio((-1, -1), (101, 11)),
            [
                "scoringStrategy.requestedToCapacityRatio.shape[0].utilization: "
                "Invalid value: -1: not in valid range [0, 100]",
                "scoringStrategy.requestedToCapacityRatio.shape[0].score: "
                "Invalid value: -1: not in valid range [0, 10]",
                "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: "
                "Invalid value: 101: not in valid range [0, 100]",
                "scoringStrategy.requestedToCapacityRatio.shape[1].score: "
                "Invalid value: 11: not in valid range [0, 10]",
            ],
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["example.com/fpga", "no good"]},
            [f'ignoredResources[1]: Invalid value: "no good": name part {NAME_RULE}'],
        ),
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["example.com", "example.com/fpga"]},
            [
                'ignoredResourceGroups[1]: Invalid value: "example.com/fpga": '
                "resource group name can't contain '/'"
            ],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "Custom"},
            ['defaultingType: Unsupported value: "Custom": supported values: "System", "List"'],
        ),
        (
            "PodTopologySpread",
            {**spread(), "defaultingType": "System"},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            "PodTopologySpread",
            spread(maxSkew=0),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            spread(topologyKey=""),
            ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(topologyKey="no good"),
            [f'defaultConstraints[0].topologyKey: Invalid value: "no good": name part {NAME_RULE}'],
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable=""),
            ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable="Hope"),
            [
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Hope": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"'
            ],
        ),
        (
            "PodTopologySpread",
            spread(labelSelector={"matchLabels": {"a": "b"}}),
            [
                "defaultConstraints[0].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod"
            ],
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
                    {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                ],
            },
            ['defaultConstraints[2]: Duplicate value: "{zone, DoNotSchedule}"'],
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            [
                "bindTimeoutSeconds: Invalid value: -1: "
                "invalid BindTimeoutSeconds, should not be a negative value"
            ],
        ),
        (
            "VolumeBinding",
            {"shape": [{"utilization": 5, "score": 6}]},
            [
                'shape: Invalid value: [{"Utilization":5,"Score":6}]: unexpected field `shape`, '
                "remove it or turn on the feature gate StorageCapacityScoring"
            ],
        ),
        (
            "DynamicResources",
            {"filterTimeout": "-1ns", "bindingTimeout": "999ms"},
            [
                'filterTimeout: Invalid value: "-1ns": must be zero or positive',
                'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
        ),
    ],
)
def test_args_that_cannot_be_used_are_refused_in_the_words_of_the_reference(plugin, args, expected):
    assert args_problems(plugin, args) == expected


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 100}),
        ("NodeResourcesFit", strategy(resources=[{"name": "cpu", "weight": 100}])),
        ("NodeResourcesFit", ratio((0, 0), (100, 10))),
        ("NodeResourcesFit", ratio((70, 5))),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": []}),
        ("PodTopologySpread", spread()),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}),
        ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1s"}),
    ],
)
def test_args_at_the_end_of_their_range_are_accepted(plugin, args):
    assert load_args(plugin, args) is not None


def test_a_field_whose_gate_is_off_is_refused():
    gates = parse_gates("DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false")
    args = {"filterTimeout": "1s", "bindingTimeout": "1s"}

    assert args_problems("DynamicResources", args, gates) == [
        "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
        "bindingTimeout: Forbidden: "
        "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
    ]


def test_the_shape_of_volume_scoring_is_checked_once_its_gate_is_on():
    gates = parse_gates("StorageCapacityScoring=true")

    assert load_args("VolumeBinding", {"shape": SORTED_SHAPE}, gates).shape is not None
    assert args_problems("VolumeBinding", {"shape": SORTED_SHAPE[::-1]}, gates) == [
        "shape[1].utilization: Invalid value: 0: values must be sorted in increasing order"
    ]


def test_the_args_of_the_fit_plugin_are_only_looked_at_where_it_is_enabled():
    profile = {
        "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": strategy("Tightest")}],
    }
    load(profiles=[profile])

    enabled_again = {**profile["plugins"], "score": {"enabled": [{"name": "NodeResourcesFit"}]}}
    assert len(problems(profiles=[{**profile, "plugins": enabled_again}])) == 1


def test_ignored_resources_that_an_extender_replaces_are_not_looked_at():
    profile = {
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["no good"]}}]
    }
    managed = [{"name": "example.com/a", "ignoredByScheduler": True}]

    load(profiles=[profile], extenders=[{"managedResources": managed}])


def test_a_plugin_can_check_its_args_by_themselves():
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("Tightest"))

    (problem,) = problems_below(args, "", DEFAULT_GATES)

    assert problem.startswith('scoringStrategy.type: Unsupported value: "Tightest"')
