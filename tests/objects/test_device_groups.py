"""Devices from a short text."""

from __future__ import annotations

import pytest

from mooring.library import Cluster
from mooring.objects.device_groups import (
    CannotAddDevices,
    device_objects,
    parse_device_group,
    slices_of,
)
from mooring.objects.devices import DeviceClass, ResourceSlice
from mooring.objects.validation import problems_of
from tests.device_world import gpu_class, pod_with, template
from tests.devices.device_makers import make_request, make_slice
from tests.makers import make_node


def devices(text: str, node=None) -> list:
    made = slices_of([parse_device_group(text)], node or make_node("n1"))
    return [device for piece in made for device in piece.spec.devices]


def placed(objects, *texts: str) -> list[str]:
    """The nodes of the pods that are placed, with these devices on the nodes."""
    groups = [parse_device_group(text) for text in texts]
    nodes = [obj for obj in objects if obj.kind == "Node"]
    made = device_objects(groups, nodes, objects)
    with Cluster.of([*made, *objects]).simulate() as simulated:
        return [each.node for each in simulated.placements]


def pods(count: int, device_class: str, **request) -> list:
    """Pods with a claim each."""
    asked = make_request(device_class=device_class, **request)
    return [
        template("t", asked),
        *(pod_with(name=f"p{i}", templates={"gpu": ""}) for i in range(count)),
    ]


def test_a_node_gets_so_many_devices_with_capacities_and_attributes():
    made = devices("8xgpu.example.com,memory=80Gi,model=H100,numa=1,nvlink=true")

    assert [device.name for device in made] == [f"gpu-{i}" for i in range(8)]
    assert {name: each.value.canonical for name, each in made[0].capacity.items()} == {
        "memory": "80Gi"
    }
    attributes = made[0].attributes
    assert (attributes["model"].string, attributes["numa"].integer) == ("H100", 1)
    assert attributes["nvlink"].boolean is True


def test_claims_get_them_by_the_class_of_the_driver():
    nodes = [make_node("n1"), make_node("n2")]

    assert sorted(placed([*nodes, *pods(5, "gpu.example.com")], "2xgpu")) == [
        *("n1", "n1", "n2", "n2")
    ]


def test_only_the_nodes_that_are_chosen_get_devices():
    nodes = [make_node("n1", labels={"pool": "gpu"}), make_node("n2")]
    objects = [*nodes, *pods(3, "gpu.example.com")]

    assert placed(objects, "2xgpu,on=pool=gpu") == ["n1", "n1"]
    assert placed(objects, "1xgpu,node=n2") == ["n2"]


def test_a_device_can_be_had_whole_or_in_parts_but_not_both():
    node, text = make_node("n1"), "2xgpu,memory=80Gi,partitions=2"

    assert len(placed([node, *pods(9, "gpu.example.com-1-of-2")], text)) == 4
    assert len(placed([node, *pods(9, "gpu.example.com")], text)) == 2
    # A claim takes one half first, so only the other GPU is left for a whole one.
    mixed = [make_request("half", device_class="gpu.example.com-1-of-2")]
    mixed += [make_request("whole", device_class="gpu.example.com")]
    both = [template("t", *mixed), *pods(2, "gpu.example.com")[1:]]
    assert len(placed([node, *both], text)) == 1
    assert [
        (device.name, device.capacity["memory"].value.canonical)
        for device in devices("1xgpu,memory=80Gi,partitions=2;4")
    ] == [
        *((f"gpu-0-{i}-of-4", "20Gi") for i in (1, 2, 3, 4)),
        *((f"gpu-0-{i}-of-2", "40Gi") for i in (1, 2)),
        ("gpu-0", "80Gi"),
    ]


def test_a_shared_device_serves_claims_until_its_capacity_is_used_up():
    objects = [make_node("n1"), *pods(4, "nic.example.com", capacity={"bandwidth": "40G"})]

    assert placed(objects, "1xnic,shared,bandwidth=100G") == ["n1", "n1"]
    some = [make_node("n1"), *pods(12, "nic.example.com")]
    assert len(placed(some, "1xnic,shared,bandwidth=10G,share=bandwidth=1G")) == 10


def test_a_class_of_the_input_is_kept():
    group = parse_device_group("gpu,class=fast")

    made = device_objects([group], [make_node("n1")], [gpu_class("fast")])

    assert not any(isinstance(obj, DeviceClass) for obj in made)


@pytest.mark.parametrize(
    "text",
    ["1000xgpu,memory=1Gi", "200xgpu,taint=a=b:NoSchedule", "20xgpu,memory=80Gi,partitions=7"],
)
def test_slices_are_such_as_the_api_allows(text):
    node = make_node("n1")
    made = device_objects([parse_device_group(text)], [node])

    assert [problem for obj in made for problem in problems_of(obj)] == []
    slices = [obj for obj in made if isinstance(obj, ResourceSlice)]
    assert {piece.spec.pool.resource_slice_count for piece in slices} == {len(slices)}
    assert max(len(piece.spec.devices) for piece in slices) <= 128
    assert max(len(piece.spec.shared_counters) for piece in slices) <= 8


def test_several_groups_of_one_driver_are_one_pool():
    groups = [parse_device_group("2xgpu,model=A"), parse_device_group("1xgpu,model=B")]

    [piece] = slices_of(groups, make_node("n1"))

    assert [device.name for device in piece.spec.devices] == ["gpu-0", "gpu-1", "gpu-2"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no driver; write 8xgpu.example.com"),
        ("8x", "names no driver"),
        ("memory=80Gi", "names no driver"),
        ("0xgpu", "0 devices: write a number from 1 to 1,000"),
        ("GPU", "'GPU' is not the name of a driver"),
        ("gpu,memory", "'memory' has no value; write memory=VALUE, or shared"),
        ("gpu,patitions=4", "there is no option 'patitions'; did you mean partitions?"),
        ("gpu,partitions=1", "partitions=1: write a whole number from 2 to 64"),
        ("gpu,shared", "shared devices need a capacity to share"),
        ("gpu,shared,memory=1Gi,partitions=2", "shared and partitions: give one of the two"),
        ("gpu,memory=1Gi,share=memory=1Mi", "share is about shared devices; add shared"),
        ("gpu,shared,bw=1G,share=x=1M", "share=x: the device has no capacity x"),
        ("gpu,memory=1Gi,memory=2Gi", "memory is given twice"),
        ("gpu,a-b=3", "'a-b' is not the name of an attribute or a capacity"),
        ("gpu,taint=x", "'x' is not a taint of a device"),
        ("gpu,on=!=", "is not a label selector"),
        ("gpu,partitions=2,kind=x", "kind is an attribute that partitions have already"),
    ],
)
def test_a_mistake_is_named(text, why):
    with pytest.raises(ValueError) as raised:
        parse_device_group(text)

    assert why in str(raised.value)


def test_devices_need_a_node_and_a_driver_that_has_none_there():
    group = parse_device_group("gpu,on=pool=gpu")

    with pytest.raises(CannotAddDevices, match="no node is chosen; the nodes are n1"):
        device_objects([group], [make_node("n1")])
    with pytest.raises(
        CannotAddDevices, match=r"ResourceSlice s has devices of driver d\.x already"
    ):
        device_objects([parse_device_group("d.x")], [make_node("n1")], [make_slice(driver="d.x")])


def test_the_library_takes_devices(tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    cluster = Cluster.load(tmp_path, nodes=["2x8cpu,32Gi"], devices=["8xgpu,memory=80Gi"])

    assert sum(isinstance(obj, ResourceSlice) for obj in cluster.objects) == 2
