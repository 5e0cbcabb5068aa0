"""Which class serves an extended resource, with the traps of the reference."""

from __future__ import annotations

from datetime import UTC, datetime

from mooring.cluster.cache import Cluster
from tests.device_world import GPU, gpu_class

OLD, NEW = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "deviceclass.resource.kubernetes.io/"


def serving(cluster: Cluster, resource: str = GPU) -> str | None:
    found = cluster.device_classes.get(resource)
    return None if found is None else found.name


def cluster_of(*classes) -> Cluster:
    cluster = Cluster()
    for each in classes:
        cluster.listers.put(each)
    cluster.validate()
    return cluster


def test_a_class_serves_the_resource_it_names_and_one_named_after_it():
    cluster = cluster_of(gpu_class("a", resource=GPU), gpu_class("b"))

    assert serving(cluster) == "a"
    assert serving(cluster, PREFIX + "a") == "a"
    assert serving(cluster, PREFIX + "b") == "b"
    assert serving(cluster, "example.com/other") is None


def test_of_two_classes_with_one_name_the_newer_serves_it_then_the_first_by_name():
    old = gpu_class("a", resource=GPU, creation_timestamp=OLD)
    new = gpu_class("b", resource=GPU, creation_timestamp=NEW)
    assert serving(cluster_of(old, new)) == serving(cluster_of(new, old)) == "b"

    twin = gpu_class("c", resource=GPU, creation_timestamp=NEW)
    assert serving(cluster_of(new, twin)) == serving(cluster_of(twin, new)) == "b"


def test_a_class_that_loses_its_name_serves_nothing_at_all():
    loser = gpu_class("a", resource=GPU, creation_timestamp=OLD)
    cluster = cluster_of(gpu_class("b", resource=GPU, creation_timestamp=NEW), loser)

    assert serving(cluster, PREFIX + "a") is None


def test_deleting_the_winner_does_not_help_the_loser():
    winner = gpu_class("b", resource=GPU, creation_timestamp=NEW)
    cluster = cluster_of(winner, gpu_class("a", resource=GPU, creation_timestamp=OLD))

    cluster.listers.drop(winner)

    cluster.validate()
    assert serving(cluster) is None


def test_an_update_that_keeps_the_name_leaves_the_earlier_version_and_another_name_moves_it():
    first = gpu_class("a", resource=GPU)
    cluster = cluster_of(first)

    cluster.listers.put(gpu_class("a", resource=GPU, labels={"x": "y"}))
    assert cluster.device_classes.get(GPU) is first

    cluster.listers.put(gpu_class("a", resource="example.com/other"))
    cluster.validate()
    assert serving(cluster) is None
    assert serving(cluster, "example.com/other") == "a"
