"""A full cluster is emptied and filled again at default limits: what matters is written, the rest is not."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import StartMooring
from tests.live.proxy import Proxy, Request, binds
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live

PLACES = 20
PODS = 60


def patches_status(request: Request) -> bool:
    return request.method == "PATCH" and request.path.endswith("/status")


def test_a_refill_writes_each_waiting_pod_twice_at_most_and_none_that_is_gone(
    cluster: Cluster, proxy: Proxy, start_mooring: StartMooring
) -> None:
    """Places become free one after another while pods wait: each of them changes every message."""
    cluster.add(objects.node("n", cpu=str(PLACES)))
    mooring = start_mooring(through=proxy)
    cluster.add(*objects.pods("first", PODS, cpu="1"))
    wait_for(lambda: bound(cluster) == PLACES, "every place is taken")
    patches = proxy.delay(patches_status, 0.0)

    cluster.add(*objects.pods("second", PODS, cpu="1"))
    for pod in cluster.pods():
        if pod["metadata"]["name"].startswith("first"):
            cluster.client.delete("Pod", pod["metadata"]["name"], grace_s=0)
    wait_for(lambda: bound(cluster) == PLACES, "every place is taken again")
    wait_for(lambda: told(cluster) == PODS - PLACES, "every pod that waits says why")

    written = Counter(request.path.split("/")[-2] for request in patches.met)
    assert max(written.values()) <= 2
    assert "patching the status" not in mooring.log.read_text()
    cluster.check_books()


def test_at_the_end_bindings_and_other_writes_are_counted_apart(
    cluster: Cluster, proxy: Proxy, start_mooring: StartMooring
) -> None:
    cluster.add(objects.node("n", cpu="4"))
    mooring = start_mooring(through=proxy, arguments=["--drain-timeout=1s"])
    held_binds, held_patches = proxy.hold(binds), proxy.hold(patches_status)
    cluster.add(*objects.pods("fits", 2, cpu="1"), *objects.pods("hopeless", 3, cpu="64"))
    wait_for(lambda: len(held_binds.met) == 2, "two binds are on their way")
    wait_for(lambda: len(held_patches.met) == 3, "three patches are on their way")

    assert mooring.process is not None
    mooring.process.send_signal(signal.SIGTERM)
    wait_for(lambda: not mooring.running, "it ended")

    log = mooring.log.read_text()
    assert "gave up 2 bindings that were not finished" in log
    assert "3 status patches and 0 Events were not written" in log


def bound(cluster: Cluster) -> int:
    return sum(1 for pod in cluster.pods() if node_name(pod))


def told(cluster: Cluster) -> int:
    """How many pods have a condition that says why they wait. Binds are written first."""
    return sum(
        1 for pod in cluster.pods() if not node_name(pod) and pod["status"].get("conditions")
    )
