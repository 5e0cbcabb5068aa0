"""Pods that make room: victims really go, and only those that must."""

from __future__ import annotations

import pytest
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, is_gone, node_name
from tests.live.process import Mooring
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live

LOW = objects.priority_class("low", 10)
HIGH = objects.priority_class("high", 1000)
POLITE = objects.priority_class("polite", 1000) | {"preemptionPolicy": "Never"}


def full_node(name: str) -> list[Json]:
    """A node with room for two, and two on it."""
    return [
        objects.node(name, cpu="2"),
        *(
            objects.pod(f"{name}-{number}", cpu="1", nodeName=name, priorityClassName="low")
            for number in range(2)
        ),
    ]


@pytest.fixture(autouse=True)
def priorities(cluster: Cluster) -> None:
    cluster.add(LOW, HIGH, POLITE)


def test_a_pod_of_higher_priority_evicts_as_few_as_it_needs(
    cluster: Cluster, mooring: Mooring
) -> None:
    cluster.add(*full_node("node-a")[:1])
    cluster.add(*full_node("node-a")[1:])

    cluster.add(objects.pod("urgent", cpu="1", priorityClassName="high"))

    cluster.wait_until_bound("urgent")
    left = [name for name in ("node-a-0", "node-a-1") if not is_gone(cluster.client, name)]
    assert len(left) == 1
    [victim] = {"node-a-0", "node-a-1"} - set(left)
    told = cluster.wait_for_event(victim, "Preempted")
    assert (told["type"], told["action"]) == ("Normal", "Preempting")
    assert told["note"].startswith("Preempted by pod ")
    cluster.wait_for_event("urgent", "Scheduled")
    cluster.check_books()


def test_a_victim_that_takes_its_time_is_waited_for_under_a_nomination(
    cluster: Cluster, mooring: Mooring
) -> None:
    cluster.add(objects.node("node-a", cpu="2"))
    slow = objects.pod(
        "slow",
        cpu="2",
        nodeName="node-a",
        priorityClassName="low",
        terminationGracePeriodSeconds=300,
    )
    cluster.add(slow)

    cluster.add(objects.pod("urgent", cpu="2", priorityClassName="high"))
    cluster.add(objects.pod("small", cpu="1", priorityClassName="low"))

    wait_for(
        lambda: cluster.pod("urgent")["status"].get("nominatedNodeName") == "node-a",
        "urgent is nominated",
    )
    # It is sent away beside that, a little earlier or later.
    wait_for(lambda: "deletionTimestamp" in cluster.pod("slow")["metadata"], "slow is leaving")
    victim = cluster.pod("slow")
    condition = next(
        each for each in victim["status"]["conditions"] if each["type"] == "DisruptionTarget"
    )
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert not node_name(cluster.pod("urgent"))

    # The kubelet says that it has ended.
    cluster.client.delete("Pod", "slow", grace_s=0)
    cluster.wait_until_bound("urgent")
    cluster.wait_until_refused("small")
    assert not node_name(cluster.pod("small")), "the place was held for somebody else"
    cluster.check_books()


def test_a_budget_is_kept_where_there_is_a_choice(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.node("node-a", cpu="1"), objects.node("node-b", cpu="1"))
    cluster.client.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guarded", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
        }
    )
    cluster.add(
        objects.pod(
            "guarded",
            cpu="1",
            nodeName="node-a",
            labels={"app": "guarded"},
            priorityClassName="low",
        ),
        objects.pod("free", cpu="1", nodeName="node-b", priorityClassName="low"),
    )

    cluster.add(objects.pod("urgent", cpu="1", priorityClassName="high"))

    assert cluster.wait_until_bound("urgent")["urgent"] == "node-b"
    assert not is_gone(cluster.client, "guarded")


def test_nobody_is_evicted_for_a_pod_that_would_still_not_fit(
    cluster: Cluster, mooring: Mooring
) -> None:
    for document in full_node("node-a"):
        cluster.add(document)

    cluster.add(objects.pod("huge", cpu="3", priorityClassName="high"))
    cluster.add(objects.pod("polite", cpu="1", priorityClassName="polite"))

    cluster.wait_until_refused("huge")
    condition = cluster.wait_until_refused("polite")
    assert "not eligible" in condition["message"].lower()
    hold_for(lambda: len(cluster.pods()) == 4, "all pods are there", seconds=1)


def test_many_preemptors_at_once_take_many_victims(cluster: Cluster, mooring: Mooring) -> None:
    names = [f"node-{number}" for number in range(10)]
    cluster.add(*(full_node(name)[0] for name in names))
    cluster.add(*(pod for name in names for pod in full_node(name)[1:]))

    urgent = objects.pods("urgent", 10, cpu="2", priorityClassName="high")
    cluster.add(*urgent)

    bound = cluster.wait_until_bound(*(pod["metadata"]["name"] for pod in urgent))
    assert sorted(bound[pod["metadata"]["name"]] for pod in urgent) == sorted(names)
    assert len(cluster.pods()) == 10
    cluster.check_books()
