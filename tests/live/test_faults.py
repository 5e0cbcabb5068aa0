"""What goes wrong between mooring and the API server, and what must hold afterwards.

The clusters here are full to the last core, so whatever mooring forgets to free, or counts twice, leaves a
pod without a place: after each fault every pod is bound, once, and all over again when all have been deleted.
"""

from __future__ import annotations

import pytest
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, bind_by_hand, node_name, scheduled_condition
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER, node, pod
from tests.live.process import Mooring, configuration
from tests.live.proxy import Proxy, Request, binds, everything
from tests.live.test_waiting_pods import gang_configuration
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live

NODES = 10
PODS_PER_NODE = 8
PODS = NODES * PODS_PER_NODE


def nodes(first: int = 0) -> list[Json]:
    return [node(f"node-{number}", cpu="4") for number in range(first, first + NODES)]


def pods(prefix: str, count: int = PODS) -> list[Json]:
    """As many as fit."""
    return objects.pods(prefix, count, cpu="500m")


def slowly() -> Json:
    """So slow that there is a middle in which things can happen, for seconds."""
    return configuration(DEFAULT_SCHEDULER, clientConnection={"qps": 20, "burst": 5})


def binds_made(cluster: Cluster) -> int:
    return sum(status == 201 for _, _, status in cluster.answers_to_binds())


def check_all_is_well(cluster: Cluster) -> None:
    """Every pod is bound, once, and the places of those that go are free again."""
    cluster.wait_until_bound()
    cluster.check_books()
    cluster.client.delete_all("Pod")
    cluster.add(*pods("again"))
    cluster.wait_until_bound()
    cluster.check_books()


def test_the_api_server_is_killed_and_comes_back(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    """Pods are there before mooring is, and counted while nobody can bind: on a busy machine, to create
    them, or to notice that the server is back, can take longer than to bind them all.
    """
    cluster.add(*nodes(), *pods("web"))
    mooring = start_mooring(slowly())
    wait_for(lambda: binds_made(cluster) > PODS / 4, "a quarter of the pods is bound")

    cluster.control_plane.api_server.kill()
    assert binds_made(cluster) < PODS, "too late to be a fault"
    cluster.control_plane.start_api_server()

    check_all_is_well(cluster)
    mooring.check()


def test_the_api_server_is_away_while_mooring_starts(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes(), *pods("web"))
    refused = proxy.refuse(everything, status=503, times=3)
    lists = proxy.refuse(lambda request: "limit=" in request.path, status=503, times=10)

    start_mooring(through=proxy)

    assert (len(refused.met), len(lists.met)) == (3, 10)
    check_all_is_well(cluster)


def test_watches_expire_while_much_changes(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    cluster.add(*pods("web", PODS - 10), pod("picky", nodeSelector={"disk": "ssd"}))
    cluster.wait_until_bound(*(f"web-{number}" for number in range(PODS - 10)))
    cluster.wait_until_refused("picky")

    # While nobody watches: pods come and go, a node leaves, one comes, one changes, and etcd forgets how.
    proxy.cut()
    for number in range(20):
        cluster.client.delete("Pod", f"web-{number}")
    cluster.client.delete("Node", "node-0")
    for left in cluster.pods():
        if node_name(left) == "node-0":
            cluster.client.delete("Pod", left["metadata"]["name"])
    cluster.add(node("node-new", cpu="4"), *pods("late", 20))
    cluster.client.delete("Pod", "picky")
    cluster.add(pod("picky", cpu="500m", nodeSelector={"disk": "hdd"}))
    cluster.client.patch("Node", "node-1", {"metadata": {"labels": {"disk": "hdd"}}})
    cluster.control_plane.compact()
    cluster.control_plane.restart_api_server()
    watches = proxy.delay(lambda request: request.is_watch, 0.0)
    proxy.mend()

    cluster.wait_until_bound()
    assert watches.met, "mooring watches again"
    check_all_is_well(cluster)


def test_connections_break_again_and_again(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes())
    start_mooring(slowly(), through=proxy)

    for batch in range(4):
        # Before there are pods: a batch may be bound by the time that all of it is created.
        target = binds_made(cluster) + 5
        cluster.add(*pods(f"web-{batch}", PODS // 4))
        wait_for(lambda target=target: binds_made(cluster) >= target, "some are bound")  # type: ignore[misc]
        proxy.cut()
        proxy.mend()

    check_all_is_well(cluster)


@pytest.mark.parametrize("status", [409, 404, 429, 500, 503])
def test_binds_are_refused_for_a_while(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy, status: int
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    refused = proxy.refuse(binds, status=status, times=15)

    cluster.add(*pods("web"))

    check_all_is_well(cluster)
    assert len(refused.met) == 15


def test_somebody_else_binds_the_pods_first(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    held = proxy.hold(binds)
    cluster.add(*pods("web", 8))
    wait_for(lambda: len(held.met) == 8, "all binds are on their way")

    for number in range(8):
        bind_by_hand(cluster.client, f"web-{number}", "node-0")
    proxy.release(held)

    wait_for(
        lambda: sum(status == 409 for _, _, status in cluster.answers_to_binds()) >= 8,
        "the API server refused mooring's binds",
    )
    assert set(cluster.wait_until_bound().values()) == {"node-0"}
    cluster.add(*pods("more", PODS - 8))
    check_all_is_well(cluster)


def test_the_pods_are_gone_when_the_binds_arrive(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    held = proxy.hold(binds)
    cluster.add(*pods("web"))
    wait_for(lambda: len(held.met) >= 10, "binds are on their way")

    # Half of the names are used again at once, by other pods.
    cluster.client.delete_all("Pod")
    cluster.add(*pods("web", PODS // 2))
    proxy.release(held)

    cluster.wait_until_bound()
    cluster.add(*pods("more", PODS // 2))
    check_all_is_well(cluster)


@pytest.mark.parametrize("lost", ["requests", "answers"])
def test_it_is_not_known_whether_a_bind_was_made(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy, lost: str
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    lose = proxy.lose_answers if lost == "answers" else proxy.lose_requests
    fault = lose(binds, times=20)

    cluster.add(*pods("web"))

    cluster.wait_until_bound()
    for number in range(PODS):
        cluster.wait_for_event(f"web-{number}", "Scheduled")
    check_all_is_well(cluster)
    assert len(fault.met) == 20


def test_the_api_server_is_slow(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(*nodes())
    start_mooring(through=proxy)
    proxy.delay(everything, 1.0)
    proxy.lag_s = 0.2

    cluster.add(*pods("web"))

    # One after the other they would take longer than that.
    cluster.wait_until_bound(within_s=45)
    cluster.check_books()
    proxy.heal()
    check_all_is_well(cluster)


@pytest.mark.parametrize("forwards", [False, True], ids=["binds are lost", "binds arrive late"])
def test_mooring_is_killed_between_assume_and_bind(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy, forwards: bool
) -> None:
    cluster.add(*nodes())
    mooring = start_mooring(through=proxy)
    held = proxy.hold(binds)
    cluster.add(*pods("web"))
    wait_for(lambda: len(held.met) >= 10, "binds are on their way")

    mooring.kill()
    if not forwards:
        proxy.release(held, forwards=False)
    # The successor may decide before the last binds of its predecessor arrive.
    mooring.start()
    if forwards:
        proxy.release(held)
    mooring.wait_until_ready()

    check_all_is_well(cluster)


def test_mooring_is_killed_again_and_again(cluster: Cluster, start_mooring: StartMooring) -> None:
    cluster.add(*nodes())
    mooring = start_mooring(slowly())

    for batch in range(3):
        cluster.add(*pods(f"web-{batch}", PODS // 4))
        wait_for(lambda target=batch * 10: binds_made(cluster) > target, "some are bound")  # type: ignore[misc]
        mooring.kill()
        mooring.start()
    mooring.wait_until_ready()

    cluster.add(*pods("last", PODS // 4))
    check_all_is_well(cluster)


STEPS = ("refused", "waiting for permit", "waiting for a volume", "binding", "bound")


class Way:
    """A pod on its way, stopped at a step. It asks for all of node-a."""

    def __init__(
        self, step: str, cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
    ) -> None:
        self.cluster, self.proxy = cluster, proxy
        cluster.add(node("node-a", cpu="4"))
        # The plugin holds pods that name a gang, and no others.
        self.mooring: Mooring = start_mooring(gang_configuration(timeout_s=3), through=proxy)
        self.held = proxy.hold(_binds_of_it) if step == "binding" else None
        asks: Json = {"cpu": "4"}
        match step:
            case "refused":
                asks["nodeSelector"] = {"disk": "ssd"}
            case "waiting for permit":
                asks["labels"] = {"gang": "crew", "gang-size": "2"}
            case "waiting for a volume":
                # Nobody answers the scheduler's choice of a volume: the volume controller is not there.
                cluster.add(objects.storage_class("local", "kubernetes.io/no-provisioner"))
                cluster.add(objects.local_volume("disk", "local", "node-a"))
                available = {"status": {"phase": "Available"}}
                cluster.client.patch("PersistentVolume", "disk", available, part="status")
                cluster.add(objects.claim("data", "local"))
                asks["claims"] = ("data",)
        cluster.add(pod("it", **asks))
        wait_for(lambda: self._is_at(step), f"the pod is at the step {step}")

    def _is_at(self, step: str) -> bool:
        it = self.cluster.pod("it")
        match step:
            case "refused":
                return scheduled_condition(it) is not None
            case "waiting for permit":
                return bool(it["status"].get("nominatedNodeName") == "node-a")
            case "waiting for a volume":
                volume = self.cluster.client.get("PersistentVolume", "disk")
                return "claimRef" in volume["spec"]
            case "binding":
                return bool(self.held and self.held.met)
            case _:
                return node_name(it) == "node-a"

    def go_on(self) -> None:
        if self.held is not None:
            self.proxy.release(self.held)


def _binds_of_it(request: Request) -> bool:
    return request.is_bind and request.subject == "it"


@pytest.mark.parametrize("step", STEPS)
def test_a_pod_is_deleted(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy, step: str
) -> None:
    way = Way(step, cluster, start_mooring, proxy)

    cluster.client.delete("Pod", "it", grace_s=0)
    way.go_on()

    # Its place is free, and its name, too.
    cluster.add(pod("next", cpu="3"), pod("it", cpu="1"))
    assert cluster.wait_until_bound() == {"next": "node-a", "it": "node-a"}
    way.mooring.check()
    assert "unexpectedly" not in way.mooring.log.read_text()


@pytest.mark.parametrize("step", STEPS)
def test_a_node_is_deleted(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy, step: str
) -> None:
    way = Way(step, cluster, start_mooring, proxy)

    cluster.client.delete("Node", "node-a")
    way.go_on()

    # What happens to nodes and what happens to pods is heard in no certain order.
    wait_for(
        lambda: way.mooring.metric("scheduler_cache_size", type="nodes") == 0,
        "mooring knows that the node is gone",
    )
    cluster.add(node("node-b", cpu="5", labels={"disk": "ssd"}), pod("next", cpu="1"))
    assert cluster.wait_until_bound("next")["next"] == "node-b"
    match step:
        case "refused":
            assert cluster.wait_until_bound()["it"] == "node-b"
        case "waiting for permit":
            wait_for(
                lambda: cluster.pod("it")["status"].get("nominatedNodeName") == "node-b",
                "the pod waits for its gang on the other node",
            )
            labels = {"gang": "crew", "gang-size": "2"}
            cluster.add(pod("mate", cpu="0", labels=labels))
            assert cluster.wait_until_bound()["it"] == "node-b"
        case "waiting for a volume":
            # Its volume is of the node that is gone.
            wait_for(
                lambda: "1 node(s)" in cluster.wait_until_refused("it")["message"],
                "the pod was tried again, and fits nowhere",
            )
        case _:
            # The API server binds to any name. Whoever collects the pods of lost nodes sees it there.
            wait_for(lambda: node_name(cluster.pod("it")) == "node-a", "the pod is bound")
    cluster.check_books()
    way.mooring.check()
    assert "unexpectedly" not in way.mooring.log.read_text()
