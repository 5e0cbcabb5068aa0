"""The public names of the contract, and its version: changing them is a decision."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import mooring.plugin
from mooring.plugin import VERSION
from mooring.runtime.build import plugin_problems
from mooring.runtime.plugin_calls import METHODS
from tests.engine import registry_with
from tests.plugin.worlds import config_with

#: If a name is added here, raise the minor number of `VERSION`, unless it was raised since the last release;
#: if one is removed, the major number.
PUBLIC = {
    "mooring.plugin": """
        Action
        ApiError
        ApiWriter
        BindPlugin
        CLEAR_NOMINATION
        Change
        ClaimWriter
        Clock
        Clonable
        ClosePlugin
        ClusterEvent
        ClusterTrial
        ClusterView
        Code
        ColumnSpec
        Columns
        Conflict
        Counter
        CycleState
        DEFAULT_EVENTS
        Depends
        DependsPlugin
        DryRun
        EnqueueExtensions
        Event
        EventResource
        EventWithHint
        ExtenderError
        FedColumn
        FilterPlugin
        FilterRowsPlugin
        Gauge
        GroupPreemptionPlugin
        Handle
        Hint
        HintFunction
        Histogram
        Index
        Ints
        KindsPlugin
        Listers
        MAX_SCORE
        MIN_SCORE
        Mask
        Metric
        MooringError
        NodeColumn
        NodeInfo
        NodeStatuses
        NodeTrial
        Nomination
        NormalizePlugin
        NotFound
        ObservedPods
        OwnColumnHandle
        OwnColumnsPlugin
        PermitPlugin
        Plugin
        PluginError
        PluginFactory
        PluginFailure
        PluginMetrics
        PodInPreBind
        PodStatusPatch
        PodsColumn
        PostBindPlugin
        PostFilterPlugin
        PostFilterRepeatsPlugin
        PostFilterResult
        PreBindPlugin
        PreEnqueuePlugin
        PreFilterExtensions
        PreFilterPlugin
        PreFilterResult
        PreFlight
        PreScorePlugin
        PreemptionExtender
        PreemptionMetrics
        QueueSortPlugin
        QueuedPod
        Refusals
        ReservePlugin
        RowIndex
        RowVerdicts
        Rows
        RowsTrial
        SKIP
        SUCCESS
        ScorePlugin
        ScoreRowsPlugin
        ServerUnavailable
        SignPlugin
        Snapshot
        Status
        SuggestPlugin
        Suggestion
        Timer
        Unanswered
        VERSION
        Victims
        WaitingPod
        by_mask
        by_table
        failure
        on_add_or_update
        on_change
        on_delete
        on_update
        on_update_or_delete
        pending
        row_count
        sleep
        unresolvable
        unschedulable
        wait
    """,
    "mooring.plugin.args": """
        CPU_AND_MEMORY
        DefaultPreemptionArgs
        DynamicResourcesArgs
        InterPodAffinityArgs
        LEAST_ALLOCATED
        MOST_ALLOCATED
        NodeAffinityArgs
        NodeResourcesBalancedAllocationArgs
        NodeResourcesFitArgs
        PodTopologySpreadArgs
        REQUESTED_TO_CAPACITY_RATIO
        ResourceSpec
        SYSTEM_DEFAULTING
        ScoringStrategy
        UtilizationShapePoint
        VolumeBindingArgs
    """,
    "mooring.plugin.changes": """
        AddNodes
        Change
        DeclareFeatures
        DropHostPort
        DropNodeAffinity
        DropNodeSelector
        FreeRoom
        LabelNode
        LowerRequest
        RaiseMaxSkew
        RemoveGates
        SoftenPodAffinity
        SoftenSpread
        Tolerate
        Uncordon
        requirement_text
        taint_text
    """,
    "mooring.plugin.devices": """
        AllocatedDevices
        AllocationTimeout
        Allocator
        ClaimCache
        DEVICE_CLASS_PREFIX
        DeviceClassNames
        DeviceCounts
        NodeOnlyError
        PoolID
        UnknownClaimError
        after_steps_of
        double_booked
        is_counted
    """,
    "mooring.plugin.groups": """
        NoGroupError
        NormalizePlacementsPlugin
        Placement
        PlacementBoundsPlugin
        PlacementGeneratePlugin
        PlacementScorePlugin
        PodGroupAssignments
        PodGroupInfo
        PodGroupState
        PodGroupStates
    """,
    "mooring.plugin.nodes": """
        ABSENT
        Codes
        HostPort
        ImageState
        InternedColumn
        LabelColumn
        RequiredNodeAffinity
        StateAmounts
        match_rows
        match_rows_any
        matches_any
        rows_named
    """,
    "mooring.plugin.pods": """
        DeducedSelectors
        DomainCounts
        HeldTerm
        MOST_COUNTERS
        PodQuery
        RowCounts
        TermKind
        Terms
        TopologyIndex
        by_domain
        domains_among
        look_up
    """,
    "mooring.plugin.storage": """
        AssumeError
        VolumeCache
        sign_volumes
    """,
}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_are_these(module):
    found = importlib.import_module(module)
    names = getattr(found, "__all__", [name for name in vars(found) if name[0].isalpha()])

    assert sorted(names) == PUBLIC[module].split()
    assert all(hasattr(found, name) for name in names)


def test_every_module_of_the_contract_is_pinned():
    modules = {
        f"mooring.plugin.{each.name}" for each in pkgutil.iter_modules(mooring.plugin.__path__)
    }

    assert {"mooring.plugin", *modules} == set(PUBLIC)


def test_every_method_of_an_extension_point_is_described_by_a_protocol():
    protocols = [getattr(mooring.plugin, name) for name in mooring.plugin.__all__]
    groups = importlib.import_module("mooring.plugin.groups")
    protocols += [found for name, found in vars(groups).items() if name.endswith("Plugin")]
    described = {
        name
        for protocol in protocols
        if isinstance(protocol, type)
        for name in vars(protocol)
        if not name.startswith("_")
    }

    assert {method for methods in METHODS.values() for method in methods} <= described


class Plain:
    name = "Plain"

    def score(self, state, pod, node):
        return 1


@pytest.mark.parametrize(
    ("requires", "problem"),
    [
        pytest.param(VERSION, None, id="this one"),
        pytest.param((VERSION[0], 0), None, id="an earlier one"),
        pytest.param(
            (VERSION[0], VERSION[1] + 1),
            "plugin 'Needs' requires version 1.1 of mooring.plugin; this is 1.0",
            id="a later one",
        ),
        pytest.param(
            (VERSION[0] + 1, 0),
            "plugin 'Needs' requires version 2.0 of mooring.plugin; this is 1.0",
            id="another contract",
        ),
        pytest.param(
            "1.0", "plugin 'Needs': requires must be (major, minor), not '1.0'", id="no version"
        ),
    ],
)
def test_a_plugin_that_needs_another_version_is_refused(requires, problem):
    needs = type("Needs", (Plain,), {"name": "Needs", "requires": requires})

    found = plugin_problems(config_with("Needs"), registry_with({"Needs": needs}))

    assert found == ([] if problem is None else [problem])
