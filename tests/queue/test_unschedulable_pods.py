"""The pods that wait for an event, grouped by their rejection."""

from __future__ import annotations

import pytest

from mooring.errors import InvariantError
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.unschedulable_pods import UnschedulablePods
from tests.makers import make_pod


def rejected(name: str, *plugins: str, gate: str = "", scheduler: str = "") -> QueuedPodInfo:
    queued = QueuedPodInfo(make_pod(name, scheduler=scheduler), 0, gating_plugin=gate)
    queued.unschedulable_plugins = {*plugins, *([gate] if gate else [])}
    return queued


def names(pods) -> list[str]:
    return [queued.pod.name for queued in pods]


def test_pods_are_listed_in_order_of_arrival_whatever_rejected_them():
    pods = UnschedulablePods()
    for queued in (rejected("a", "A"), rejected("b", "B"), rejected("c", "A")):
        assert pods.put(queued)

    assert names(pods) == ["a", "b", "c"]
    assert len(pods) == 3


def test_pods_are_found_by_what_rejected_them():
    pods = UnschedulablePods()
    a, ab = rejected("a", "A"), rejected("ab", "A", scheduler="other")
    ab.pending_plugins = {"B"}
    for queued in (a, ab, rejected("g", gate="G")):
        pods.put(queued)

    assert names(pods.where(lambda rejection: "A" in rejection.rejectors)) == ["a", "ab"]
    assert names(pods.where(lambda rejection: "B" in rejection.rejectors)) == ["ab"]
    assert names(pods.where(lambda rejection: rejection.profile == "other")) == ["ab"]
    assert names(pods.where(lambda rejection: rejection.gated)) == ["g"]


def test_a_pod_that_is_put_in_again_is_filed_afresh_and_keeps_its_turn():
    pods = UnschedulablePods()
    a = rejected("a", "A")
    pods.put(a)
    pods.put(rejected("b", "A"))

    a.unschedulable_plugins.add("B")
    assert not pods.put(a)

    pods.validate()
    assert names(pods) == ["a", "b"]
    assert names(pods.where(lambda rejection: "B" in rejection.rejectors)) == ["a"]


def test_a_pod_whose_rejectors_changed_while_it_was_filed_can_still_be_taken_out():
    pods = UnschedulablePods()
    a = rejected("a", "A")
    pods.put(a)

    a.unschedulable_plugins.add("B")

    assert pods.get("default/a") is a
    assert pods.remove("default/a") is a
    assert len(pods) == 0
    assert "default/a" not in pods
    assert pods.remove("default/a") is None
    pods.validate()


def test_gated_pods_are_counted():
    pods = UnschedulablePods()
    gated = rejected("g", gate="G")
    for queued in (gated, rejected("h", "A", gate="H"), rejected("a", "A")):
        pods.put(queued)
    assert pods.gated_count == 2

    gated.gating_plugin = ""
    pods.put(gated)

    assert pods.gated_count == 1


def test_a_pod_filed_under_what_did_not_reject_it_is_found_out():
    pods = UnschedulablePods()
    a = rejected("a", "A")
    pods.put(a)

    a.unschedulable_plugins.add("B")

    with pytest.raises(InvariantError, match="default/a"):
        pods.validate()
