"""Plugins that want to know the workload ask the handle."""

from pathlib import Path

from mooring.config import load_config
from mooring.plugin import CycleState, Handle, NodeInfo
from mooring.plugins.registry import default_registry
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.traces.reading import read_trace
from mooring.sim.traces.replay import Replay

TRACE = read_trace(Path(__file__).parents[1] / "data" / "openb")
CONFIG = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Curious}]}}
"""


def options(told: list) -> SimOptions:
    class Curious:
        name = "Curious"

        def __init__(self, args: object, handle: Handle) -> None:
            told.extend(handle.expected_pods)

        def score(self, state: CycleState, pod: object, node: NodeInfo) -> int:
            return 0

    registry = default_registry()
    registry.add("Curious", Curious)
    return SimOptions(config=load_config(CONFIG), registry=registry)


def test_a_replay_tells_plugins_which_pods_will_come():
    told: list = []

    with Replay(TRACE, options(told)):
        assert told == [each.pod for each in TRACE.pods]


def test_without_a_trace_no_pods_are_expected():
    told: list = []

    with Simulation(options(told)):
        assert told == []
