"""Claims of pod groups (the gate DRAWorkloadResourceClaims): one claim that all pods of the group share."""

import pytest
from msgspec.structs import replace

from mooring.config import default_config, parse_gates
from mooring.objects.devices import ResourceClaim, ResourceSlice
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource_claims import ClaimProblem, check_usable
from mooring.sim.simulation import SimOptions, Simulation
from tests.makers import make_pod

GATES = "GenericWorkload=true,GangScheduling=true"
WITH_CLAIMS = f"{GATES},DRAWorkloadResourceClaims=true"

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "d"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d
  nodeName: n1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
"""

GROUP = """
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: g, namespace: default, uid: group}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""

MEMBER = """
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  schedulingGroup: {podGroupName: g}
  resourceClaims: [{name: %s, resourceClaimTemplateName: one-gpu}]
  containers: [{name: c, image: i, resources: {claims: [{name: %s}]}}]
"""


def member(name, entry="gpu"):
    return MEMBER % (name, entry, entry)


@pytest.fixture
def read(tmp_path):
    def objects_in(text):
        path = tmp_path / "cluster.yaml"
        path.write_text(text)
        return read_manifests([path]).objects

    return objects_in


@pytest.fixture
def world(read):
    simulations = []

    def make(text, gates=WITH_CLAIMS):
        simulation = Simulation(SimOptions(config=default_config(parse_gates(gates))))
        simulations.append(simulation)
        simulation.load(read(text))
        simulation.run()
        assert not simulation.errors
        return simulation

    yield make
    for simulation in simulations:
        simulation.close()


def devices_of(api):
    return {
        claim.metadata.controller.name: [
            result.device for result in claim.status.allocation.devices.results
        ]
        for claim in api.all(ResourceClaim)
        if claim.status.allocation is not None
    }


def test_the_pods_of_a_group_share_the_device_of_its_claim(world):
    api = world(CLUSTER + GROUP + member("a") + member("b")).api

    (claim,) = api.all(ResourceClaim)
    assert [pod.node_name for pod in api.all(Pod)] == ["n1", "n1"]
    assert devices_of(api) == {"g": ["gpu-0"]}
    assert [(user.api_group, user.resource, user.name) for user in claim.status.reserved_for] == [
        ("scheduling.k8s.io", "podgroups", "g")
    ]
    group = api.get(PodGroup, "default/g")
    assert [status.resource_claim_name for status in group.status.resource_claim_statuses] == [
        claim.name
    ]


def test_an_entry_that_the_group_does_not_have_is_a_claim_of_the_pod_alone(world):
    api = world(CLUSTER + GROUP + member("a") + member("b", entry="own")).api

    assert devices_of(api) == {"g": ["gpu-0"], "b": ["gpu-1"]}


def test_pods_may_come_before_their_group(world):
    api = world(CLUSTER + member("a") + member("b") + GROUP).api

    assert devices_of(api) == {"g": ["gpu-0"]}


def test_without_the_gate_each_pod_has_a_claim_of_its_own(world):
    api = world(CLUSTER + GROUP + member("a") + member("b"), gates=GATES).api

    assert devices_of(api) == {"a": ["gpu-0"], "b": ["gpu-1"]}


def test_a_claim_of_a_group_outlives_its_pods_and_goes_with_the_group(world):
    simulation = world(CLUSTER + GROUP + member("a") + member("b"))
    delete(simulation, *simulation.api.all(Pod))
    assert devices_of(simulation.api) == {"g": ["gpu-0"]}

    delete(simulation, simulation.api.get(PodGroup, "default/g"))

    assert list(simulation.api.all(ResourceClaim)) == []


def test_a_claim_of_a_group_without_placed_pods_is_given_back_where_it_is_of_no_use(world, read):
    """It is reserved for the group, which keeps others from deallocating it. First the reservation goes."""
    simulation = world(CLUSTER + GROUP + member("a") + member("b"))
    api = simulation.api
    delete(simulation, *api.all(Pod))
    node = api.get(Node, "n1")
    api.update(replace(node, spec=replace(node.spec, unschedulable=True)))
    elsewhere = (
        CLUSTER.replace("n1", "n2").replace("name: s}", "name: t}").replace("name: p,", "name: q,")
    )

    simulation.load(
        obj
        for obj in read(elsewhere + member("c") + member("d"))
        if isinstance(obj, Node | ResourceSlice | Pod)
    )
    simulation.run()

    assert {pod.name: pod.node_name for pod in api.all(Pod)} == {"c": "n2", "d": "n2"}
    (claim,) = api.all(ResourceClaim)
    assert [result.pool for result in claim.status.allocation.devices.results] == ["q"]


def delete(simulation, *objects):
    for obj in objects:
        simulation.api.delete(obj)
    simulation.run()


@pytest.mark.parametrize(
    ("groups_own", "problem"),
    [
        pytest.param(False, "(Pod is not owner)", id="gate off"),
        pytest.param(True, "(neither Pod nor PodGroup g is the owner)", id="gate on"),
    ],
)
def test_a_claim_of_somebody_else_is_refused(groups_own, problem):
    pod = make_pod("a", group="g")
    claim = ResourceClaim(metadata=ObjectMeta(name="c", namespace="default"))

    with pytest.raises(ClaimProblem) as refused:
        check_usable(pod, claim, must_own=True, groups_own=groups_own)

    assert str(refused.value) == (
        f"ResourceClaim default/c was not created for Pod default/a {problem}"
    )
