"""Gangs whose pods claim devices: Reserve, Unreserve and Reserve again in one group cycle."""

from __future__ import annotations

from collections import Counter
from functools import partial

from mooring.config import FeatureGates, default_config
from mooring.objects.devices import ResourceClaim
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions, Simulation
from tests.device_world import NS, claim, gpu_class, pod_with, template
from tests.devices.device_makers import make_device, make_request, make_slice
from tests.groups import BY_RACK, GANGS
from tests.makers import make_group, make_node
from tests.sim.books import assert_at_rest, validate


def simulation(*on: str) -> Simulation:
    gates = FeatureGates(dict.fromkeys(on or GANGS, True))
    return Simulation(SimOptions(config=default_config(gates)))


def played(*objects, gates=()) -> Simulation:
    sim = simulation(*gates)
    sim.load(objects)
    sim.run(stops_when=partial(validate, sim), until_s=300)
    return sim


def placed(sim: Simulation) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in sim.api.all(Pod) if pod.node_name}


def held(sim: Simulation) -> Counter[str]:
    return Counter(
        result.device
        for each in sim.api.all(ResourceClaim)
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )


def gang(name: str, count: int, **spec) -> list:
    pods = [
        pod_with(name=f"{name}-{n}", templates={"gpu": ""}, group=name, **spec)
        for n in range(count)
    ]
    return [make_group(name, min_count=count, namespace=NS), *pods]


def with_gpus(node: str, *devices: str, **labels: str) -> list:
    return [
        make_node(node, labels=labels),
        make_slice(*devices, name=f"{node}-gpus", pool=node, node=node),
    ]


def test_each_member_of_a_gang_gets_a_device_of_its_own():
    with played(
        *with_gpus("n1", "a", "b"), *with_gpus("n2", "c"), gpu_class(), template(), *gang("g", 3)
    ) as sim:
        assert Counter(placed(sim).values()) == {"n1": 2, "n2": 1}
        assert held(sim) == {"a": 1, "b": 1, "c": 1}
        assert not sim.errors
        assert_at_rest(sim)


def test_a_gang_that_lacks_one_device_gets_none_and_leaves_all_to_others():
    objects = [*with_gpus("n1", "a", "b"), gpu_class(), template()]
    alone = [pod_with(name=f"alone-{i}", templates={"gpu": ""}) for i in range(2)]

    with played(*objects, *gang("g", 3), *alone) as sim:
        assert sorted(placed(sim)) == ["alone-0", "alone-1"]
        assert held(sim) == {"a": 1, "b": 1}
        assert sim.scheduler.cluster.claims._in_flight == {}


def test_a_gang_gets_its_devices_when_the_last_one_comes():
    with simulation() as sim:
        sim.load([*with_gpus("n1", "a"), gpu_class(), template(), *gang("g", 2)])
        sim.run(until_s=50)
        assert placed(sim) == {}

        sim.api.create(make_node("n2"))
        sim.api.create(make_slice("b", name="n2-gpus", pool="n2", node="n2"))
        sim.run(stops_when=partial(validate, sim))

        assert sorted(placed(sim).values()) == ["n1", "n2"]
        assert held(sim) == {"a": 1, "b": 1}


def test_members_share_a_claim_that_the_first_one_allocates():
    shared = [pod_with("c", name=f"g-{n}", group="g") for n in range(3)]
    objects = [
        *with_gpus("n1", "a"),
        gpu_class(),
        claim("c"),
        make_group("g", min_count=3, namespace=NS),
    ]

    with played(*objects, *shared) as sim:
        assert set(placed(sim).values()) == {"n1"}
        [stored] = sim.api.all(ResourceClaim)
        assert sorted(user.name for user in stored.status.reserved_for) == ["g-0", "g-1", "g-2"]
        assert held(sim) == {"a": 1}


def test_a_member_with_a_shared_and_an_own_claim_gets_each_the_right_device():
    """Allocations belong to claims and not to places in a list."""
    parts = make_slice(
        make_device("shared", attributes={"kind": "s"}),
        *(make_device(f"own-{i}", attributes={"kind": "o"}) for i in range(2)),
        pool="n1",
    )
    for_all = claim("c", make_request("r", 'device.attributes["d"].kind == "s"'))
    own = template("t", make_request("r", 'device.attributes["d"].kind == "o"'))
    pods = [pod_with("c", name=f"g-{n}", templates={"gpu": ""}, group="g") for n in range(2)]

    with played(
        *(
            make_node("n1"),
            parts,
            gpu_class(),
            for_all,
            own,
            make_group("g", min_count=2, namespace=NS),
        ),
        *pods,
    ) as sim:
        assert set(placed(sim).values()) == {"n1"}
        devices = {
            each.name[:1]: sorted(r.device for r in each.status.allocation.devices.results)
            for each in sim.api.all(ResourceClaim)
            if each.name == "c"
        }
        assert devices == {"c": ["shared"]}
        assert held(sim) == {"shared": 1, "own-0": 1, "own-1": 1}


def test_of_racks_that_are_tried_the_one_with_enough_devices_is_taken():
    objects = [
        *with_gpus("n1", "a", rack="r1"),
        *with_gpus("n2", "b", rack="r2"),
        *with_gpus("n3", "c", rack="r2"),
    ]
    pods = gang("g", 2)[1:]
    by_rack = make_group("g", min_count=2, namespace=NS, rack_key="rack")

    with played(*objects, gpu_class(), template(), by_rack, *pods, gates=BY_RACK) as sim:
        assert sorted(placed(sim).values()) == ["n2", "n3"]
        assert held(sim) == {"b": 1, "c": 1}
        assert sim.scheduler.cluster.claims._in_flight == {}
