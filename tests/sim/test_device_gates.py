"""Feature gates of devices, from the flag to what a simulation does. The allocator's part: tests/devices."""

from __future__ import annotations

from contextlib import closing

import pytest

from mooring.config import default_config, parse_gates
from mooring.objects.manifests import read_manifests
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions, Simulation

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, %s}
---
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu%s}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: one}]
"""
EXTENDED = """
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {limits: {%s: 1}}}]
"""
CANNOT_ALLOCATE = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"


def outcome(tmp_path, gates: str, device: str, pod: str) -> str:
    """The node of the pod, or why it has none."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % device + pod)
    with closing(Simulation(SimOptions(default_config(parse_gates(gates))))) as simulation:
        simulation.load(read_manifests([path]).objects)
        simulation.settle()
        simulation.scheduler.validate()
        (found,) = simulation.api.all(Pod)
    condition = found.condition("PodScheduled")
    return found.spec.node_name or (condition.message if condition is not None else "")


@pytest.mark.parametrize(
    ("gates", "device", "pod", "expected"),
    [
        pytest.param(
            "DRADeviceTaints=false",
            "taints: [{key: broken, effect: NoSchedule}]",
            CLAIM % "",
            "n1",
            id="taints do not count",
        ),
        pytest.param(
            "DRAPartitionableDevices=false",
            "consumesCounters: [{counterSet: s, counters: {c: {value: 1}}}]",
            CLAIM % "",
            CANNOT_ALLOCATE,
            id="nothing with counters is taken",
        ),
        pytest.param(
            "DRAConsumableCapacity=false",
            "capacity: {memory: {value: 1Gi}}",
            CLAIM % ", capacity: {requests: {memory: 1Gi}}",
            'running "DynamicResources" filter plugin: claim default/one, request gpu: has capacity'
            " requests, but the DRAConsumableCapacity feature is disabled",
            id="requested capacity is an error",
        ),
        pytest.param(
            "DRADeviceBindingConditions=false",
            "bindingConditions: [ready], bindingFailureConditions: [broken]",
            CLAIM % "",
            CANNOT_ALLOCATE,
            id="no device with conditions is selected",
        ),
        pytest.param(
            "DRAExtendedResource=false",
            "bindsToNode: true",
            EXTENDED % "example.com/gpu",
            "0/1 nodes are available: 1 Insufficient example.com/gpu.",
            id="devices serve no extended resource",
        ),
        pytest.param(
            "DRAExtendedResource=false",
            "bindsToNode: true",
            EXTENDED % "deviceclass.resource.kubernetes.io/gpu",
            "0/1 nodes are available: 1 Insufficient deviceclass.resource.kubernetes.io/gpu.",
            id="nor the resource named after a class",
        ),
        pytest.param(
            "",
            "bindsToNode: true",
            EXTENDED % "example.com/gpu",
            "n1",
            id="with the gate they do",
        ),
        pytest.param(
            "DRAListTypeAttributes=true",
            "attributes: {cores: {ints: [1, 2]}}",
            CLAIM
            % ", selectors: [{cel: {expression: \"2 in device.attributes['gpu.example.com'].cores\"}}]",
            "n1",
            id="selectors use lists",
        ),
    ],
)
def test_a_gate_does_what_it_does_in_the_reference(tmp_path, gates, device, pod, expected):
    assert outcome(tmp_path, gates, device, pod).startswith(expected)
