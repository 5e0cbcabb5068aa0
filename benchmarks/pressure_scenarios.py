"""Situations in which a scheduler is under pressure, one class each.

A run of a scenario:

    prepare   nodes, and pods that are bound already; the scheduler is not there yet
    warm_up   what must have happened before the clock starts; the scheduler works
    press     the clock runs; returns once the benchmark has done its part
    missing   asked until it says 0, or patience ends
    check     raises WrongAnswer where a pod is that must not be there
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from plain_client import Json

from benchmarks.answers import WrongAnswer
from benchmarks.pressure_cluster import DEPLOYMENTS, Cluster
from tests.live import objects
from tests.live.objects import HOSTNAME, ZONE
from tests.live.proxy import Fault, Request

#: How long the preparation of a scenario may take.
_PREPARED_S = 120.0


class Scenario:
    """What all scenarios have in common, and what they say if nothing else is said."""

    #: How it is called on the command line and in tables, and what happens in it.
    key: str
    name: str
    says: str
    #: Of kube-controller-manager.
    controllers: tuple[str, ...] = ()
    #: The scheduler reaches the API server through a proxy.
    is_proxied = False
    #: How long to wait for the scheduler to come to rest after `warm_up`.
    rest_s = 60.0
    #: How long to wait for the scheduler after `press`.
    patience_s = 120.0

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: How many pods can be bound, all in all.
        self.wanted = 0

    def prepare(self) -> None:
        raise NotImplementedError

    def warm_up(self) -> None:
        pass

    def press(self) -> None:
        raise NotImplementedError

    def bound(self) -> list[str]:
        """The pods, of those that are wanted, that are bound by now."""
        return self.cluster.pods.placed_since(self.cluster.began_s)

    def missing(self) -> int:
        return max(0, self.wanted - len(self.bound()))

    def check(self, nodes: list[Json], pods: list[Json]) -> None:
        """Raises WrongAnswer; that no node has more than it can hold is checked for every scenario."""

    def refused_writes(self) -> int:
        """How many requests of the scheduler never reached the API server."""
        return 0


class Refill(Scenario):
    key = "a"
    name = "refill"
    says = (
        "6 nodes with 110 places each in 3 zones, a ReplicaSet of 1,200 with a hard zone spread;"
        " all its pods are deleted at once, until all 660 places are taken again"
    )
    controllers = ("replicaset",)
    patience_s = 150.0

    _LABELS = {"app": "refill"}

    def prepare(self) -> None:
        places = self.cluster.scaled(110)
        self.wanted = 6 * places
        self.cluster.create(_nodes(6, zones=3, cpu="64", pods=places))

    def warm_up(self) -> None:
        spread = objects.spread(self._LABELS, ZONE)
        replicas = self.cluster.scaled(1200)
        self.cluster.create(
            [_replica_set("refill", self._LABELS, replicas, topologySpreadConstraints=[spread])]
        )
        # `began_s` is 0, so all pods count.
        self.cluster.wait_for(lambda: self.missing() == 0, within_s=self.patience_s)

    def press(self) -> None:
        names = [pod["metadata"]["name"] for pod in self.cluster.client.list("Pod")]
        self.cluster.delete_pods(names)

    def check(self, nodes: list[Json], pods: list[Json]) -> None:
        zone_of = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in nodes}
        counts = Counter(zone_of[node] for _, node in _places(pods))
        if counts and max(counts.values()) - min(counts[zone] for zone in zone_of.values()) > 1:
            raise WrongAnswer(f"the zones have {dict(counts)}")


class RollingUpdate(Scenario):
    key = "b"
    name = "rolling update"
    says = (
        "a Deployment of 1,000 gets a new template in a cluster with room for 1,020 pods;"
        " 25 % may be missing, 25 % too many; until all 1,000 are bound again"
    )
    controllers = ("deployment", "replicaset")

    def prepare(self) -> None:
        cluster = self.cluster
        self.wanted = 50 * cluster.scaled(20)
        # 51 pods of 100m.
        cluster.create(_nodes(cluster.scaled(20), cpu="5100m"))
        cluster.play_kubelets()
        labels = {"app": "rolling"}
        document = _replica_set("rolling", labels, self.wanted) | {"kind": "Deployment"}
        cluster.client.request("POST", DEPLOYMENTS, document)
        _prepared(cluster, lambda: len(cluster.pods.created_at_s) == self.wanted, "created")
        nodes = itertools.cycle(_names(cluster.scaled(20)))
        cluster.bind(zip(list(cluster.pods.created_at_s), nodes, strict=False))
        _prepared(cluster, lambda: self._available() == self.wanted, "available")

    def press(self) -> None:
        change = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
        content_type = "application/merge-patch+json"
        path = f"{DEPLOYMENTS}/rolling"
        self.cluster.client.request("PATCH", path, change, content_type=content_type)

    def _available(self) -> int:
        status = self.cluster.client.request("GET", f"{DEPLOYMENTS}/rolling")["status"]
        available: int = status.get("availableReplicas", 0)
        return available


class Hopeless(Scenario):
    key = "c"
    name = "hopeless pods"
    says = (
        "5,000 pods of 50 kinds that fit nowhere on 200 nodes, while 50 pods that fit are created"
        " each second for two minutes, and deleted five seconds after they were bound"
    )
    patience_s = 30.0

    _KINDS = 50
    _PER_S = 50

    def prepare(self) -> None:
        cluster = self.cluster
        self.wanted = self._PER_S * cluster.scaled(120)
        cluster.create(_nodes(cluster.scaled(200), zones=10))
        cluster.delete_when_bound(prefix="good-", after_s=5.0)

    def warm_up(self) -> None:
        count = self.cluster.scaled(5000)
        self.cluster.create(_hopeless_pod(number % self._KINDS, number) for number in range(count))

    def press(self) -> None:
        self.cluster.create_steadily(objects.pods("good", self.wanted), per_s=self._PER_S)

    def bound(self) -> list[str]:
        return self.cluster.pods.bound_since(self.cluster.began_s, prefix="good-")

    def check(self, nodes: list[Json], pods: list[Json]) -> None:
        wrong = [pod for pod, _ in _places(pods) if pod.startswith("hopeless-")]
        if wrong:
            raise WrongAnswer(f"{len(wrong)} pods are bound that fit nowhere, as {wrong[0]}")


class Flapping(Scenario):
    key = "d"
    name = "flapping nodes"
    says = (
        "1,000 nodes that are three quarters full, a tenth of them NotReady every other four seconds,"
        " while 20 pods are created each second for a minute"
    )
    patience_s = 60.0

    _PER_S = 20
    _FLIP_EVERY_S = 4.0

    def prepare(self) -> None:
        cluster = self.cluster
        self._nodes = cluster.scaled(1000)
        # Two pods of 500m fit on each: more than are created at any scale.
        self.wanted = min(self._PER_S * cluster.scaled(60), self._nodes * 3 // 2)
        cluster.create(_nodes(self._nodes, zones=10, cpu="4"))
        cluster.create(
            objects.pod(f"before-{node}-{number}", cpu="1500m", nodeName=node)
            for node in _names(self._nodes)
            for number in range(2)
        )

    def press(self) -> None:
        flapping = list(_names(self._nodes))[::10]
        turns = itertools.cycle((node, is_ready) for is_ready in (False, True) for node in flapping)

        def flip_next() -> None:
            node, is_ready = next(turns)
            self.cluster.flip_readiness(node, is_ready=is_ready)

        with self.cluster.repeating(flip_next, every_s=self._FLIP_EVERY_S / len(flapping)):
            self.cluster.create_steadily(
                objects.pods("pod", self.wanted, cpu="500m"), per_s=self._PER_S
            )


class Drain(Scenario):
    key = "e"
    name = "drain"
    says = (
        "100 nodes with 1,000 pods of ten ReplicaSets, each with a PodDisruptionBudget of 10 %;"
        " half of the nodes are cordoned and their pods evicted, until all 500 are bound elsewhere"
    )
    controllers = ("replicaset", "disruption")

    _SETS = 10
    _DRAIN_S = 150.0
    patience_s = 60.0

    def prepare(self) -> None:
        cluster = self.cluster
        self._nodes = list(_names(2 * cluster.scaled(50)))
        self._drained = set(self._nodes[::2])
        # 20 pods of 100m on each: the other half has just enough room for all.
        cluster.create(_nodes(len(self._nodes), cpu="2"))
        placed = [
            objects.pod(f"{name}-{node}", labels={"app": name}, nodeName=node)
            for name in self._sets()
            for node in self._nodes
        ]
        cluster.create(placed)
        cluster.make_ready(pod["metadata"]["name"] for pod in placed)
        # The controller adopts the pods that it finds.
        cluster.create(_replica_set(name, {"app": name}, len(self._nodes)) for name in self._sets())
        cluster.create(_budget(name) for name in self._sets())
        _prepared(cluster, self._are_budgets_kept, "protected")
        self.wanted = self._SETS * len(self._drained)

    def press(self) -> None:
        # From here on, so that replacements become ready and budgets allow more evictions.
        self.cluster.play_kubelets()
        self.cluster.cordon(self._drained)
        pods = [f"{name}-{node}" for node in self._drained for name in self._sets()]
        self.cluster.evict(pods, within_s=self._DRAIN_S)

    def check(self, nodes: list[Json], pods: list[Json]) -> None:
        fresh = set(self.bound())
        wrong = [pod for pod, node in _places(pods) if pod in fresh and node in self._drained]
        if wrong:
            raise WrongAnswer(f"{len(wrong)} pods are on cordoned nodes, as {wrong[0]}")

    def _sets(self) -> Iterable[str]:
        return (f"set-{number}" for number in range(self._SETS))

    def _are_budgets_kept(self) -> bool:
        budgets = self.cluster.client.list("PodDisruptionBudget")
        return all(
            budget.get("status", {}).get("disruptionsAllowed", 0) > 0
            and budget["status"]["currentHealthy"] == len(self._nodes)
            for budget in budgets
        )


class Slow(Scenario):
    key = "f"
    name = "slow API server"
    says = "every request but watches takes 200 ms longer; 500 plain pods on 100 nodes"
    is_proxied = True

    def prepare(self) -> None:
        cluster = self.cluster
        self.wanted = cluster.scaled(500)
        cluster.create(_nodes(cluster.scaled(100), zones=10))

    def warm_up(self) -> None:
        assert self.cluster.proxy is not None
        self.cluster.proxy.delay(lambda request: not request.is_watch, 0.2)

    def press(self) -> None:
        self.cluster.create(objects.pods("pod", self.wanted))


class Refusing(Scenario):
    key = "g"
    name = "refusing API server"
    says = (
        "for ten seconds every write of the scheduler is answered with 429 and Retry-After: 1;"
        " 500 plain pods on 100 nodes are created at the start"
    )
    is_proxied = True

    _REFUSING_S = 10.0

    def prepare(self) -> None:
        cluster = self.cluster
        self._fault: Fault | None = None
        self.wanted = cluster.scaled(500)
        cluster.create(_nodes(cluster.scaled(100), zones=10))

    def press(self) -> None:
        proxy = self.cluster.proxy
        assert proxy is not None
        ends_s = time.monotonic() + self._REFUSING_S
        self._fault = proxy.refuse(_is_write, status=429, times=float("inf"), retry_after_s=1)
        self.cluster.create(objects.pods("pod", self.wanted))
        time.sleep(max(0.0, ends_s - time.monotonic()))
        proxy.release(self._fault)

    def refused_writes(self) -> int:
        return len(self._fault.met) if self._fault else 0


class PreemptionStorm(Scenario):
    key = "h"
    name = "preemption storm"
    says = (
        "100 nodes full of 1,600 pods of low priority, then 500 pods of high priority at once,"
        " each of which needs the room of one, two or three"
    )

    _PER_NODE = 16

    def prepare(self) -> None:
        cluster = self.cluster
        nodes = cluster.scaled(100)
        self.wanted = cluster.scaled(500)
        cluster.create(_nodes(nodes, cpu=str(self._PER_NODE)))
        cluster.create([objects.priority_class("low", 10), objects.priority_class("high", 1000)])
        cluster.create(
            objects.pod(f"low-{node}-{number}", cpu="1", nodeName=node, priorityClassName="low")
            for node in _names(nodes)
            for number in range(self._PER_NODE)
        )

    def press(self) -> None:
        self.cluster.create(
            objects.pod(f"high-{number}", cpu=str(1 + number % 3), priorityClassName="high")
            for number in range(self.wanted)
        )


SCENARIOS: dict[str, type[Scenario]] = {
    scenario.key: scenario
    for scenario in (
        Refill,
        RollingUpdate,
        Hopeless,
        Flapping,
        Drain,
        Slow,
        Refusing,
        PreemptionStorm,
    )
}


def within_allocatable(nodes: Iterable[Json], pods: Iterable[Json]) -> None:
    """Raises WrongAnswer if the pods on a node request more than it has."""
    requested: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            requested[node]["pods"] += quantity("1")
            for container in pod["spec"]["containers"]:
                for resource, amount in container["resources"].get("requests", {}).items():
                    requested[node][resource] += quantity(amount)
    for node in nodes:
        name, allocatable = node["metadata"]["name"], node["status"]["allocatable"]
        for resource, amount in requested[name].items():
            if amount > quantity(allocatable[resource]):
                raise WrongAnswer(f"{name} has {amount} of {allocatable[resource]} {resource}")


def quantity(text: str) -> int:
    """In thousandths."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    return int(text) * 1000


_SUFFIXES = {"m": 1, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}


# Objects


def _names(count: int) -> Iterable[str]:
    return (f"node-{number}" for number in range(count))


def _nodes(
    count: int, *, zones: int = 3, cpu: str = "8", memory: str = "64Gi", pods: int = 110
) -> Iterable[Json]:
    return (
        objects.node(name, cpu=cpu, memory=memory, pods=pods, zone=f"zone-{number % zones}")
        for number, name in enumerate(_names(count))
    )


def _replica_set(name: str, labels: Mapping[str, str], replicas: int, **spec: Any) -> Json:
    template = objects.pod("", labels=dict(labels), **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": template["spec"]},
        },
    }


def _budget(name: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name}}},
    }


def _hopeless_pod(kind: int, number: int) -> Json:
    """A pod that fits nowhere, for one of five reasons; each kind has its own labels and requests."""
    name, labels = f"hopeless-{number}", {"kind": f"kind-{kind}"}
    too_much_cpu = f"{100 + kind}"
    match kind % 5:
        case 0:
            return objects.pod(name, labels=labels, cpu=too_much_cpu)
        case 1:
            selector = {"disk": f"kind-{kind}"}
            return objects.pod(name, labels=labels, cpu=f"{100 + kind}m", nodeSelector=selector)
        case 2:
            spread = [objects.spread(labels, ZONE)]
            memory = f"{1000 + kind}Gi"
            return objects.pod(name, labels=labels, memory=memory, topologySpreadConstraints=spread)
        case 3:
            apart = objects.required_pod_affinity(labels, HOSTNAME, anti=True)
            return objects.pod(name, labels=labels, cpu=too_much_cpu, affinity=apart)
        case _:
            nobody = objects.required_pod_affinity({"nobody": f"kind-{kind}"}, ZONE)
            return objects.pod(name, labels=labels, cpu=f"{100 + kind}m", affinity=nobody)


def _places(pods: Iterable[Json]) -> Iterable[tuple[str, str]]:
    """The node of each pod that has one."""
    return (
        (pod["metadata"]["name"], pod["spec"]["nodeName"])
        for pod in pods
        if pod["spec"].get("nodeName")
    )


def _is_write(request: Request) -> bool:
    return request.method != "GET"


def _prepared(cluster: Cluster, look: Callable[[], bool], what: str) -> None:
    if not cluster.wait_for(look, within_s=_PREPARED_S):
        raise TimeoutError(f"the pods of the scenario are not {what} after {_PREPARED_S:g} s")
