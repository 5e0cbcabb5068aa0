"""The same pod on the same cluster, placed by kube-scheduler and by mooring: users see the same.

Each case is a cluster, a pod, and the node where it must go ("" for none). The two schedulers are given
the pod one after the other; then its node, its conditions, its Events and what `kubectl describe` makes of
them are compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_plane import MOORING, ControlPlane
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, is_gone, node_name, scheduled_condition
from tests.live.objects import DEFAULT_SCHEDULER, HOSTNAME, ZONE, node, pod
from tests.live.process import Mooring, configuration
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live

SCHEDULERS = (DEFAULT_SCHEDULER, "mooring")

GPU_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
BIG_IMAGE = {"names": ["registry.test/model:1"], "sizeBytes": 900_000_000}


@dataclass(frozen=True)
class Case:
    #: What there is beside the pod.
    cluster: list[Json]
    #: Where it goes; "" for nowhere.
    node: str
    #: What the pod asks for.
    asks: dict[str, Any] = field(default_factory=dict)


def three(**of_c: Any) -> list[Json]:
    """Three nodes in two zones, and something about the third."""
    return [
        node("node-a", zone="zone-1"),
        node("node-b", zone="zone-1"),
        node("node-c", **{"zone": "zone-2", **of_c}),
    ]


def tainted(*names: str, **spec: Any) -> list[Json]:
    return [node(name, taints=[GPU_TAINT], **spec) for name in names]


def placed(name: str, node_name: str, **given: Any) -> Json:
    """A pod that runs already."""
    return pod(name, nodeName=node_name, **given)


def prefer(key: str, value: str) -> Json:
    expressions = [{"key": key, "operator": "In", "values": [value]}]
    preferred = [{"weight": 50, "preference": {"matchExpressions": expressions}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def volume(name: str, **spec: Any) -> Json:
    """A volume that is bound to the claim of the same name."""
    document = objects.local_volume(name, "disks", "node-c")
    document["spec"] |= {"claimRef": {"namespace": "default", "name": name}, **spec}
    return document


def bound_claim(name: str, **given: Any) -> Json:
    document = objects.claim(name, "disks", **given)
    document["spec"]["volumeName"] = name
    document["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return document


def csi_volume(name: str) -> Json:
    document = volume(name, csi={"driver": "disk.test", "volumeHandle": name})
    del document["spec"]["local"], document["spec"]["nodeAffinity"]
    return document


def csi_node(name: str, most: int) -> Json:
    driver = {
        "name": "disk.test",
        "nodeID": name,
        "topologyKeys": [],
        "allocatable": {"count": most},
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def zoned_volume(name: str, zone: str) -> Json:
    document = csi_volume(name)
    document["metadata"]["labels"] = {ZONE: zone}
    return document


DISKS = objects.storage_class("disks", "kubernetes.io/no-provisioner", waits=False)
WAITING_DISKS = objects.storage_class("waiting", "kubernetes.io/no-provisioner")

APP = {"app": "shop"}

CASES = {
    "nothing special": Case([node("node-a")], "node-a"),
    "no nodes": Case([], ""),
    # NodeUnschedulable
    "cordoned nodes": Case(
        [node("node-a", unschedulable=True), node("node-b"), node("node-c", unschedulable=True)],
        "node-b",
    ),
    "all nodes cordoned": Case([node("node-a", unschedulable=True)], ""),
    # NodeAffinity
    "node selector": Case(
        three(labels={"disk": "ssd"}), "node-c", {"nodeSelector": {"disk": "ssd"}}
    ),
    "node selector of no node": Case(three(), "", {"nodeSelector": {"disk": "ssd"}}),
    "required node affinity": Case(
        three(), "node-c", {"affinity": objects.required_node_affinity(ZONE, "zone-2")}
    ),
    "preferred node affinity": Case(three(), "node-c", {"affinity": prefer(ZONE, "zone-2")}),
    # TaintToleration
    "taints": Case([*tainted("node-a", "node-b"), node("node-c")], "node-c"),
    "taints everywhere": Case(tainted("node-a", "node-b"), ""),
    "tolerated taint": Case(
        tainted("node-a"), "node-a", {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    ),
    # NodePorts
    "host port": Case(
        [
            *three(unschedulable=True),
            placed("other", "node-a", ports=[{"containerPort": 80, "hostPort": 8080}]),
        ],
        "node-b",
        {"ports": [{"containerPort": 80, "hostPort": 8080}]},
    ),
    "host port in use everywhere": Case(
        [
            node("node-a"),
            placed("other", "node-a", ports=[{"containerPort": 80, "hostPort": 8080}]),
        ],
        "",
        {"ports": [{"containerPort": 80, "hostPort": 8080}]},
    ),
    # NodeResourcesFit, NodeResourcesBalancedAllocation
    "too big for most": Case([node("node-a", cpu="2"), node("node-b")], "node-b", {"cpu": "3"}),
    "too big for all": Case(
        [node("node-a", cpu="2"), node("node-b", cpu="2", memory="1Gi"), *tainted("node-c")],
        "",
        {"cpu": "3", "memory": "2Gi"},
    ),
    "extended resource": Case(
        three(resources={"gpu.test/gpu": "2"}), "node-c", {"resources": {"gpu.test/gpu": "1"}}
    ),
    "extended resource that is used up": Case(
        [
            *three(resources={"gpu.test/gpu": "2"}),
            placed("other", "node-c", resources={"gpu.test/gpu": "2"}),
        ],
        "",
        {"resources": {"gpu.test/gpu": "1"}},
    ),
    "no room for another pod": Case(
        [node("node-a", pods=1), placed("other", "node-a", cpu="0", memory="0")], ""
    ),
    "the emptiest node": Case(
        [*three(), placed("x", "node-a", cpu="1"), placed("y", "node-c", cpu="2")], "node-b"
    ),
    # ImageLocality
    "the node that has the image": Case(
        three(images=[BIG_IMAGE]), "node-c", {"image": "registry.test/model:1"}
    ),
    # PodTopologySpread
    "spread": Case(
        [*three(), placed("other", "node-a", labels=APP)],
        "node-c",
        {"labels": APP, "topologySpreadConstraints": [objects.spread(APP, ZONE)]},
    ),
    "spread that nothing satisfies": Case(
        [
            node("node-a", zone="zone-1"),
            node("node-b"),
            node("node-c", zone="zone-2", unschedulable=True),
            placed("other", "node-a", labels=APP),
        ],
        "",
        {"labels": APP, "topologySpreadConstraints": [objects.spread(APP, ZONE)]},
    ),
    # InterPodAffinity
    "pod affinity": Case(
        [*three(), placed("other", "node-c", labels=APP)],
        "node-c",
        {"affinity": objects.required_pod_affinity(APP, HOSTNAME)},
    ),
    "pod affinity to nobody": Case(
        three(), "", {"affinity": objects.required_pod_affinity(APP, HOSTNAME)}
    ),
    "pod anti-affinity": Case(
        [*three(), placed("other", "node-a", labels=APP)],
        "node-c",
        {"affinity": objects.required_pod_affinity(APP, ZONE, anti=True)},
    ),
    "pod anti-affinity to all": Case(
        [node("node-a"), placed("other", "node-a", labels=APP)],
        "",
        {"affinity": objects.required_pod_affinity(APP, HOSTNAME, anti=True)},
    ),
    "anti-affinity of another": Case(
        [
            node("node-a"),
            placed(
                "other", "node-a", affinity=objects.required_pod_affinity(APP, HOSTNAME, anti=True)
            ),
        ],
        "",
        {"labels": APP},
    ),
    # VolumeBinding
    "volume of one node": Case(
        [*three(), DISKS, volume("data"), bound_claim("data")], "node-c", {"claims": ("data",)}
    ),
    "volume of a node that is gone": Case(
        [node("node-a"), DISKS, volume("data"), bound_claim("data")], "", {"claims": ("data",)}
    ),
    "no such claim": Case([node("node-a")], "", {"claims": ("data",)}),
    "claim that nobody bound": Case(
        [node("node-a"), DISKS, objects.claim("data", "disks")], "", {"claims": ("data",)}
    ),
    "no volume for the claim": Case(
        [node("node-a"), WAITING_DISKS, objects.claim("data", "waiting")], "", {"claims": ("data",)}
    ),
    # VolumeZone
    "volume of one zone": Case(
        [*three(), DISKS, zoned_volume("data", "zone-2"), bound_claim("data")],
        "node-c",
        {"claims": ("data",)},
    ),
    "volume of another zone": Case(
        [*three(), DISKS, zoned_volume("data", "zone-3"), bound_claim("data")],
        "",
        {"claims": ("data",)},
    ),
    # VolumeRestrictions
    "claim for one pod alone": Case(
        [
            node("node-a"),
            DISKS,
            csi_volume("data"),
            bound_claim("data", mode="ReadWriteOncePod"),
            placed("other", "node-a", claims=("data",)),
        ],
        "",
        {"claims": ("data",)},
    ),
    # NodeVolumeLimits
    "too many volumes": Case(
        [
            node("node-a"),
            DISKS,
            csi_node("node-a", most=1),
            *(csi_volume("data"), bound_claim("data")),
            *(csi_volume("more"), bound_claim("more")),
            placed("other", "node-a", claims=("more",)),
        ],
        "",
        {"claims": ("data",)},
    ),
    # DefaultPreemption
    "nobody to preempt": Case(
        [node("node-a", cpu="2"), placed("other", "node-a", cpu="2", priorityClassName="high")],
        "",
        {"cpu": "1", "priorityClassName": "low"},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def schedulers(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """kube-scheduler for the pods that name nobody, mooring for those that name it."""
    theirs = control_plane.start_scheduler()
    folder = tmp_path_factory.mktemp("like")
    kubeconfig = control_plane.kubeconfig(MOORING)
    ours = Mooring("mooring", folder, kubeconfig, configuration("mooring"))
    ours.start()
    ours.wait_until_ready()
    yield
    theirs.kill()
    ours.kill()
    print(ours.log.read_text()[-5000:])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_users_see_the_same(cluster: Cluster, case: Case) -> None:
    cluster.add(objects.priority_class("low", 10), objects.priority_class("high", 1000))
    for document in case.cluster:
        cluster.add(document)

    # What was just made or removed may reach one scheduler before the other, and be told.
    for attempt in range(4):
        time.sleep(0.3 * (attempt + 1))
        theirs, ours = (story(cluster, case, scheduler) for scheduler in SCHEDULERS)
        if theirs == ours:
            break
    assert ours == theirs
    assert ours["node"] == case.node


def story(cluster: Cluster, case: Case, scheduler: str) -> dict[str, Any]:
    """All that users can see of what a scheduler did with the pod."""
    uid = cluster.client.create(pod("it", scheduler=scheduler, **case.asks))["metadata"]["uid"]

    def events() -> list[Json]:
        return [each for each in cluster.events_of("it") if each["regarding"]["uid"] == uid]

    wait_for(lambda: scheduled_condition(cluster.pod("it")), f"{scheduler} decided")
    wait_for(events, f"{scheduler} told")
    seen = cluster.pod("it")
    told = {
        "node": node_name(seen),
        "nominated": seen["status"].get("nominatedNodeName"),
        "conditions": [_without_times(each) for each in seen["status"]["conditions"]],
        "events": [_told(each, scheduler) for each in events()],
        "description": _described(
            cluster.control_plane.kubectl("describe", "pod", "it"), scheduler
        ),
    }
    cluster.client.delete("Pod", "it", grace_s=0)
    cluster.client.delete_all("Event")
    wait_for(lambda: is_gone(cluster.client, "it"), "the pod is gone")
    return told


def _without_times(condition: Json) -> Json:
    return {key: value for key, value in condition.items() if not key.endswith("Time")}


def _told(event: Json, scheduler: str) -> Json:
    assert event["reportingController"] == scheduler
    assert event["reportingInstance"].startswith(f"{scheduler}-")
    keys = ("type", "reason", "action", "note", "related", "series")
    regarding = set(event["regarding"]) - {"uid", "resourceVersion"}
    return {key: event.get(key) for key in keys} | {"regarding": sorted(regarding)}


def _described(text: str, scheduler: str) -> list[list[str]]:
    """The lines on conditions and Events, without ages."""
    told = text[text.index("Conditions:") :].replace(scheduler, "SCHEDULER")
    kept = re.sub(r"^Volumes:.*?^(?=QoS)", "", told, flags=re.MULTILINE | re.DOTALL)
    words = [re.split(r"\s{2,}", line.strip()) for line in kept.splitlines()]
    return [
        [word for word in line if not re.fullmatch(r"<?\w+>?( ago)?|-+", word)] for line in words
    ]
