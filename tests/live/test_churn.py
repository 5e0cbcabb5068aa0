"""Two minutes in the life of a cluster (an hour with `MOORING_CHURN_S=3600`), with users who never rest."""

from __future__ import annotations

import os
import random
import time

import pytest
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.process import Mooring
from tests.live.waiting import wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(0)]

CHURN_S = float(os.environ.get("MOORING_CHURN_S", "120"))
SEED = int(os.environ.get("MOORING_CHURN_SEED", "1"))

#: What is allocated once, and what a heap grows by before it has seen everything, is no leak.
WARM_UP_S = CHURN_S / 4
MOST_GROWTH = 1.15

#: So many that all pods fit if one of them is missing.
NODES = 20
MOST_PODS = 200

KINDS: dict[str, Json] = {
    "plain": {},
    "spread": {
        "labels": {"app": "spread"},
        "topologySpreadConstraints": [
            {**objects.spread({"app": "spread"}, objects.ZONE), "maxSkew": 60}
        ],
    },
    "apart": {
        "labels": {"app": "apart"},
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 10,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": {"app": "apart"}},
                            "topologyKey": objects.HOSTNAME,
                        },
                    }
                ]
            }
        },
    },
    "tolerant": {"tolerations": [{"key": "old", "operator": "Exists"}]},
}


class Users:
    """Everybody who uses the cluster, and the controllers that work for them."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.client = cluster, cluster.client
        self.random = random.Random(seed)
        self.made = 0
        self.nodes: list[str] = []
        for _ in range(NODES):
            self.add_node()

    def act(self) -> None:
        acts = [self.scale_up, self.scale_up, self.scale_down, self.finish, self.replace_node]
        self.random.choice(acts)()

    def scale_up(self) -> None:
        count = min(self.random.randint(5, 30), MOST_PODS - len(self.cluster.pods()))
        kind = self.random.choice(list(KINDS))
        self.made += 1
        if count > 0:
            self.cluster.add(*objects.pods(f"{kind}-{self.made}", count, cpu="250m", **KINDS[kind]))

    def scale_down(self) -> None:
        """Some of them have a node, some have not, some are about to."""
        for pod in self._some_pods():
            self.client.delete("Pod", pod["metadata"]["name"], grace_s=0)

    def finish(self) -> None:
        """Some have done their work."""
        for pod in self._some_pods():
            if node_name(pod):
                name = pod["metadata"]["name"]
                self.client.patch("Pod", name, {"status": {"phase": "Succeeded"}}, part="status")

    def replace_node(self) -> None:
        """One is cordoned, leaves, and another comes."""
        leaving = self.nodes.pop(self.random.randrange(len(self.nodes)))
        self.client.patch("Node", leaving, {"spec": {"unschedulable": True}})
        self.client.delete("Node", leaving)
        self.add_node()

    def add_node(self) -> None:
        self.made += 1
        name = f"node-{self.made}"
        self.client.create(objects.node(name, cpu="4", zone=f"zone-{self.made % 3}"))
        self.nodes.append(name)

    def collect(self) -> None:
        """Remove the pods of nodes that are gone, and those that are done, as a controller does."""
        for pod in self.cluster.pods():
            is_lost = node_name(pod) and node_name(pod) not in self.nodes
            if is_lost or pod["status"]["phase"] == "Succeeded":
                self.client.delete("Pod", pod["metadata"]["name"], grace_s=0)

    def _some_pods(self) -> list[Json]:
        pods = self.cluster.pods()
        return self.random.sample(pods, min(len(pods), self.random.randint(0, 20)))


def test_nothing_grows_and_nobody_is_forgotten(cluster: Cluster, mooring: Mooring) -> None:
    users = Users(cluster, SEED)
    start = time.monotonic()
    warm = 0
    while (passed_s := time.monotonic() - start) < CHURN_S:
        users.act()
        users.collect()
        cluster.check_capacity()
        if not warm and passed_s > WARM_UP_S:
            warm = mooring.resident_bytes()

    users.collect()
    cluster.wait_until_bound()
    cluster.check_books()
    scheduled = mooring.metric("scheduler_schedule_attempts_total", result="scheduled")
    print(f"{scheduled:.0f} pods, {warm >> 20} MiB, then {mooring.resident_bytes() >> 20} MiB")
    assert scheduled > CHURN_S
    assert mooring.resident_bytes() < warm * MOST_GROWTH
    wait_for(
        lambda: mooring.metric("scheduler_cache_size", type="nodes") == NODES,
        "mooring knows the nodes that there are",
    )
    wait_for(
        lambda: mooring.metric("scheduler_cache_size", type="pods") == len(cluster.pods()),
        "mooring knows the pods that there are",
    )
    assert mooring.metric("scheduler_cache_size", type="assumed_pods") == 0
    assert "unexpectedly" not in mooring.log.read_text()
