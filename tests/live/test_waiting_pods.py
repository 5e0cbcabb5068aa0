"""Pods that wait on purpose: for their gates to open, for Permit, for a change of the cluster."""

from __future__ import annotations

import pytest
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, node_name, scheduled_condition
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import Mooring, configuration
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live


def gang_configuration(timeout_s: int) -> Json:
    """The plugin of the third example."""
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {"multiPoint": {"enabled": [{"name": "gang:Gang"}]}},
        "pluginConfig": [{"name": "gang:Gang", "args": {"timeoutSeconds": timeout_s}}],
    }
    return configuration(profiles=[profile])


def gang(count: int, *, size: int, first: int = 0) -> list[Json]:
    labels = {"gang": "crew", "gang-size": str(size)}
    return [
        objects.pod(f"crew-{number}", cpu="1", labels=labels)
        for number in range(first, first + count)
    ]


def test_a_gated_pod_waits_untold_until_its_last_gate_is_gone(
    cluster: Cluster, mooring: Mooring
) -> None:
    gates = [{"name": "quota.test/checked"}, {"name": "licence.test/checked"}]
    cluster.add(objects.node("node-a"), objects.pod("gated", schedulingGates=gates))
    cluster.add(objects.pod("free"))
    cluster.wait_until_bound("free")

    cluster.client.patch("Pod", "gated", {"spec": {"schedulingGates": gates[:1]}})
    hold_for(lambda: not node_name(cluster.pod("gated")), "the pod is pending", seconds=1)
    condition = scheduled_condition(cluster.pod("gated"))
    assert condition is not None
    assert condition["reason"] == "SchedulingGated"
    assert cluster.events_of("gated") == []

    cluster.client.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
    assert cluster.wait_until_bound()["gated"] == "node-a"


def test_a_gang_starts_when_it_is_whole(cluster: Cluster, start_mooring: StartMooring) -> None:
    start_mooring(gang_configuration(timeout_s=60))
    cluster.add(*(objects.node(f"node-{number}", cpu="1") for number in range(3)))
    cluster.add(*gang(2, size=3))

    wait_for(
        lambda: all(pod["status"].get("nominatedNodeName") for pod in cluster.pods()),
        "two have a node in view",
    )
    hold_for(lambda: not any(map(node_name, cluster.pods())), "nobody is bound", seconds=1)

    cluster.add(*gang(1, size=3, first=2))
    assert len(set(cluster.wait_until_bound().values())) == 3
    cluster.check_books()


def test_a_gang_that_is_not_whole_in_time_gives_its_places_back(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    mooring = start_mooring(gang_configuration(timeout_s=2))
    cluster.add(*(objects.node(f"node-{number}", cpu="1") for number in range(2)))
    cluster.add(*gang(2, size=3))

    cluster.wait_until_refused(
        "crew-0", saying="rejected due to timeout after waiting 2s at plugin"
    )
    cluster.add(objects.pod("single", cpu="1"))
    cluster.wait_until_bound("single")
    assert mooring.metric("scheduler_permit_wait_duration_seconds_count") >= 2

    cluster.add(*(objects.node(f"late-{number}", cpu="1") for number in range(2)))
    cluster.add(*gang(1, size=3, first=2))
    cluster.wait_until_bound()
    cluster.check_books()


@pytest.mark.parametrize("what", ["node", "label", "taint", "room", "pod"])
def test_a_pod_that_fits_nowhere_goes_as_soon_as_it_fits(
    cluster: Cluster, mooring: Mooring, what: str
) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    cluster.add(objects.node("node-a", taints=[taint] if what == "taint" else []))
    asks: dict[str, Json] = {
        "node": {"nodeSelector": {"disk": "ssd"}},
        "label": {"nodeSelector": {"disk": "ssd"}},
        "taint": {},
        "room": {"cpu": "3"},
        "pod": {"affinity": objects.required_pod_affinity({"app": "shop"}, objects.HOSTNAME)},
    }
    cluster.add(objects.pod("there", cpu="2", nodeName="node-a"))
    cluster.add(objects.pod("waits", **asks[what]))
    cluster.wait_until_refused("waits")
    cluster.wait_for_event("waits", "FailedScheduling")

    match what:
        case "node":
            cluster.add(objects.node("node-b", labels={"disk": "ssd"}))
        case "label":
            cluster.client.patch("Node", "node-a", {"metadata": {"labels": {"disk": "ssd"}}})
        case "taint":
            cluster.client.patch("Node", "node-a", {"spec": {"taints": None}})
        case "room":
            cluster.client.delete("Pod", "there")
        case "pod":
            cluster.client.patch("Pod", "there", {"metadata": {"labels": {"app": "shop"}}})

    # Sooner than the flush of pods that waited too long (five minutes).
    cluster.wait_until_bound("waits", within_s=30)
    condition = scheduled_condition(cluster.pod("waits"))
    assert condition is not None
    assert condition["status"] == "True"
