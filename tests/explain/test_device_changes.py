"""Answers about devices are true: each is made and the pod is placed; a little less, and it is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from mooring.explain.counterfactuals import Counterfactuals
from mooring.explain.device_changes import (
    DropConstraint,
    DropSelector,
    LowerCapacity,
    LowerCount,
    LowerQuantity,
    ReleaseClaims,
    RequestOfClaim,
    TolerateDevices,
)
from mooring.framework.changes import Change
from mooring.framework.node_changes import AddNodes
from mooring.library import Cluster
from mooring.objects.devices import (
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimTemplate,
)
from mooring.objects.meta import KubeObject
from tests.device_world import claim, gpu_class, pod_with, template
from tests.devices.device_makers import (
    make_capacity,
    make_device,
    make_held,
    make_request,
    make_slice,
    make_subrequest,
)
from tests.makers import make_node

POD = "ns/pod"
AT_LEAST_80 = 'device.capacity["d"].memory.compareTo(quantity("80Gi")) >= 0'
NEXT_MODEL = 'device.attributes["d"].model == "next"'
IN_CLAIM = RequestOfClaim("ns/c", "", "r")
BROKEN = DeviceTaint(key="broken", value="fan", effect="NoSchedule")


@dataclass(frozen=True)
class Row:
    """A cluster with the pending pod, a change that must be found, its text, and less of it."""

    objects: list[KubeObject]
    change: Change
    text: str
    #: What must not be enough; nothing at all, where there is no less of it.
    less: list[Change] = field(default_factory=list)


def asking(
    *requests: DeviceRequest, constraints: tuple[DeviceConstraint, ...] = ()
) -> list[KubeObject]:
    """The pod with claim `ns/c`."""
    made = claim("c", *requests)
    devices = replace(made.spec.devices, constraints=list(constraints))
    return [gpu_class(), replace(made, spec=replace(made.spec, devices=devices)), pod_with("c")]


def sized(name: str, memory: str, **more) -> object:
    return make_device(name, capacity={"memory": memory}, **more)


def in_use(name: str, user: str, *devices: str) -> list[KubeObject]:
    """A pod on n1 with a claim that holds devices."""
    pod = pod_with(name, name=user, node="n1")
    return [pod, claim(name, holds=devices, reserved_for=[pod])]


def shared(left: str) -> list[KubeObject]:
    """A card of 100G, of which a claim that no pod uses leaves this much."""
    card = make_device("card", capacity={"bw": make_capacity("100G", default="1G")}, multiple=True)
    used = claim("used", holds=[])
    held = make_held("card", share="s", consumed={"bw": f"{100 - int(left[:-1])}G"})
    status = used.status
    allocation = replace(
        status.allocation, devices=replace(status.allocation.devices, results=[held])
    )
    return [
        make_node("n1"),
        make_slice(card),
        replace(used, status=replace(status, allocation=allocation)),
    ]


NUMA = (DeviceConstraint(requests=["r"], match_attribute="d/numa"),)

ROWS = {
    "fewer devices": Row(
        [make_node("n1"), make_slice("a", "b"), *asking(make_request(count=4))],
        LowerCount(IN_CLAIM, 4, 2),
        "lower the count from 4 to 2 in request r of ResourceClaim ns/c",
        [LowerCount(IN_CLAIM, 4, 3)],
    ),
    "a smaller device": Row(
        [
            make_node("n1"),
            make_slice(sized("a", "16Gi"), sized("b", "40Gi")),
            *asking(make_request("r", AT_LEAST_80)),
        ],
        LowerQuantity(IN_CLAIM, 0, "memory", "80Gi", "40Gi"),
        "accept a device with memory 40Gi instead of 80Gi in request r of ResourceClaim ns/c",
    ),
    "any model": Row(
        [
            make_node("n1"),
            make_slice(make_device("a", attributes={"model": "last"})),
            *asking(make_request("r", NEXT_MODEL)),
        ],
        DropSelector(IN_CLAIM, 0, NEXT_MODEL),
        f"drop the selector “{NEXT_MODEL}” from request r of ResourceClaim ns/c",
    ),
    "an alternative": Row(
        [
            make_node("n1"),
            make_slice("a"),
            *asking(
                DeviceRequest(
                    name="r",
                    first_available=[
                        make_subrequest("many", count=3),
                        make_subrequest("next", 'device.driver == "other"', count=2),
                    ],
                )
            ),
        ],
        LowerCount(RequestOfClaim("ns/c", "", "r/many"), 3, 1),
        "lower the count from 3 to 1 in request r/many of ResourceClaim ns/c",
        [LowerCount(RequestOfClaim("ns/c", "", "r/many"), 3, 2)],
    ),
    "a taint": Row(
        [make_node("n1"), make_slice(make_device("a", taints=[BROKEN])), *asking()],
        TolerateDevices(IN_CLAIM, ("broken=fan:NoSchedule",)),
        "tolerate the device taint broken=fan:NoSchedule in request r of ResourceClaim ns/c",
    ),
    "less of a shared device": Row(
        [*shared("30G"), *asking(make_request(capacity={"bw": "40G"}))],
        LowerCapacity(IN_CLAIM, "bw", "40G", "30G"),
        "lower bw from 40G to 30G in request r of ResourceClaim ns/c",
        [LowerCapacity(IN_CLAIM, "bw", "40G", "31G")],
    ),
    "a constraint": Row(
        [
            make_node("n1"),
            make_slice(
                make_device("a", attributes={"numa": 0}), make_device("b", attributes={"numa": 1})
            ),
            *asking(make_request(count=2), constraints=NUMA),
        ],
        DropConstraint(RequestOfClaim("ns/c", ""), 0, "matchAttribute d/numa"),
        "drop the constraint matchAttribute d/numa from ResourceClaim ns/c",
    ),
    "a pod that uses the device": Row(
        [make_node("n1"), make_slice("a"), *in_use("held", "user", "a"), *asking()],
        ReleaseClaims(("ns/held",), ("ns/user",), ("ns/held",)),
        "delete ns/user, or let it finish: the claim ns/held holds the devices",
    ),
    "a claim that no pod uses": Row(
        [make_node("n1"), make_slice("a"), claim("held", holds=["a"]), *asking()],
        ReleaseClaims(("ns/held",), (), ("ns/held",)),
        "deallocate or delete ns/held: the claim ns/held holds the devices, for no pod",
    ),
    "pods of which each is necessary": Row(
        [
            make_node("n1"),
            make_slice("a", "b", "c"),
            *in_use("one", "user-1", "a"),
            *in_use("two", "user-2", "b"),
            *in_use("three", "user-3", "c"),
            *asking(make_request(count=2)),
        ],
        ReleaseClaims(("ns/three", "ns/two"), ("ns/user-3", "ns/user-2"), ("ns/three", "ns/two")),
        "delete ns/user-3, ns/user-2, or let it finish: the claims ns/three, ns/two hold the devices",
        [ReleaseClaims(("ns/two",), ("ns/user-2",), ("ns/two",))],
    ),
    "a node with the same devices": Row(
        [make_node("n1"), make_slice("a"), *in_use("held", "user", "a"), *asking()],
        AddNodes("n1"),
        "add a node like n1",
    ),
}


def find(objects: list[KubeObject]) -> Counterfactuals:
    with Cluster.of(objects).simulate() as simulated:
        return simulated.counterfactuals(POD)


def is_placed(objects: list[KubeObject], changes: list[Change]) -> bool:
    with Cluster.of(objects).changed(POD, changes).simulate() as simulated:
        return POD in {placed.pod for placed in simulated.placements}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_an_answer_is_true_and_a_little_less_would_not_do(row: Row):
    texts = {answer.changes: answer.text for answer in find(row.objects)}

    assert texts.get((row.change,)) == row.text
    assert is_placed(row.objects, [row.change])
    assert not is_placed(row.objects, row.less)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_answer_places_the_pod_where_it_says(row: Row):
    answers = find(row.objects)

    assert answers.complete
    for answer in answers:
        with Cluster.of(row.objects).changed(POD, answer).simulate() as simulated:
            where = {placed.pod: placed.node for placed in simulated.placements}
            assert where.get(POD) == answer.node, answer.text


def test_looking_for_answers_leaves_the_cluster_as_it_was():
    for row in ROWS.values():
        with Cluster.of(row.objects).simulate() as simulated:
            before = [answer.to_data() for answer in simulated.counterfactuals(POD)]
            simulated._explainer.what_if.scheduler.validate()
            assert [answer.to_data() for answer in simulated.counterfactuals(POD)] == before


def test_one_more_device_is_like_one_that_would_do():
    texts = [answer.text for answer in find(ROWS["a pod that uses the device"].objects)]

    assert "add one more device to node n1, like d/p/a" in texts


def test_if_no_device_would_do_the_answer_says_what_it_must_have():
    texts = [answer.text for answer in find(ROWS["a smaller device"].objects)]

    assert "add one more device with memory ≥ 80Gi to node n1, otherwise like d/p/a" in texts


def test_a_claim_from_a_template_is_changed_in_its_template():
    pod = pod_with(templates={"gpus": ""})
    objects = [
        *(make_node("n1"), make_slice("a"), gpu_class()),
        *(template("t", make_request(count=2)), pod),
    ]
    answers = find(objects)

    assert answers.answers[0].text == (
        "lower the count from 2 to 1 in request r of ResourceClaimTemplate ns/t"
    )
    changed = Cluster.of(objects).changed(POD, answers.answers[0])
    assert [
        each.spec.spec.devices.requests[0].exactly.count
        for each in changed.objects
        if isinstance(each, ResourceClaimTemplate)
    ] == [1]
    assert not any(isinstance(each, ResourceClaim) for each in changed.objects)
    with changed.simulate() as simulated:
        assert {placed.pod: placed.node for placed in simulated.placements} == {POD: "n1"}


def test_a_claim_that_waits_on_another_node_needs_its_users_to_go():
    user = pod_with("c", name="user", node="n1")
    held = claim("c", holds=["a"], on="n1", reserved_for=[user])
    objects = [
        *(
            make_node("n1", cpu=1),
            make_node("n2", cpu=4),
            make_slice("a"),
            make_slice("b", name="t", node="n2"),
        ),
        *(gpu_class(), held, user, pod_with("c", cpu=2)),
    ]
    texts = [answer.text for answer in find(objects)]

    assert "delete ns/user, or let it finish: the claim ns/c holds the devices" in texts


def test_a_pod_with_an_extended_resource_is_told_who_holds_the_device():
    resource = "example.com/gpu"
    objects = [
        *(make_node("n1"), make_slice("a"), gpu_class(resource=resource)),
        *in_use("held", "user", "a"),
        pod_with(requests={resource: 1}),
    ]
    with Cluster.of(objects).simulate() as simulated:
        answers = {answer.text: answer for answer in simulated.counterfactuals(POD)}
        told = simulated.explain(POD)

    text = "delete ns/user, or let it finish: the claim ns/held holds the devices"
    assert is_placed(objects, list(answers[text].changes))
    assert [(each.claim, each.reason, each.detail) for each in told.devices] == [
        ("ns/extended resources", "in use", "ns/held")
    ]
    assert told.to_data()["devicesOfNodes"] == 1
