"""Feature gates of kube-scheduler 1.36.

Only the gates that a scheduler reads are here. Names, defaults, locks, dependencies and messages
are those of the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mooring.devices.features import DeviceFeatures
from mooring.errors import ConfigError

Stage = Literal["Alpha", "Beta", "GA"]


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    stage: Stage
    default: bool
    #: A locked gate can only have its default.
    locked: bool = False
    #: Gates that must be on if this one is.
    requires: tuple[str, ...] = ()


_DRA = ("DynamicResourceAllocation",)
_WORKLOAD = ("GenericWorkload",)

GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("ClearingNominatedNodeNameAfterBinding", "Beta", True),
        Gate("ComponentFlagz", "Beta", True),
        Gate("ComponentStatusz", "Beta", True),
        Gate("CoordinatedLeaderElection", "Beta", False),
        Gate("DRAAdminAccess", "GA", True, locked=True, requires=_DRA),
        Gate("DRAConsumableCapacity", "Beta", True, requires=_DRA),
        Gate(
            "DRADeviceBindingConditions",
            "Beta",
            True,
            requires=(*_DRA, "DRAResourceClaimDeviceStatus"),
        ),
        Gate("DRADeviceTaintRules", "Beta", False, requires=("DRADeviceTaints",)),
        Gate("DRADeviceTaints", "Beta", True, requires=_DRA),
        Gate("DRAExtendedResource", "Beta", True, requires=_DRA),
        Gate("DRAListTypeAttributes", "Alpha", False, requires=_DRA),
        Gate("DRANodeAllocatableResources", "Alpha", False, requires=_DRA),
        Gate("DRAPartitionableDevices", "Beta", True, requires=_DRA),
        Gate("DRAPrioritizedList", "GA", True, requires=_DRA),
        Gate("DRAResourceClaimDeviceStatus", "Beta", True),
        Gate("DRASchedulerFilterTimeout", "Beta", True, requires=_DRA),
        Gate("DRAWorkloadResourceClaims", "Alpha", False, requires=(*_DRA, *_WORKLOAD)),
        Gate("DynamicResourceAllocation", "GA", True, locked=True),
        Gate("GangScheduling", "Alpha", False, requires=_WORKLOAD),
        Gate("GenericWorkload", "Alpha", False),
        Gate(
            "InPlacePodLevelResourcesVerticalScaling",
            "Beta",
            True,
            requires=("InPlacePodVerticalScaling", "PodLevelResources", "NodeDeclaredFeatures"),
        ),
        Gate("InPlacePodVerticalScaling", "GA", True, locked=True),
        Gate("MatchLabelKeysInPodAffinity", "GA", True, locked=True),
        Gate("MatchLabelKeysInPodTopologySpread", "Beta", True),
        Gate(
            "MatchLabelKeysInPodTopologySpreadSelectorMerge",
            "Beta",
            True,
            requires=("MatchLabelKeysInPodTopologySpread",),
        ),
        Gate("NodeDeclaredFeatures", "Beta", True),
        Gate("NodeInclusionPolicyInPodTopologySpread", "GA", True, locked=True),
        Gate("NominatedNodeNameForExpectation", "Beta", True),
        Gate("OpportunisticBatching", "Beta", True),
        Gate("PodLevelResources", "Beta", True),
        Gate("PodSchedulingReadiness", "GA", True, locked=True),
        Gate("SchedulerAsyncAPICalls", "Beta", False),
        Gate("SchedulerAsyncPreemption", "Beta", True),
        Gate("SchedulerPopFromBackoffQ", "Beta", True),
        Gate("SchedulerQueueingHints", "GA", True, locked=True),
        Gate("SidecarContainers", "GA", True, locked=True),
        Gate("StorageCapacityScoring", "Alpha", False),
        Gate("TaintTolerationComparisonOperators", "Alpha", False),
        Gate("TopologyAwareWorkloadScheduling", "Alpha", False, requires=_WORKLOAD),
        Gate("VolumeAttributesClass", "GA", True, locked=True),
        Gate("VolumeLimitScaling", "Alpha", False),
        Gate("WorkloadAwarePreemption", "Alpha", False, requires=("GangScheduling",)),
        # The Job controller reads this one, whose part simulations play.
        Gate("WorkloadWithJob", "Alpha", False, requires=_WORKLOAD),
    )
}

#: Names that set every gate of a stage, except those set by name.
_WHOLE_STAGES: Mapping[str, Stage] = {"AllAlpha": "Alpha", "AllBeta": "Beta"}

#: The booleans of Go.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Which gates are on: the defaults, except for those that were set."""

    #: Gates set by name, and `AllAlpha` or `AllBeta`.
    settings: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = list(_wrong_settings(self.settings)) or list(self._missing_requirements())
        if problems:
            raise ConfigError(problems)

    def enabled(self, name: str) -> bool:
        """Whether the gate is on. Raises KeyError if there is no such gate."""
        gate = GATES[name]
        if name in self.settings:
            return self.settings[name]
        if not gate.locked:
            for whole, stage in _WHOLE_STAGES.items():
                if gate.stage == stage and whole in self.settings:
                    return self.settings[whole]
        return gate.default

    def _missing_requirements(self) -> Iterator[str]:
        for gate in GATES.values():
            missing = [name for name in sorted(gate.requires) if not self.enabled(name)]
            if missing and self.enabled(gate.name):
                yield (
                    f"{gate.name} is enabled, but depends on features that are disabled: "
                    f"[{' '.join(missing)}]"
                )


#: Gates that mooring reads, but whose features it has always on or always off.
_WITHOUT_EFFECT = ("DRANodeAllocatableResources",)


def gates_without_effect(gates: FeatureGates) -> list[str]:
    """A line for each gate of devices that was set to what mooring does not do."""
    return [
        f"the feature gate {name} has no effect: mooring decides as if it were"
        f" {'on' if GATES[name].default else 'off'}"
        for name in _WITHOUT_EFFECT
        if gates.enabled(name) != GATES[name].default
    ]


def binding_conditions_enabled(gates: FeatureGates) -> bool:
    """Whether PreBind waits for the binding conditions of devices: needs two gates."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )


def device_features(gates: FeatureGates) -> DeviceFeatures:
    return DeviceFeatures(
        partitionable_devices=gates.enabled("DRAPartitionableDevices"),
        device_taints=gates.enabled("DRADeviceTaints"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        binding_conditions=binding_conditions_enabled(gates),
        list_attributes=gates.enabled("DRAListTypeAttributes"),
    )


def parse_gates(text: str) -> FeatureGates:
    """Read `A=true,B=false`, the form of the `--feature-gates` flag."""
    settings: dict[str, bool] = {}
    problems: list[str] = []
    for pair in filter(None, text.split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            problems.append(f"missing bool value for {name}")
        elif value not in _BOOLEANS:
            problems.append(
                f"invalid value of {name}={value}, "
                f'err: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        else:
            settings[name] = _BOOLEANS[value]
    if problems:
        raise ConfigError(problems)
    return FeatureGates(settings)


def _wrong_settings(settings: Mapping[str, bool]) -> Iterator[str]:
    for name, value in settings.items():
        if name in _WHOLE_STAGES:
            continue
        gate = GATES.get(name)
        if gate is None:
            yield f"unrecognized feature gate: {name}"
        elif gate.locked and value != gate.default:
            yield (
                f"cannot set feature gate {name} to {str(value).lower()}, "
                f"feature is locked to {str(gate.default).lower()}"
            )


DEFAULT_GATES = FeatureGates()
