"""Plugins say what would help; counterfactuals try it, whoever suggests it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from msgspec.structs import replace

from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.what_if import WhatIf
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Change,
    CycleState,
    NodeInfo,
    Refusals,
    Status,
    Suggestion,
    unschedulable,
)
from mooring.plugin.changes import LowerRequest
from mooring.plugins.registry import BUILT_IN
from mooring.sim.simulation import SimOptions
from tests.engine import registry_with
from tests.makers import make_node, make_pod
from tests.plugin.worlds import config_with

UNLICENSED = unschedulable("node(s) had too few licences")


@dataclass(frozen=True, slots=True)
class BuyLicences(Change):
    """Give a node more licences."""

    kind: ClassVar[str] = "buy-licences"
    node: str
    count: int

    @property
    def size(self) -> float:
        return 0.01 * self.count

    @property
    def text(self) -> str:
        return f"buy {self.count} licences for node {self.node}"

    @property
    def node_name(self) -> str:
        return self.node

    def on_node(self, node: Node) -> Node:
        annotations = {**node.metadata.annotations, "licences": str(self.count)}
        return replace(node, metadata=replace(node.metadata, annotations=annotations))


class Licences:
    """A node has as many licences as an annotation says; a pod needs seven."""

    name = "Licences"
    asked: ClassVar[list[Refusals]] = []

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert node.node is not None
        has = int(node.node.metadata.annotations.get("licences", "0"))
        return SUCCESS if has >= 7 else UNLICENSED

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        self.asked.append(refusals)
        for name in refusals.nodes:
            yield Suggestion(lambda step, name=name: BuyLicences(name, 100 - step), 100)


class Eager(Licences):
    """Suggests licences for nodes that others refuse, too."""

    name = "Eager"

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        every = tuple(node.name for node in refusals.snapshot)
        return super().suggest(pod, Refusals(refusals.snapshot, every))


class Broken(Licences):
    name = "Broken"

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        yield from super().suggest(pod, refusals)
        raise RuntimeError("no idea")


def _find(plugin: type, *objects: KubeObject) -> Counterfactuals:
    name = plugin.__name__
    options = SimOptions(config=config_with(name), registry=registry_with({name: plugin}))
    what_if = WhatIf.as_read(objects, options)
    try:
        return find_counterfactuals(what_if, "default/wants", budget_s=60)
    finally:
        what_if.close()


def test_the_smallest_change_that_a_plugin_of_somebody_else_suggests_is_found():
    found = _find(Licences, make_node("a"), make_node("b"), make_pod("wants"))

    assert [(each.changes, each.node) for each in found] == [
        ((BuyLicences("a", 7),), "a"),
        ((BuyLicences("b", 7),), "b"),
    ]
    assert found.to_data()["answers"][0]["changes"][0]["kind"] == "buy-licences"


def test_a_plugin_is_told_where_it_refuses_the_pod_and_where_nobody_else_does():
    Licences.asked.clear()
    _find(Licences, make_node("a", cpu=1), make_node("b", cpu=4), make_pod("wants", cpu=2))

    (refusals,) = Licences.asked
    # It was not asked about the node that is too small.
    assert (refusals.nodes, refusals.alone) == (("b",), ("b",))
    assert sorted(node.name for node in refusals.snapshot) == ["a", "b"]


def test_changes_of_two_plugins_are_combined_if_none_helps_alone():
    found = _find(Eager, make_node("a", cpu=1), make_pod("wants", cpu=2))

    pairs = [each.changes for each in found]
    assert (LowerRequest("cpu", 2000, 1000), BuyLicences("a", 7)) in pairs
    assert all(len(pair) == 2 for pair in pairs)


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(Suggestion.fixed(BuyLicences("nowhere", 7)), id="a node that is not there"),
        pytest.param(BuyLicences("a", 7), id="a change that is no suggestion"),
        pytest.param(Suggestion(lambda step: None), id="no change"),
        pytest.param(None, id="nothing"),
    ],
)
def test_a_suggestion_that_cannot_be_tried_is_left_out(nonsense, caplog):
    class Confused(Licences):
        name = "Confused"

        def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
            return iter([nonsense])

    found = _find(Confused, make_node("a"), make_pod("wants"))

    assert not found.answers
    assert "plugin Confused cannot suggest changes" in caplog.text


def test_a_plugin_that_fails_does_not_keep_others_from_suggesting(caplog):
    found = _find(Broken, make_node("a"), make_pod("wants", cpu=1))

    assert [each.changes for each in found] == [(BuyLicences("a", 7),)]
    assert "plugin Broken cannot suggest changes for pod default/wants: " in caplog.text
    assert "Traceback" not in caplog.text


def test_every_change_that_was_proposed_by_name_is_suggested_by_a_plugin():
    suggesting = {name for name, factory in BUILT_IN.items() if hasattr(factory, "suggest")}

    assert suggesting == {
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "SchedulingGates",
        "TaintToleration",
        "VolumeBinding",
    }
