"""Searches for devices that would take for ever: the filter's time-out ends them in virtual time, too."""

from __future__ import annotations

from time import process_time

from mooring.config import load_config
from mooring.objects.devices import DeviceConstraint
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions, Simulation
from tests.device_world import pod_with
from tests.devices.device_makers import (
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.makers import make_node

A_TENTH_OF_A_SECOND = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: 100ms}
"""


def message_about(devices, wanted, options=None) -> str:
    """What a pod with that claim is told on a node with those devices."""
    slices = [
        make_slice(*devices[at : at + 128], name=f"s{at}", slices=-(-len(devices) // 128))
        for at in range(0, len(devices), 128)
    ]
    with Simulation(options) as simulation:
        simulation.load([make_node("n1"), make_class(), *slices, wanted, pod_with("c")])
        simulation.run()
        (pod,) = simulation.api.all(Pod)
        assert not pod.node_name
        assert not simulation.errors
        simulation.scheduler.validate()
        condition = pod.condition("PodScheduled")
        assert condition is not None
        return condition.message


def test_10_000_devices_of_which_no_three_match():
    devices = [make_device(f"x{number}", attributes={"numa": number}) for number in range(10_000)]
    constraint = DeviceConstraint(match_attribute="d/numa")
    wanted = make_claim(make_request(count=3), constraints=[constraint])
    began = process_time()

    assert message_about(devices, wanted).startswith(
        "0/1 nodes are available: 1 cannot allocate all claims."
    )
    assert process_time() - began < 10


def test_a_search_without_an_end_is_a_time_out():
    """No two devices are alike, so there are 10**12 ways to choose three for the first request alone."""
    devices = [make_device(f"x{number}", attributes={"numa": number}) for number in range(10_000)]
    wanted = make_claim(make_request("r", count=3), make_request("s", "false"))
    options = SimOptions(load_config(A_TENTH_OF_A_SECOND))

    assert message_about(devices, wanted, options) == (
        'running "DynamicResources" filter plugin: node n1: timed out trying to allocate devices'
    )
