"""A kind is described once: whatever else knows kinds has what its row says, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mooring.cluster.listers import LISTED
from mooring.config import FeatureGates, default_config, load_config
from mooring.framework.events import (
    DEFAULT_EVENTS,
    Action,
    ClusterEvent,
    EventResource,
    EventWithHint,
)
from mooring.live.resources import kinds_to_watch
from mooring.live.snapshot import NEEDED
from mooring.objects.decoding import decode_object
from mooring.objects.kinds import CLUSTER_SCOPED, KIND_OF, KINDS, Kind
from mooring.objects.meta import KubeObject
from mooring.objects.validation import problems_of
from mooring.sim.scenarios.fields import FieldError
from mooring.sim.scenarios.references import parse_reference
from tests.engine import Engine

RBAC = Path(__file__).parents[2] / "deploy" / "base" / "rbac.yaml"

#: What the writer does with pods, claims of devices and Events, which no other kind has done to it.
OTHER_WRITES = {
    ("", "pods", "get"),
    ("", "pods", "delete"),
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    *(("resource.k8s.io", "resourceclaims", verb) for verb in ("create", "delete", "get", "patch")),
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    ("resource.k8s.io", "resourceclaims/status", "patch"),
    ("scheduling.k8s.io", "podgroups/status", "patch"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
}

#: Events that are not of one kind, and those of kinds that mooring does not read.
OTHER_RESOURCES = {
    EventResource.ASSIGNED_POD,
    EventResource.UNSCHEDULABLE_POD,
    EventResource.WILDCARD,
}

#: What every profile must have, and a plugin that hears of something.
PLUGINS = ("PrioritySort", "DefaultBinder", "Hears")

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def watched_for(resource: EventResource) -> list[Kind]:
    """What a scheduler watches whose only plugin with events registers for one resource."""

    class Hears:
        def filter(self, state, pod, node):
            return None

        def events_to_register(self):
            return [EventWithHint(ClusterEvent(resource, Action.ALL))]

    plugins = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in PLUGINS]}
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": plugins}}],
        }
    )
    engine = Engine(config=config, plugins={"Hears": Hears})
    return kinds_to_watch(engine.scheduler)


def test_every_object_that_can_be_decoded_has_one_row():
    structs = [
        each
        for each in KubeObject.__subclasses__()
        if each.__module__.startswith("mooring.objects")
    ]

    assert sorted(map(repr, structs)) == sorted(repr(kind.struct) for kind in KINDS)


@pytest.mark.parametrize(
    "names",
    [
        [(kind.group, kind.name) for kind in KINDS],
        [(kind.group, kind.plural) for kind in KINDS],
        [kind.short for kind in KINDS if kind.short],
    ],
)
def test_no_two_kinds_have_the_same_name(names):
    assert len(names) == len(set(names))


@each_kind
def test_objects_of_a_kind_are_read_and_validated(kind: Kind):
    raw = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "Not-A-Name"}}

    obj = decode_object(raw)

    assert type(obj) is kind.struct
    assert KIND_OF[type(obj)] is kind
    assert "metadata.name" in dict(problems_of(obj))


@each_kind
def test_a_scenario_names_a_kind_as_kubectl_does_and_knows_its_scope(kind: Kind):
    for name in filter(None, (kind.name, kind.name.lower(), kind.plural, kind.short)):
        reference = parse_reference(f"{name}/x")

        assert reference.kind is kind.struct
        assert reference.key == ("default/x" if kind.namespaced else "x")
    if not kind.namespaced:
        with pytest.raises(FieldError, match="has no namespace"):
            parse_reference(f"{kind.plural}/ns/x")
    assert (kind.name in CLUSTER_SCOPED) != kind.namespaced


@each_kind
def test_a_kind_has_a_path_in_the_api(kind: Kind):
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"

    assert kind.path == f"{root}/{kind.plural}"
    assert kind.path_of("", "x") == f"{root}/{kind.plural}/x"
    assert kind.path_of("ns", "x") == f"{root}/namespaces/ns/{kind.plural}/x"


@each_kind
def test_what_the_scheduler_keeps_watches_and_hears_of_follows_from_the_row(kind: Kind):
    """That events reach the queue, kind by kind, is tested with the event handlers."""
    assert (kind.struct in LISTED) == kind.listed
    assert (kind in NEEDED) == (kind.listed or kind.always_watched or kind.admits)
    watched = kind.always_watched or (kind.events and not kind.gate)
    assert (kind in watched_for(EventResource.WILDCARD)) == watched
    assert (kind.event_resource in list(EventResource)) == kind.events


@pytest.mark.parametrize(
    "heard", [kind for kind in KINDS if kind.events and not kind.gate], ids=lambda kind: kind.name
)
def test_beside_what_is_always_watched_only_what_a_plugin_registered_for_is(heard: Kind):
    watched = watched_for(EventResource(heard.event_resource))

    assert watched == [kind for kind in KINDS if kind.always_watched or kind is heard]


def test_a_kind_behind_a_gate_is_watched_if_the_gate_is_on():
    gated = [kind for kind in KINDS if kind.gate and kind.listed]
    gates = FeatureGates({kind.gate: True for kind in gated})

    off = kinds_to_watch(Engine().scheduler)
    on = kinds_to_watch(Engine(config=default_config(gates)).scheduler)

    assert gated
    assert [kind for kind in on if kind not in off] == gated


def test_every_resource_of_events_is_a_kind_or_a_known_exception():
    of_kinds = {EventResource(kind.event_resource) for kind in KINDS if kind.events}

    assert of_kinds | OTHER_RESOURCES == set(EventResource)
    assert not of_kinds & OTHER_RESOURCES


def test_a_plugin_that_registers_nothing_hears_of_what_the_reference_lists():
    assert [str(event.resource) for event in DEFAULT_EVENTS] == [
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "storage.k8s.io/CSINode",
        "storage.k8s.io/CSIDriver",
        "storage.k8s.io/CSIStorageCapacity",
        "storage.k8s.io/StorageClass",
        "resource.k8s.io/ResourceClaim",
        "resource.k8s.io/DeviceClass",
    ]


def test_the_role_grants_the_verbs_that_the_kinds_need_and_no_others():
    role = next(
        each for each in yaml.safe_load_all(RBAC.read_text()) if each["kind"] == "ClusterRole"
    )

    granted = [
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]

    assert len(granted) == len(set(granted)), "a right is granted twice"
    assert set(granted) == OTHER_WRITES | {
        (kind.group, kind.plural, verb) for kind in KINDS for verb in verbs(kind)
    }


def verbs(kind: Kind) -> set[str]:
    needed = {
        # What admission reads is part of snapshots.
        "list": kind.listed or kind.always_watched or kind.admits,
        # With its gate on, a listed kind is watched.
        "watch": kind.always_watched or kind.events or (kind.gate and kind.listed),
        "patch": kind.writable,
    }
    return {verb for verb, wanted in needed.items() if wanted}
