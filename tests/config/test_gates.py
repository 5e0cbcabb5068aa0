from __future__ import annotations

import pytest

from mooring.config import DEFAULT_GATES, FeatureGates, parse_gates
from mooring.config.gates import GATES
from mooring.errors import ConfigError

OFF_BY_DEFAULT = {
    "CoordinatedLeaderElection",
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAWorkloadResourceClaims",
    "GangScheduling",
    "GenericWorkload",
    "SchedulerAsyncAPICalls",
    "StorageCapacityScoring",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
    "VolumeLimitScaling",
    "WorkloadAwarePreemption",
    "WorkloadWithJob",
}


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        parse_gates(text)
    return list(refusal.value.problems)


def test_the_gates_of_1_36_are_at_their_defaults_unless_set():
    assert {name for name in GATES if not DEFAULT_GATES.enabled(name)} == OFF_BY_DEFAULT
    assert parse_gates("") == DEFAULT_GATES


def test_a_gate_is_set_by_name():
    gates = parse_gates("StorageCapacityScoring=true, OpportunisticBatching = F")

    assert gates.enabled("StorageCapacityScoring")
    assert not gates.enabled("OpportunisticBatching")


def test_a_whole_stage_is_set_at_once_but_for_what_is_set_by_name():
    gates = parse_gates("AllAlpha=true,VolumeLimitScaling=false")

    assert gates.enabled("GangScheduling")
    assert not gates.enabled("VolumeLimitScaling")
    assert not gates.enabled("SchedulerAsyncAPICalls")


def test_locked_gates_may_be_set_to_what_they_are():
    assert parse_gates("DynamicResourceAllocation=true").enabled("DynamicResourceAllocation")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Teleport=true", ["unrecognized feature gate: Teleport"]),
        ("GangScheduling", ["missing bool value for GangScheduling"]),
        (
            "GangScheduling=maybe",
            [
                "invalid value of GangScheduling=maybe, "
                'err: strconv.ParseBool: parsing "maybe": invalid syntax'
            ],
        ),
        (
            "SchedulerQueueingHints=false",
            ["cannot set feature gate SchedulerQueueingHints to false, feature is locked to true"],
        ),
        (
            "GangScheduling=true",
            [
                "GangScheduling is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"
            ],
        ),
        (
            "DRAResourceClaimDeviceStatus=false",
            [
                "DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
                "[DRAResourceClaimDeviceStatus]"
            ],
        ),
    ],
)
def test_what_the_reference_would_not_start_with_is_refused_in_its_words(text, expected):
    assert problems(text) == expected


def test_a_name_that_is_no_gate_cannot_be_asked_for():
    with pytest.raises(KeyError):
        FeatureGates().enabled("Teleport")
