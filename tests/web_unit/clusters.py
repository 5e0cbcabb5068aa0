"""Small clusters for the page's tests, each with something of everything that it shows."""

from __future__ import annotations

from mooring.objects.defaults import Defaults
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.api import RUN_SECONDS
from mooring.sim.traces.trace import Trace, TracePod
from mooring.web.run import Run
from mooring.web.run_spec import RunSpec
from tests.makers import make_node, make_owner, make_pod

#: Fits on no node.
BIG = "default/big"
#: Goes to a node.
WEB = "default/web-1"
#: Came with its node.
THERE = "default/there"
GATED = "default/gated"

#: Markup, a script, and ways out of a script element, a comment and an attribute.
HOSTILE = "</script><script>alert(1)</script><!--\"'&\u2028<img src=x onerror=alert(1)>"


def run_spec(*more: KubeObject) -> RunSpec:
    objects = [
        make_node("n1", cpu=4, memory="8Gi", zone="a"),
        make_node("n2", cpu=4, memory="8Gi", zone="b"),
        make_node("gpu", cpu=8, zone="b", taints=["gpu=yes:NoSchedule"]),
        make_node("shut", cpu=8, zone="a", unschedulable=True),
        make_pod("there", cpu=1, node="n1", labels={"app": "there"}),
        *(
            make_pod(
                f"web-{i}", cpu="500m", labels={"app": "web"}, owner=make_owner("ReplicaSet", "web")
            )
            for i in range(1, 4)
        ),
        make_pod("big", cpu=6),
        make_pod("gated", cpu=1, gates=["wait"]),
        make_pod("short", cpu=1, annotations={RUN_SECONDS: "10"}),
        *more,
    ]
    defaults = Defaults(objects)
    return RunSpec(tuple(defaults.of(obj) for obj in objects))


def trace_run_spec() -> RunSpec:
    """Two pods want the one node; the second waits until the first is over."""
    nodes = [make_node("n1", cpu=2)]
    defaults = Defaults(nodes)
    pods = [
        TracePod(_complete(defaults, make_pod("first", cpu=2)), 0.0, run_s=60.0),
        TracePod(_complete(defaults, make_pod("second", cpu=2)), 10.0, run_s=30.0),
        TracePod(_complete(defaults, make_pod("never", cpu=4)), 20.0, leaves_s=100.0),
    ]
    return RunSpec.of_trace(Trace("a trace", nodes, pods))


def run_of(given: RunSpec) -> Run:
    return Run.of(given, lambda attempts: None)


def _complete(defaults: Defaults, pod: Pod) -> Pod:
    complete = defaults.of(pod)
    assert isinstance(complete, Pod)
    return complete
