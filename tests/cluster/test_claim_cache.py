"""The cache of claims: what was written counts before the watch shows it, and what is chosen before that."""

from __future__ import annotations

import pytest

from mooring.cluster.cache import Cluster
from mooring.cluster.claim_cache import UnknownClaimError
from mooring.cluster.volume_cache import AssumeError
from mooring.devices.allocated import DeviceID
from mooring.objects.devices import ResourceClaim
from tests.device_world import claim

X = DeviceID("d", "p", "x")


def told(cluster: Cluster) -> list[tuple[str | None, str | None]]:
    """The versions of claims that followers are told of, before and after."""
    changes = []

    def version(each):
        return None if each is None else each.metadata.resource_version

    cluster.claims.follow(lambda old, new: changes.append((version(old), version(new))))
    return changes


def test_a_claim_that_was_written_hides_the_one_that_the_watch_shows():
    cluster = Cluster()
    cluster.listers.put(claim(version="9"))
    changes = told(cluster)

    # Versions are numbers: 10 comes after 9.
    cluster.claims.assume(claim(version="10", holds=["x"]))
    cluster.validate()
    assert cluster.claims.get("ns/c").status.allocation is not None
    assert X in cluster.claims.devices.dedicated

    cluster.listers.put(claim(version="10", holds=["x"]))
    cluster.listers.put(claim(version="11"))
    cluster.validate()
    assert changes == [("9", "10"), ("10", "11")], "what was assumed is not told twice"
    assert cluster.claims.devices.dedicated == set()


def test_an_older_version_from_the_watch_is_passed_over():
    cluster = Cluster()
    cluster.listers.put(claim(version="1"))
    cluster.claims.assume(claim(version="3", holds=["x"]))

    cluster.listers.put(claim(version="2"))

    cluster.validate()
    assert X in cluster.claims.devices.dedicated


def test_an_assumption_is_dropped():
    cluster = Cluster()
    cluster.listers.put(claim(version="1"))
    changes = told(cluster)
    cluster.claims.assume(claim(version="2", holds=["x"]))

    cluster.claims.restore("ns/c")

    cluster.validate()
    assert changes == [("1", "2"), ("2", "1")]
    assert cluster.claims.devices.dedicated == set()


def test_what_the_watch_does_not_show_cannot_be_assumed():
    cluster = Cluster()
    with pytest.raises(UnknownClaimError, match='could not find ResourceClaim "ns/c"'):
        cluster.claims.assume(claim())
    cluster.listers.put(claim(version="5"))
    with pytest.raises(AssumeError, match="out of sync"):
        cluster.claims.assume(claim(version="4"))


def test_devices_in_flight_are_in_use_until_the_last_pod_lets_go():
    cluster = Cluster()
    cluster.listers.put(claim())
    chosen = claim(holds=["x"])
    cluster.claims.signal(chosen)
    cluster.claims.signal(chosen)
    assert X in cluster.claims.devices.dedicated

    assert not cluster.claims.withdraw(chosen.uid)
    cluster.validate()
    assert X in cluster.claims.devices.dedicated
    assert cluster.claims.withdraw(chosen.uid)
    assert not cluster.claims.withdraw(chosen.uid)
    cluster.validate()
    assert cluster.claims.devices.dedicated == set()


def test_a_device_is_never_free_between_flight_and_assumption():
    cluster = Cluster()
    cluster.listers.put(claim(version="1"))
    cluster.claims.signal(claim(version="1", holds=["x"]))

    cluster.claims.assume(claim(version="2", holds=["x"]))
    assert cluster.claims.withdraw("uid-c", force=True)

    cluster.validate()
    assert X in cluster.claims.devices.dedicated


def test_a_claim_that_goes_takes_its_devices_along():
    cluster = Cluster()
    held = claim(holds=["x"])
    cluster.listers.put(held)
    changes = told(cluster)

    cluster.listers.drop(held)

    cluster.validate()
    assert changes == [("1", None)]
    assert cluster.claims.devices.dedicated == set()


def test_the_devices_of_a_claim_that_is_gone_are_told_free_when_the_flight_ends():
    """The claim was given back and deleted while a pod was in PreBind, and that helped nobody: the pods
    that wait for the device found it in use. (Liveness seed 3699: one waited for the flush.)
    """
    cluster = Cluster()
    cluster.listers.put(claim())
    chosen = claim(holds=["x"])
    cluster.claims.signal(chosen)
    cluster.listers.drop(claim())
    allocated: list[tuple[bool, bool]] = []

    def note(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        assert old is not None
        assert new is not None
        allocated.append((old.status.allocation is not None, new.status.allocation is not None))
        assert cluster.claims.devices.dedicated == set()

    cluster.claims.follow(note)
    assert cluster.claims.withdraw(chosen.uid)

    assert allocated == [(True, False)]
    cluster.validate()


def test_a_successor_knows_what_is_assumed_and_in_flight_and_what_becomes_of_it():
    old, new = Cluster(), Cluster()
    for cluster in (old, new):
        cluster.listers.put(claim("a", version="1"))
        cluster.listers.put(claim("b", version="1"))
    old.claims.assume(claim("a", version="2", holds=["x"]))
    old.claims.signal(claim("b", holds=["y"]))

    new.claims.take_over(old.claims)
    new.validate()
    assert new.claims.devices.dedicated == {X, DeviceID("d", "p", "y")}

    old.claims.withdraw("uid-b")
    new.validate()
    assert new.claims.devices.dedicated == {X}
