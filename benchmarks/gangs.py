"""How fast gangs are bound, in the shapes of upstream's benchmarks.

    python benchmarks/gangs.py
    python benchmarks/gangs.py --nodes 1000 --output json

1,000 gangs of 4 and 3 gangs of 1,000, without a topology constraint and within one rack of 50 nodes; and the
same pods without groups, as a baseline of the same run. A run is a whole simulation (queue, cycle, binding,
watch) after the nodes are known. Before a time counts, every gang must be bound whole, and in one rack if it
has to be. Times are processor time, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from mooring.config import FeatureGates, default_config
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node, NodeStatus
from mooring.objects.pod import Container, Pod, PodSpec, ResourceRequirements, SchedulingGroup
from mooring.objects.pod_groups import (
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from mooring.objects.quantity import parse_quantity
from mooring.sim.simulation import SimOptions, Simulation

RACK = "example.com/rack"
NODES_PER_RACK = 50

GANGS = ("GenericWorkload", "GangScheduling")
BY_RACK = (*GANGS, "TopologyAwareWorkloadScheduling")


@dataclass(frozen=True, slots=True)
class Result:
    shape: str
    gangs: int
    size: int
    members_per_s: float
    #: Relative to the same pods without groups.
    ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    results = list(measure(options.nodes))
    if options.output == "json":
        json.dump([asdict(result) for result in results], sys.stdout, indent=1)
        return
    for result in results:
        print(
            f"{result.gangs:>5} × {result.size:<5} {result.shape:<10}"
            f" {result.members_per_s:>8,.0f} members/s  {result.ratio:.2f}"
        )


def measure(nodes: int) -> Iterator[Result]:
    for gangs, size in ((1000, 4), (3, 1000)):
        alone = run(nodes, gangs, size, ())
        yield Result("no groups", gangs, size, alone, 1.0)
        for shape, gates in (("gangs", GANGS), ("in racks", BY_RACK)):
            speed = run(nodes, gangs, size, gates)
            yield Result(shape, gangs, size, speed, speed / alone)


def run(nodes: int, gangs: int, size: int, gates: tuple[str, ...]) -> float:
    """Members bound per second of processor time."""
    config = default_config(FeatureGates(dict.fromkeys(gates, True)))
    with Simulation(SimOptions(config=config)) as simulation:
        simulation.load(node(number) for number in range(nodes))
        simulation.settle()
        simulation.load(workload(gangs, size, in_groups=bool(gates), in_racks=gates == BY_RACK))
        gc.collect()
        gc.disable()
        try:
            began = time.process_time()
            simulation.run()
            spent_s = time.process_time() - began
        finally:
            gc.enable()
        check(simulation, gangs * size, in_racks=gates == BY_RACK)
    return gangs * size / spent_s


def check(simulation: Simulation, members: int, *, in_racks: bool) -> None:
    racks = defaultdict(set)
    bound = 0
    for pod in simulation.api.all(Pod):
        bound += bool(pod.node_name)
        racks[pod.labels["job"]].add(int(pod.node_name.partition("-")[2]) // NODES_PER_RACK)
    assert bound == members, f"{bound} of {members} pods are bound"
    assert not simulation.errors, simulation.errors
    if in_racks:
        assert all(len(used) == 1 for used in racks.values()), "a gang is in two racks"


def node(number: int) -> Node:
    name = f"node-{number}"
    offers = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return Node(
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            uid=name,
            labels={"kubernetes.io/hostname": name, RACK: str(number // NODES_PER_RACK)},
        ),
        status=NodeStatus(
            allocatable={name: parse_quantity(text) for name, text in offers.items()}
        ),
    )


def workload(gangs: int, size: int, *, in_groups: bool, in_racks: bool) -> Iterator[KubeObject]:
    requests = {"cpu": parse_quantity("1"), "memory": parse_quantity("1Gi")}
    container = Container(name="c", resources=ResourceRequirements(requests=requests))
    constraints = SchedulingConstraints(topology=[TopologyConstraint(key=RACK)])
    for gang in range(gangs):
        name = f"job-{gang}"
        if in_groups:
            yield PodGroup(
                kind="PodGroup",
                metadata=ObjectMeta(name=name, namespace="default", uid=f"group-{name}"),
                spec=PodGroupSpec(
                    scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=size)),
                    scheduling_constraints=constraints if in_racks else None,
                ),
            )
        group = SchedulingGroup(pod_group_name=name) if in_groups else None
        spec = PodSpec(containers=[container], scheduling_group=group)
        for member in range(size):
            pod_name = f"{name}-{member}"
            yield Pod(
                kind="Pod",
                metadata=ObjectMeta(
                    name=pod_name, namespace="default", uid=pod_name, labels={"job": name}
                ),
                spec=spec,
            )


if __name__ == "__main__":
    main()
