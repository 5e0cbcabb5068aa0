"""DeviceTaintRules: an administrator taints the devices of a driver, and pods stay off them."""

from __future__ import annotations

import pytest

from mooring.config import default_config
from mooring.config.gates import FeatureGates
from mooring.objects.devices import DeviceTaintRule
from mooring.objects.manifests import read_manifests
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions, Simulation

ON = FeatureGates({"DRADeviceTaintRules": True})

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu%s}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: one}]
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: broken}
spec:
%s
  taint: {key: broken, effect: NoSchedule}
"""
TOLERATES = ", tolerations: [{key: broken, operator: Exists}]"
ALL = ""
ONE = "  deviceSelector: {driver: gpu.example.com, pool: n1, device: gpu-0}"
OTHER_DRIVER = "  deviceSelector: {driver: nic.example.com}"
OTHER_POOL = "  deviceSelector: {pool: n2}"


def start(tmp_path, *, selector=ALL, toleration="", gates=ON):
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % (toleration, selector))
    simulation = Simulation(SimOptions(default_config(gates)))
    simulation.load(read_manifests([path]).objects)
    simulation.settle()
    return simulation


def device_of(simulation):
    claim = next(iter(simulation.scheduler.cluster.claims.all()))
    allocation = claim.status.allocation
    return allocation.devices.results[0].device if allocation is not None else None


@pytest.mark.parametrize(
    ("options", "device"),
    [
        pytest.param({}, None, id="a rule without a selector taints every device"),
        pytest.param({"selector": ONE}, "gpu-1", id="only the selected device is tainted"),
        pytest.param({"selector": OTHER_DRIVER}, "gpu-0", id="another driver"),
        pytest.param({"selector": OTHER_POOL}, "gpu-0", id="another pool"),
        pytest.param({"toleration": TOLERATES}, "gpu-0", id="the request tolerates the taint"),
        pytest.param({"gates": FeatureGates()}, "gpu-0", id="without the gate, rules do not count"),
    ],
)
def test_a_rule_keeps_pods_off_the_devices_that_it_selects(tmp_path, options, device):
    with start(tmp_path, **options) as simulation:
        assert device_of(simulation) == device
        simulation.scheduler.validate()


def test_a_pod_is_tried_again_when_the_rule_is_gone(tmp_path):
    with start(tmp_path) as simulation:
        assert device_of(simulation) is None

        simulation.api.delete(next(iter(simulation.api.all(DeviceTaintRule))))
        simulation.settle()

        assert device_of(simulation) == "gpu-0"
        assert next(iter(simulation.api.all(Pod))).node_name == "n1"
        simulation.scheduler.validate()


def test_a_rule_that_selects_other_devices_than_before_frees_the_first(tmp_path):
    with start(tmp_path) as simulation:
        rule = next(iter(simulation.api.all(DeviceTaintRule)))
        raw = CLUSTER % ("", OTHER_POOL)
        path = tmp_path / "changed.yaml"
        path.write_text(raw)
        (changed,) = (
            obj for obj in read_manifests([path]).objects if isinstance(obj, DeviceTaintRule)
        )
        assert changed.name == rule.name

        simulation.api.update(changed)
        simulation.settle()

        assert device_of(simulation) == "gpu-0"
        simulation.scheduler.validate()
