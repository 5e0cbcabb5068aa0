"""Queueing hints are declared for a kind, and get objects of this kind."""

from __future__ import annotations

import pytest

from mooring.framework.events import resource_of
from mooring.objects.kinds import KINDS, Service
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    Action,
    ClusterEvent,
    EventResource,
    Hint,
    PluginError,
    on_add_or_update,
    on_change,
    on_delete,
    on_update,
    on_update_or_delete,
)


def _hint(pod, old, new):
    return Hint.QUEUE


@pytest.mark.parametrize(
    ("declared", "event"),
    [
        pytest.param(
            on_add_or_update(Node, Action.ADD | Action.UPDATE_NODE_LABEL, _hint),
            ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            id="on_add_or_update",
        ),
        pytest.param(
            on_update(Pod, Action.UPDATE_POD_LABEL, _hint),
            ClusterEvent(EventResource.POD, Action.UPDATE_POD_LABEL),
            id="on_update",
        ),
        pytest.param(
            on_update_or_delete(Pod, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, _hint),
            ClusterEvent(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
            id="on_update_or_delete",
        ),
        pytest.param(
            on_delete(Pod, _hint), ClusterEvent(EventResource.POD, Action.DELETE), id="on_delete"
        ),
        pytest.param(
            on_change(Node, Action.ALL, _hint),
            ClusterEvent(EventResource.NODE, Action.ALL),
            id="on_change",
        ),
    ],
)
def test_a_hint_is_registered_for_the_events_of_its_kind(declared, event):
    assert (declared.event, declared.hint) == (event, _hint)


def test_without_a_hint_every_such_event_counts():
    assert on_change(Node, Action.ADD).hint is None


def test_every_kind_with_events_has_a_resource():
    assert {kind.name for kind in KINDS if kind.events} == {
        resource_of(kind.struct).rpartition("/")[2] for kind in KINDS if kind.events
    }


@pytest.mark.parametrize(
    "declare",
    [
        pytest.param(lambda: on_add_or_update(Node, Action.DELETE, _hint), id="deletions"),
        pytest.param(lambda: on_update(Node, Action.ADD, _hint), id="additions"),
        pytest.param(lambda: on_update_or_delete(Node, Action.ALL, _hint), id="all"),
    ],
)
def test_actions_for_which_an_object_would_be_missing_are_refused(declare):
    with pytest.raises(PluginError, match="use on_change"):
        declare()


def test_a_kind_without_events_is_refused_with_the_kinds_that_have_some():
    with pytest.raises(PluginError, match="no events of Service; choose one of CSIDriver, "):
        on_change(Service, Action.ADD)
