"""What holds for every allocation: it is the first solution there is, and nothing given to it changes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.devices.allocated import AllocatedDevices, DeviceID
from mooring.devices.allocator import Allocator
from mooring.devices.claim_requests import prepare
from mooring.devices.constraints import DistinctAttribute, make_constraint
from mooring.devices.holdings import Holdings
from mooring.devices.slice_index import SliceIndex
from mooring.objects.devices import (
    Device,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from tests.devices.device_makers import (
    find,
    make_allocator,
    make_claim,
    make_class,
    make_device,
    make_held,
    make_request,
    make_slice,
    make_subrequest,
    results,
)
from tests.makers import make_node

pytestmark = pytest.mark.long

N1 = make_node("n1")
KINDS = st.integers(0, 1)
TAINT = DeviceTaint(key="broken", effect="NoSchedule")


def kind_is(kind: int) -> str:
    return f'device.attributes["d"].kind == {kind}'


@st.composite
def devices(draw: st.DrawFn, name: str) -> Device:
    multiple = draw(st.sampled_from([None, None, True]))
    return make_device(
        name,
        attributes={"kind": draw(KINDS), "numa": draw(st.integers(0, 2))},
        capacity={"mem": "4"} if multiple or draw(st.booleans()) else None,
        counters={"c": str(draw(st.integers(1, 2)))} if draw(st.booleans()) else None,
        multiple=multiple,
        taints=[TAINT] if draw(st.integers(0, 7)) == 0 else (),
    )


@st.composite
def pools(draw: st.DrawFn) -> list[ResourceSlice]:
    """One or two pools of at most three devices, with counters."""
    slices = []
    for pool in draw(st.sampled_from([["p"], ["p", "q"]])):
        names = [f"{pool}{number}" for number in range(draw(st.integers(0, 3)))]
        offered = [draw(devices(name)) for name in names]
        counters = {"c": str(draw(st.integers(0, 5)))}
        slices += [
            make_slice(name=f"{pool}-counters", pool=pool, slices=2, counters=counters),
            make_slice(*offered, name=f"{pool}-devices", pool=pool, slices=2),
        ]
    return slices


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, object]:
    return {
        "selectors": [kind_is(draw(KINDS))] if draw(st.booleans()) else [],
        "count": draw(st.integers(1, 2)),
        "capacity": {"mem": str(draw(st.integers(1, 3)))} if draw(st.booleans()) else None,
    }


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    def wish():
        wanted = draw(wishes())
        return wanted.pop("selectors"), wanted

    if draw(st.integers(0, 3)) == 0:
        options = []
        for option in ("a", "b"):
            selectors, rest = wish()
            options.append(make_subrequest(option, *selectors, **rest))
        return DeviceRequest(name=name, first_available=options)
    selectors, rest = wish()
    admin = True if draw(st.integers(0, 5)) == 0 else None
    if draw(st.integers(0, 3)) == 0:
        rest |= {"mode": "All", "count": 0}
    return make_request(name, *selectors, admin=admin, **rest)


@st.composite
def claims(draw: st.DrawFn) -> list[ResourceClaim]:
    made = []
    for number in range(draw(st.integers(1, 2))):
        # With four requests there are too many assignments to list.
        most = 2 if number == 0 else 1
        wanted = [draw(requests(name)) for name in ["r", "s"][: draw(st.integers(1, most))]]
        counts = [option.count for each in wanted for option in options_of(each)]
        kinds: list[str | None] = [None]
        # A request for all devices that violates a constraint is an error.
        if 0 not in counts:
            kinds.append("match")
        # One value is remembered for each request: with several devices the rule is another.
        if set(counts) == {1}:
            kinds.append("distinct")
        kind = draw(st.sampled_from(kinds))
        constraints = [DeviceConstraint(**{f"{kind}_attribute": "d/numa"})] if kind else []
        made.append(make_claim(*wanted, name=f"c{number}", constraints=constraints))
    return made


def options_of(request: DeviceRequest) -> list[DeviceSubRequest] | list[ExactDeviceRequest]:
    return request.first_available or [request.exactly]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[ResourceSlice], list[ResourceClaim], list[ResourceClaim]]:
    slices = draw(pools())
    offered = [(each.spec.pool.name, device) for each in slices for device in each.spec.devices]
    held = []
    for pool, device in offered:
        if draw(st.integers(0, 4)) == 0:
            if device.allow_multiple_allocations and draw(st.booleans()):
                used = str(draw(st.integers(0, 4)))
                result = make_held(device.name, pool=pool, share="s", consumed={"mem": used})
            else:
                result = make_held(device.name, pool=pool)
            held.append(make_claim(name=f"held-{device.name}", holds=[result]))
    return slices, held, draw(claims())


# The same rule once more, for tiny inputs: list every assignment in order, and take the first good one.

Step = tuple[int, str, DeviceSubRequest | ExactDeviceRequest, str, Device]


def first_good_assignment(slices, held, wanted) -> list[str] | None:
    in_use = AllocatedDevices(held)
    for steps in assignments(slices, wanted, in_use):
        if is_good(steps, slices, in_use, wanted):
            return [f"{name}={pool}/{device.name}" for _, name, _, pool, device in steps]
    return None


def assignments(slices, wanted, in_use: AllocatedDevices) -> Iterator[list[Step]]:
    offered = [
        (each.spec.pool.name, device)
        for each in sorted(slices, key=lambda each: (each.spec.pool.name, each.name))
        for device in each.spec.devices
    ]
    asked = [
        (index, request)
        for index, claim in enumerate(wanted)
        for request in claim.spec.devices.requests
    ]

    def choices(option) -> list[tuple[tuple[str, Device], ...]]:
        if option.allocation_mode == "ExactCount":
            return list(combinations(offered, option.count))
        fitting = tuple(
            (pool, device)
            for pool, device in offered
            if selected(option, device) and fits(option, device, used_mem(in_use, pool, device))
        )
        return [fitting] if fitting else []

    def of(position: int) -> Iterator[list[Step]]:
        if position == len(asked):
            yield []
            return
        index, request = asked[position]
        for option in options_of(request):
            sub = isinstance(option, DeviceSubRequest)
            name = f"{request.name}/{option.name}" if sub else request.name
            for chosen in choices(option):
                here = [(index, name, option, *each) for each in chosen]
                yield from (here + rest for rest in of(position + 1))

    return of(0)


def is_good(steps: list[Step], slices, in_use: AllocatedDevices, wanted) -> bool:
    taken: dict[DeviceID, set[int]] = {}
    mem: Counter[DeviceID] = Counter()
    sharing = set(in_use.consumed)
    left = counters_left(slices, in_use)
    values: dict[int, list[int]] = {}
    for index, _, option, pool, device in steps:
        key = DeviceID("d", pool, device.name)
        admin = getattr(option, "admin_access", None)
        if index in taken.get(key, ()) if admin else (taken.get(key) or key in in_use.dedicated):
            return False
        if not selected(option, device):
            return False
        if not fits(option, device, used_mem(in_use, pool, device) + mem[key]):
            return False
        if device.taints:
            return False
        if device.consumes_counters and not (device.allow_multiple_allocations and key in sharing):
            left[pool] -= device.consumes_counters[0].counters["c"].value.value
            if left[pool] < 0:
                return False
        if device.allow_multiple_allocations:
            sharing.add(key)
            mem[key] += amount_of(option)
        else:
            taken.setdefault(key, set()).add(index)
        values.setdefault(index, []).append(device.attributes["numa"].integer)
    for index, claim in enumerate(wanted):
        for constraint in claim.spec.devices.constraints:
            distinct = len(set(values[index]))
            if distinct != (1 if constraint.match_attribute else len(values[index])):
                return False
    return True


def selected(option, device: Device) -> bool:
    kinds = [int(each.cel.expression[-1]) for each in option.selectors]
    return all(device.attributes["kind"].integer == kind for kind in kinds)


def amount_of(option) -> int:
    return option.capacity.requests["mem"].value if option.capacity else 4


def fits(option, device: Device, used: int) -> bool:
    if "mem" not in device.capacity:
        return option.capacity is None
    return used + amount_of(option) <= 4


def used_mem(in_use: AllocatedDevices, pool: str, device: Device) -> int:
    consumed = in_use.consumed.get(DeviceID("d", pool, device.name), {})
    return consumed.get("mem", 0) // 10**9


def counters_left(slices, in_use: AllocatedDevices) -> Counter[str]:
    used = in_use.dedicated | in_use.shared
    left: Counter[str] = Counter()
    for each in slices:
        for counters in each.spec.shared_counters:
            left[each.spec.pool.name] += counters.counters["c"].value.value
        for device in each.spec.devices:
            if device.consumes_counters and DeviceID("d", each.spec.pool.name, device.name) in used:
                consumption = device.consumes_counters[0].counters["c"].value.value
                left[each.spec.pool.name] -= consumption
    return left


@settings(max_examples=400, deadline=None)
@given(world=worlds())
def test_the_answer_is_the_first_good_assignment(world):
    slices, held, wanted = world
    expected = first_good_assignment(slices, held, wanted)

    for remember_after in (0, 10**9):
        allocator = Allocator(
            AllocatedDevices(held), {"gpu": make_class()}, slices, remember_after=remember_after
        )
        assert results(allocator.allocate(N1, wanted)) == expected


@settings(max_examples=100, deadline=None)
@given(world=worlds())
def test_what_the_allocator_is_given_never_changes(world):
    slices, held, wanted = world
    classes = {"gpu": make_class()}
    allocated = AllocatedDevices(held)
    before = [msgspec.json.encode(each, enc_hook=str) for each in (slices, held, wanted)]

    allocator = Allocator(allocated, classes, slices)
    first = allocator.allocate(N1, wanted)
    second = allocator.allocate(N1, wanted)

    assert [msgspec.json.encode(each, enc_hook=str) for each in (slices, held, wanted)] == before
    allocated.validate(held)
    assert without_shares(first) == without_shares(second)


def without_shares(allocations) -> object:
    if allocations is None:
        return None
    told = msgspec.to_builtins(allocations, enc_hook=str)
    for allocation in told:
        for result in allocation["devices"].get("results", []):
            result.pop("shareID", None)
    return told


@settings(max_examples=200, deadline=None)
@given(world=worlds(), data=st.data())
def test_taking_a_device_and_taking_it_back_changes_nothing(world, data):
    slices, held, wanted = world
    index = SliceIndex(slices)
    asked = prepare(wanted, {"gpu": make_class()}, index.selections)
    options = [
        option for claim in asked.claims for each in claim.requests for option in each.options
    ]
    constraints = [
        [make_constraint(each) for each in claim.spec.devices.constraints] for claim in wanted
    ]
    holdings = Holdings(AllocatedDevices(held), constraints)
    places = [(pool, device) for pool in index.pools_on(N1).usable for device in pool.devices]
    history = []
    for _ in range(data.draw(st.integers(0, 12))):
        if not places or (history and data.draw(st.booleans())):
            if history:
                taken, before = history.pop()
                holdings.undo(taken)
                assert state(holdings) == before
            continue
        option = data.draw(st.sampled_from(options))
        pool, device = data.draw(st.sampled_from(places))
        before = state(holdings)
        if holdings.blocked(option, device):
            continue
        taken = holdings.take(option, pool, device, ())
        if taken is None:
            assert state(holdings) == before
        else:
            history.append((taken, before))
    while history:
        taken, before = history.pop()
        holdings.undo(taken)
        assert state(holdings) == before


def state(holdings: Holdings) -> object:
    """All that a search has changed. What distinctAttribute forgets too much has its own test."""
    return copy.deepcopy(
        (
            [
                [(each.request.number, each.candidate.id) for each in one]
                for one in holdings.results
            ],
            {device.id: indices for device, indices in holdings.taking.items()},
            {device.id: amounts for device, amounts in holdings.sharing.items()},
            {pool.id: consumed for pool, consumed in holdings.counters.items()},
            [
                each._devices if isinstance(each, DistinctAttribute) else vars(each)
                for one in holdings.constraints
                for each in one
            ],
        )
    )


def test_an_undo_with_distinct_attribute_forgets_the_value_of_the_request_as_the_reference_does():
    """1. Request r takes x (numa 0) and y (numa 1); the remembered value of r is 1.

    2. Request s finds nothing beside y, so y is taken back; the value of r is forgotten altogether.
    3. z has the value of x, but nothing is remembered that it could be compared with.
    """

    def device(name, numa, kind):
        return make_device(name, attributes={"numa": numa, "kind": kind})

    slices = [make_slice(device("x", 0, 0), device("y", 1, 1), device("z", 0, 0))]
    constraint = DeviceConstraint(requests=["r"], distinct_attribute="d/numa")
    claim = make_claim(
        make_request("r", count=2), make_request("s", kind_is(1)), constraints=[constraint]
    )

    assert find(slices, claim, node=N1) == ["r=p/x", "r=p/z", "s=p/y"]


def test_the_same_allocator_serves_one_node_after_the_other():
    slices = [
        make_slice("x", name="s1", pool="p1", node="n1"),
        make_slice("x", name="s2", pool="p2", node="n2"),
    ]
    allocator = make_allocator(slices)
    claim = make_claim(make_request())

    found = [allocator.allocate(make_node(name), [claim]) for name in ("n1", "n2", "n1", "n3")]

    pools_of = [each and each[0].devices.results[0].pool for each in found]
    assert pools_of == ["p1", "p2", "p1", None]
