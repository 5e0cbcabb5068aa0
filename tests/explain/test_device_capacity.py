"""Questions about capacity count devices."""

from __future__ import annotations

from mooring.explain.device_measures import measure_devices
from mooring.explain.drain import without_nodes
from mooring.explain.nodes_to_add import nodes_to_add
from mooring.explain.room import Template, how_many_more
from mooring.explain.settled import settle
from mooring.sim.build_report import build_report
from mooring.sim.simulation import SimOptions, Simulation
from tests.device_world import gpu_class, pod_with, template
from tests.devices.device_makers import make_device, make_request, make_slice
from tests.makers import make_node

CLASS = "deviceclass.resource.kubernetes.io/gpu"


def with_gpus(node: str, *devices: str):
    return [make_node(node), make_slice(*devices, name=f"{node}-gpus", pool=node, node=node)]


def asking(name: str, **more):
    """A pod with a claim from template `t`."""
    return pod_with(name=name, templates={"gpu": ""}, **more)


def test_pods_are_added_until_no_device_is_left_and_the_answer_says_so():
    objects = [*with_gpus("n1", "a", "b"), *with_gpus("n2", "c"), gpu_class(), template()]

    room = how_many_more(settle(objects, SimOptions()), [Template(asking("p"))], limit=10)

    assert (room.rounds, room.nodes) == (3, {"n1": 2, "n2": 1})
    assert [(use.name, use.count("in use"), use.count("free")) for use in room.devices] == [
        ("gpu", 3, 0)
    ]


def test_the_same_holds_for_an_extended_resource_that_devices_serve():
    resource = "example.com/gpu"
    objects = [*with_gpus("n1", "a", "b"), gpu_class(resource=resource)]

    room = how_many_more(
        settle(objects, SimOptions()), [Template(pod_with(requests={resource: 1}))], limit=10
    )

    assert room.rounds == 2
    assert [(use.name, use.count("in use")) for use in room.devices] == [("gpu", 2)]


def test_a_node_that_is_added_has_the_devices_of_its_model():
    objects = [*with_gpus("n1", "a", "b"), gpu_class(), template()]
    objects += [asking(f"p{i}") for i in range(5)]
    settled = settle(objects, SimOptions())

    found = nodes_to_add(settled, settled.nodes[0])

    assert (found.waiting, found.count, found.hopeless) == (3, 2, ())


def test_pods_of_a_drained_node_get_devices_elsewhere():
    objects = [*with_gpus("n1", "a"), *with_gpus("n2", "b"), gpu_class(), template(), asking("p")]
    settled = settle(objects, SimOptions())
    node = next(obj.node_name for obj in settled.objects if obj.kind == "Pod")

    assert without_nodes(settled, [node]).holds
    assert not without_nodes(settled, ["n1", "n2"]).holds


def simulated(*objects) -> Simulation:
    simulation = Simulation()
    simulation.load(objects)
    simulation.run()
    return simulation


def test_the_report_counts_devices_by_class_and_node_and_says_who_has_them():
    objects = [*with_gpus("n1", "a", "b"), make_node("n2"), gpu_class(), template(), asking("p")]
    with simulated(*objects) as simulation:
        data = build_report(simulation).to_data()

    assert data["utilisation"]["total"][CLASS] == {
        "requested": 1,
        "allocatable": 2,
        "percent": 50.0,
        "unit": "count",
    }
    assert data["utilisation"]["nodes"][1]["resources"][CLASS]["allocatable"] == 0
    assert data["devices"]["classes"] == [
        {
            "deviceClass": "gpu",
            "total": 2,
            "inUse": 1,
            "shared": 0,
            "free": 1,
            "blocked": 0,
            "capacity": {},
        }
    ]
    [held] = data["devices"]["held"]
    assert (held["node"], held["device"], held["pods"]) == ("n1", "d/n1/a", ["ns/p"])


def test_devices_on_nodes_where_a_claim_gets_too_few_are_fragmented():
    # Claims want two devices. Of the three free ones, the one on n2 is of no use to them.
    objects = [*with_gpus("n1", "a", "b", "c", "d"), *with_gpus("n2", "e"), gpu_class()]
    objects += [template("t", make_request(count=2)), asking("p")]
    with simulated(*objects) as simulation:
        [gpu] = measure_devices(simulation.scheduler.cluster)

    assert (gpu.resource, gpu.requested, gpu.allocatable) == (CLASS, 2, 5)
    assert (gpu.utilisation, gpu.imbalance) == (0.4, 0.25)
    assert gpu.fragmentation == round(1 / 3, 4)


def test_a_cluster_without_devices_has_no_measures_of_them():
    with simulated(make_node("n1"), make_slice(make_device("far"), node="gone")) as simulation:
        assert measure_devices(simulation.scheduler.cluster) == ()
