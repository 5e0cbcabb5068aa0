"""Without nodes one pod stands for all that share its spec; the report is that of a run with every pod."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mooring.config import load_config
from mooring.framework.status import Status, unresolvable
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.sim.build_report import build_report, simulate_objects
from mooring.sim.report import SimulationReport
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.without_nodes import represented
from tests.makers import make_claim_volume, make_group, make_node, make_pod

OPTIONS = SimOptions(tries_without_nodes=False)


def pods_like(first: Pod, number: int) -> list[Pod]:
    """Pods of one template: they share everything but names."""
    named = (f"{first.name}-{i}" for i in range(number))
    return [replace(first, metadata=replace(first.metadata, name=name, uid=name)) for name in named]


def with_every_pod(objects: Sequence[KubeObject], options: SimOptions) -> SimulationReport:
    with Simulation(options) as simulation:
        simulation.load(objects)
        simulation.run()
        return build_report(simulation)


def created(objects: Sequence[KubeObject], options: SimOptions = OPTIONS) -> int | None:
    """How many objects are created; None if every pod is asked about by itself."""
    with Simulation(options) as simulation:
        few = represented(objects, simulation.scheduler)
    return None if few is None else len(few.objects)


TEMPLATES = [
    make_pod("plain"),
    make_pod("important", priority=7),
    make_pod("gated", gates=["example.com/wait"]),
    make_pod("elsewhere", scheduler="somebody-else"),
    make_pod("stateful", volumes=[make_claim_volume("data")]),
    make_pod("timed", annotations={"mooring.dev/run-seconds": "30"}),
]


def test_the_report_is_that_of_a_run_with_every_pod():
    rng = random.Random(5)
    pods = [pod for template in TEMPLATES for pod in pods_like(template, 12)]
    rng.shuffle(pods)
    for i in rng.sample(range(len(pods)), 10):
        pods[i] = replace(pods[i], status=replace(pods[i].status, phase="Succeeded"))
    for i in rng.sample(range(len(pods)), 10):
        gone = replace(pods[i].metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
        pods[i] = replace(pods[i], metadata=gone)
    for i in rng.sample(range(len(pods)), 10):
        pods[i] = replace(pods[i], status=replace(pods[i].status, nominated_node_name="gone"))

    assert simulate_objects(pods, OPTIONS) == with_every_pod(pods, OPTIONS)
    number = created(pods)
    assert number is not None
    assert number < len(pods) - 15


def test_pods_of_one_template_are_created_once():
    assert created(pods_like(make_pod("web"), 50)) == 1


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(make_node("n"), id="a node"),
        pytest.param(make_group("g"), id="a pod group"),
        pytest.param(make_pod("g", annotations={"mooring.dev/gang": "true"}), id="a gang"),
    ],
)
def test_every_pod_is_created_if_pods_may_depend_on_each_other(more):
    pods = pods_like(make_pod("web"), 5)

    assert created([*pods, more]) is None
    assert created([more, *pods]) is None


class OneAtATime:
    """Lets one pod into the queue and holds back the others."""

    name = "OneAtATime"

    def __init__(self, *_: object) -> None:
        self.first = ""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.first = self.first or pod.name
        return None if pod.name == self.first else unresolvable("another pod was first")


def test_plugins_of_others_are_asked_about_every_pod():
    registry = default_registry()
    registry.add("OneAtATime", OneAtATime)
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"preEnqueue": {"enabled": [{"name": "OneAtATime"}]}}}],
        }
    )
    options = SimOptions(config=config, registry=registry, tries_without_nodes=False)
    pods = pods_like(make_pod("web"), 5)

    report = simulate_objects(pods, options)

    assert [each.state for each in report.pending] == ["unschedulable", *["gated"] * 4]
