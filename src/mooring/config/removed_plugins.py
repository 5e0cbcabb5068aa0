"""Plugins that configurations name though kube-scheduler v1.36 does not have them: what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_FIT = "NodeResourcesFit with scoringStrategy.type: {} in its args"
_VOLUME_LIMITS = "NodeVolumeLimits, which counts these volumes by their CSI driver"

#: Plugin that was part of kube-scheduler → what replaced it.
REPLACED_BY: Mapping[str, str] = {
    "NodeResourcesLeastAllocated": _FIT.format("LeastAllocated"),
    "NodeResourcesMostAllocated": _FIT.format("MostAllocated"),
    "RequestedToCapacityRatio": _FIT.format("RequestedToCapacityRatio"),
    "NodeLabel": "NodeAffinity with addedAffinity in its args",
    "ServiceAffinity": "InterPodAffinity, with podAffinity in the pods",
    "NodePreferAvoidPods": "TaintToleration, with a PreferNoSchedule taint on the nodes",
    "SelectorSpread": "PodTopologySpread with defaultingType: System in its args",
    "DefaultPodTopologySpread": "PodTopologySpread with defaultingType: System in its args",
    "NodeVolumeLimitsCSI": "NodeVolumeLimits",
    "EBSLimits": _VOLUME_LIMITS,
    "GCEPDLimits": _VOLUME_LIMITS,
    "AzureDiskLimits": _VOLUME_LIMITS,
    "CinderLimits": _VOLUME_LIMITS,
}

#: Plugins that are known once the package `mooring-policies` is installed.
_IN_POLICIES = frozenset(
    (
        "CapacityScheduling",
        "Coscheduling",
        "LoadVariationRiskBalancing",
        "LowRiskOverCommitment",
        "NetworkOverhead",
        "NodeResourceTopologyMatch",
        "Peaks",
        "TargetLoadPacking",
        "TopologicalSort",
    )
)

#: Plugins of other projects that people run.
_FOREIGN: Mapping[str, frozenset[str]] = {
    "kubernetes-sigs/scheduler-plugins": frozenset(
        (
            "CrossNodePreemption",
            "Disk",
            "NodeMetadata",
            "NodeResourcesAllocatable",
            "PodState",
            "PreemptionToleration",
            "QOSSort",
            "SySched",
        )
    ),
    "koordinator-sh/koordinator": frozenset(
        ("DeviceShare", "ElasticQuota", "LoadAwareScheduling", "NodeNUMAResource", "Reservation")
    ),
}


def why_unknown(name: str) -> str:
    """What became of the plugin or where it comes from, and what to do; "" for other names."""
    if name in REPLACED_BY:
        return f"it was removed from kube-scheduler; use {REPLACED_BY[name]}"
    if name in _IN_POLICIES:
        return (
            "it is in the package mooring-policies, which is not installed: pip install ./policies"
        )
    for project, names in _FOREIGN.items():
        if name in names:
            return (
                f"it is a plugin of {project}, written in Go; leave it out with"
                " --ignore-unknown-plugins for an approximate answer, or write it in Python"
            )
    return ""
