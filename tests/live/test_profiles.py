"""Several profiles in one process, and another scheduler beside it."""

from __future__ import annotations

import pytest
from control_plane import KUBE_SCHEDULER, MOORING

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import Mooring, configuration
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live

PACKING = {
    "schedulerName": "packing",
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        }
    ],
}


def test_each_profile_places_its_pods_by_its_own_rules(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    cluster.add(objects.node("busy"), objects.node("idle"))
    cluster.add(objects.pod("there", nodeName="busy", cpu="1", memory="2Gi"))
    start_mooring(configuration("spreading", profiles=[PACKING]))

    cluster.add(
        objects.pod("spread", scheduler="spreading"), objects.pod("pack", scheduler="packing")
    )

    cluster.wait_until_bound("spread", "pack")
    assert cluster.nodes_of(["spread", "pack"]) == {"spread": "idle", "pack": "busy"}
    for name, profile in (("spread", "spreading"), ("pack", "packing")):
        event = cluster.wait_for_event(name, "Scheduled")
        assert event["reportingController"] == profile


def test_pods_of_other_schedulers_are_left_alone(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.node("node-a"), objects.pod("theirs", scheduler="someone-else"))
    cluster.add(objects.pod("ours"))
    cluster.wait_until_bound("ours")

    hold_for(lambda: not node_name(cluster.pod("theirs")), "theirs is pending", seconds=1)
    assert cluster.pod("theirs")["status"].get("conditions", []) == []
    assert cluster.events_of("theirs") == []


def test_two_schedulers_share_a_cluster_and_no_pods(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    kube_scheduler = cluster.control_plane.start_scheduler()
    mooring = start_mooring(configuration("mooring"))
    cluster.add(*(objects.node(f"node-{number}", cpu="64", memory="64Gi") for number in range(10)))

    cluster.add(
        *(
            pod
            for number in range(150)
            for pod in (
                objects.pod(f"theirs-{number}"),
                objects.pod(f"ours-{number}", scheduler="mooring"),
            )
        )
    )
    cluster.wait_until_bound()
    wait_for(
        lambda: mooring.metric("scheduler_schedule_attempts_total", result="scheduled") == 150,
        "mooring counts its 150 pods",
    )
    kube_scheduler.kill()

    cluster.check_books()
    assert {
        (pod.split("/")[1].split("-")[0], user) for pod, user, _ in cluster.answers_to_binds()
    } == {
        ("ours", MOORING.name),
        ("theirs", KUBE_SCHEDULER.name),
    }
    assert {status for _, _, status in cluster.answers_to_binds()} == {201}


def test_unknown_to_a_pod_its_profile_may_be_one_of_many(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    names = [DEFAULT_SCHEDULER, *(f"profile-{number}" for number in range(5))]
    start_mooring(configuration(*names))
    cluster.add(objects.node("node-a"))

    cluster.add(*(objects.pod(f"of-{name}", scheduler=name) for name in names))

    assert set(cluster.wait_until_bound().values()) == {"node-a"}
