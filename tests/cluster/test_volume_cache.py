import pytest

from mooring.cluster.listers import Listers
from mooring.cluster.volume_cache import AssumeError, VolumeCache
from mooring.objects.claims import CLASS_ANNOTATION
from tests.volume_world import make_claim, make_volume, with_annotations, with_version

NOTE = {"decided": "yes"}


def make_cache(*objects):
    listers = Listers()
    cache = VolumeCache(listers)
    for obj in objects:
        listers.put(obj)
    return listers, cache


def decided(obj):
    return with_annotations(obj, NOTE)


def test_what_is_assumed_lies_over_what_was_observed():
    volume, claim = make_volume("v"), make_claim("c")
    _, cache = make_cache(volume, claim)

    cache.volumes.assume(decided(volume))
    cache.claims.assume(decided(claim))

    assert cache.volumes.get("v") == decided(volume)
    assert cache.claims.get("ns/c") == decided(claim)
    assert cache.volumes.observed("v") is volume
    assert cache.volumes_of_class("wait") == [decided(volume)]


def test_an_object_that_is_not_there_cannot_be_had():
    _, cache = make_cache()

    assert cache.volumes.get("v") is None
    assert cache.claims.observed("ns/c") is None


@pytest.mark.parametrize(
    ("obj", "kind", "problem"),
    [
        (make_volume("b"), "volumes", 'persistentvolumes "b" not found'),
        (make_claim("c"), "claims", 'persistentvolumeclaims "ns/c" not found'),
    ],
)
def test_an_object_that_is_not_there_cannot_be_assumed(obj, kind, problem):
    _, cache = make_cache()

    with pytest.raises(AssumeError) as failed:
        getattr(cache, kind).assume(obj)

    assert str(failed.value) == problem


def test_a_decision_about_another_version_is_out_of_sync():
    _, cache = make_cache(make_volume("b", version="2"))

    with pytest.raises(AssumeError) as failed:
        cache.volumes.assume(make_volume("b", version="1"))

    assert str(failed.value) == '"b" is out of sync (stored: 2, assume: 1)'
    assert cache.volumes.get("b").metadata.resource_version == "2"


def test_the_watch_ends_an_assumption_by_another_version():
    volume = make_volume("v")
    listers, cache = make_cache(volume)
    cache.volumes.assume(decided(volume))

    listers.put(with_version(volume, "2"))
    assert cache.volumes.get("v") == with_version(volume, "2")

    # Not even a version that comes back brings it back.
    listers.put(volume)
    assert cache.volumes.get("v") is volume


def test_the_watch_ends_an_assumption_by_deletion():
    volume = make_volume("v")
    listers, cache = make_cache(volume)
    cache.volumes.assume(decided(volume))

    listers.drop(volume)
    assert cache.volumes.get("v") is None

    listers.put(volume)
    assert cache.volumes.get("v") is volume


def test_the_same_version_shown_again_keeps_the_assumption():
    volume = make_volume("v")
    listers, cache = make_cache(volume)
    cache.volumes.assume(decided(volume))

    listers.put(make_volume("v"))

    assert cache.volumes.get("v") == decided(volume)


def test_an_assumption_is_taken_back_by_its_version_only():
    volume = make_volume("v")
    _, cache = make_cache(volume)
    cache.volumes.assume(decided(volume))

    cache.volumes.restore(with_version(volume, "2"))
    assert cache.volumes.get("v") == decided(volume)

    cache.volumes.restore(volume)
    cache.volumes.restore(volume)
    assert cache.volumes.get("v") is volume


def test_the_later_of_two_decisions_counts():
    volume = make_volume("v")
    _, cache = make_cache(volume)
    cache.volumes.assume(decided(volume))

    cache.volumes.assume(with_annotations(volume, {"decided": "again"}))

    assert cache.volumes.get("v").metadata.annotations == {"decided": "again"}


def test_volumes_of_a_class_come_by_name_and_by_what_was_observed():
    a, b, c = make_volume("a"), make_volume("b"), make_volume("c", storage_class="other")
    listers, cache = make_cache(b, c, a)

    cache.volumes.assume(with_annotations(a, {CLASS_ANNOTATION: "other"}))

    assert [volume.name for volume in cache.volumes_of_class("wait")] == ["a", "b"]
    listers.put(make_volume("c", version="2"))
    listers.drop(b)
    assert [volume.name for volume in cache.volumes_of_class("wait")] == ["a", "c"]
    assert cache.volumes_of_class("other") == []
