"""An entry of the queue."""

from __future__ import annotations

from mooring.queue.queued_pod import QueuedPodInfo
from tests.makers import make_pod
from tests.queue.world import NODE_ADD


def test_an_entry_is_rejected_if_any_plugin_rejected_it_pending_ones_included():
    queued = QueuedPodInfo(make_pod("p", namespace="ns", uid="1"), 0)
    assert (queued.key, queued.uid) == ("ns/p", "1")
    assert not queued.rejected

    queued.pending_plugins = {"A"}
    assert queued.rejected
    queued.unschedulable_plugins = {"B"}
    assert queued.rejectors == {"A", "B"}


def test_an_entry_can_forget_why_its_last_attempt_failed():
    queued = QueuedPodInfo(
        make_pod(),
        0,
        unschedulable_plugins={"A"},
        pending_plugins={"B"},
        gating_plugin="C",
        gating_plugin_events=(NODE_ADD,),
    )
    assert queued.gated

    queued.clear_rejectors()

    assert not queued.rejected
    assert not queued.gated
    assert queued.gating_plugin_events == ()
