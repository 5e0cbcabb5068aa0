from mooring.objects.quantity import Quantity
from tests.makers import (
    make_affinity_term,
    make_node,
    make_node_affinity,
    make_node_term,
    make_pod,
    make_pod_affinity,
    make_spread,
)


def test_a_maker_fills_in_what_a_case_does_not_mention():
    pod = make_pod(cpu="500m", requests={"nvidia.com/gpu": 1}, ports=[80])
    node = make_node(zone="a", taints=["gpu=h100:NoSchedule"], **{"nvidia.com/gpu": 8})

    assert pod.requests == {"cpu": 500, "nvidia.com/gpu": 1}
    assert pod.host_ports == (("0.0.0.0", "TCP", 80),)
    assert node.labels["topology.kubernetes.io/zone"] == "a"
    assert node.taints[0].refuses
    assert node.status.allocatable["nvidia.com/gpu"] == Quantity(8)


def test_affinities_are_absent_unless_given():
    term = make_affinity_term({"app": "web"})

    assert make_pod_affinity(term).pod_anti_affinity is None
    assert make_pod_affinity(anti=[term]).pod_affinity is None
    assert make_node_affinity(preferred={5: make_node_term(("a", "Exists", []))}).node_affinity
    assert make_spread(labels={"app": "web"}).when_unsatisfiable == "DoNotSchedule"
