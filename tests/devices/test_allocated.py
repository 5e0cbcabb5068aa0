"""The books of devices in use equal a rebuild from the claims, whatever has happened to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.devices.allocated import AllocatedDevices, DeviceID, PoolID
from mooring.errors import InvariantError
from tests.devices.device_makers import make_claim, make_held

X = DeviceID("d", "p", "x")
NANOS = 10**9


def test_a_result_takes_the_device_a_share_of_it_or_nothing():
    claim = make_claim(
        holds=[
            make_held("x"),
            make_held("y", share="1", consumed={"mem": "2"}),
            make_held("z", admin=True),
        ]
    )

    allocated = AllocatedDevices([claim])

    assert allocated.dedicated == {X}
    assert allocated.shared == {DeviceID("d", "p", "y")}
    assert allocated.consumed == {DeviceID("d", "p", "y"): {"mem": 2 * NANOS}}
    assert allocated.holders(X) == ["ns/c"]
    assert allocated.holders(DeviceID("d", "p", "z")) == []


def test_consumed_capacity_is_summed_over_the_shares_of_a_device():
    one, two = (
        make_claim(name=name, holds=[make_held("x", share=name, consumed={"mem": amount})])
        for name, amount in (("one", "1"), ("two", "500m"))
    )
    allocated = AllocatedDevices([one, two])

    assert allocated.consumed == {X: {"mem": 3 * NANOS // 2}}
    allocated.remove("ns/one")
    assert allocated.consumed == {X: {"mem": NANOS // 2}}
    allocated.remove("ns/two")
    assert allocated.consumed == {}
    assert allocated.shared == set()


def test_a_claim_that_comes_again_replaces_what_it_held():
    allocated = AllocatedDevices([make_claim(holds=[make_held("x")])])

    allocated.add(make_claim(holds=[make_held("y")]))
    assert allocated.dedicated == {DeviceID("d", "p", "y")}

    allocated.add(make_claim())
    assert allocated.dedicated == set()


def test_a_device_that_two_claims_have_stays_in_use_until_both_are_gone():
    one, two = (make_claim(name=name, holds=[make_held("x")]) for name in ("one", "two"))
    allocated = AllocatedDevices([one, two])

    allocated.remove("ns/one")

    assert allocated.dedicated == {X}
    assert allocated.holders(X) == ["ns/two"]


def test_the_revision_of_a_pool_changes_with_its_use_alone():
    allocated = AllocatedDevices()
    p, q = PoolID("d", "p"), PoolID("d", "q")
    before = allocated.revision(p), allocated.revision(q)

    allocated.add(make_claim(holds=[make_held("x")]))

    assert allocated.revision(p) != before[0]
    assert allocated.revision(q) == before[1]
    allocated.remove("ns/c")
    assert allocated.revision(p) > before[0] + 1


RESULTS = st.builds(
    make_held,
    st.sampled_from(["x", "y"]),
    pool=st.sampled_from(["p", "q"]),
    admin=st.sampled_from([None, True]),
    share=st.sampled_from([None, "1"]),
    consumed=st.sampled_from([None, {"mem": "1"}, {"mem": "0"}, {"mem": "2", "cores": "500m"}]),
)
CLAIMS = st.builds(
    make_claim,
    name=st.sampled_from(["a", "b", "c"]),
    holds=st.none() | st.lists(RESULTS, max_size=3),
)


@given(changes=st.lists(CLAIMS | st.sampled_from(["ns/a", "ns/b", "ns/c"])))
def test_the_books_equal_a_rebuild_after_any_changes(changes):
    allocated, known = AllocatedDevices(), {}
    for change in changes:
        if isinstance(change, str):
            allocated.remove(change)
            known.pop(change, None)
        else:
            allocated.add(change)
            known[change.key] = change
        allocated.validate(known.values())
    allocated.copy().validate(known.values())


def test_a_copy_has_a_life_of_its_own():
    allocated = AllocatedDevices(
        [make_claim(holds=[make_held("x", share="1", consumed={"m": "1"})])]
    )
    twin = allocated.copy()

    twin.add(make_claim(name="other", holds=[make_held("x", share="2", consumed={"m": "1"})]))

    assert allocated.consumed == {X: {"m": NANOS}}
    assert twin.consumed == {X: {"m": 2 * NANOS}}


def test_books_that_are_wrong_are_noticed():
    claim = make_claim(holds=[make_held("x")])
    allocated = AllocatedDevices([claim])

    allocated.in_pool(PoolID("d", "p")).dedicated["y"] = 1

    with pytest.raises(InvariantError, match="devices in use"):
        allocated.validate([claim])
