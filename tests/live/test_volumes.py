"""Volumes, with kube-controller-manager's volume controller at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from control_plane import ControlPlane
from plain_client import Json, PlainClient

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.process import Mooring
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live

PROVISIONER = "disk.test"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module", autouse=True)
def volume_controller(control_plane: ControlPlane) -> Iterator[None]:
    component = control_plane.start_controllers("persistentvolume-binder-controller")
    yield
    component.kill()


class Provisioner(threading.Thread):
    """Makes volumes for the claims that the scheduler has chosen a node for, as an external one does.

    Where a node has no more disks, it takes the scheduler's choice back.
    """

    def __init__(self, client: PlainClient, *, without_disks: frozenset[str] = frozenset()) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._without_disks = without_disks
        self._asked_to_stop = threading.Event()
        self.refused: list[str] = []

    def run(self) -> None:
        while not self._asked_to_stop.is_set():
            for claim in self._client.list("PersistentVolumeClaim"):
                node = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
                if node and not claim["spec"].get("volumeName"):
                    self._provide(claim, node)
            time.sleep(0.1)

    def stop(self) -> None:
        self._asked_to_stop.set()
        self.join()

    def _provide(self, claim: Json, node: str) -> None:
        name = claim["metadata"]["name"]
        if node in self._without_disks:
            self.refused.append(node)
            change = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            self._client.patch("PersistentVolumeClaim", name, change)
            return
        if self._client.find("PersistentVolume", f"made-for-{name}"):
            return
        volume = objects.local_volume(f"made-for-{name}", "dynamic", node)
        volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": name,
            "uid": claim["metadata"]["uid"],
        }
        self._client.create(volume)


def is_bound(cluster: Cluster, claim: str) -> bool:
    phase: str = cluster.client.get("PersistentVolumeClaim", claim)["status"].get("phase", "")
    return phase == "Bound"


def test_a_claim_that_waits_is_bound_where_its_pod_goes(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(
        objects.node("node-a"),
        objects.node("node-b"),
        objects.storage_class("local", "kubernetes.io/no-provisioner"),
        objects.local_volume("disk-b", "local", "node-b"),
        objects.claim("data", "local"),
    )

    cluster.add(objects.pod("database", claims=("data",)))

    assert cluster.wait_until_bound() == {"database": "node-b"}
    wait_for(lambda: is_bound(cluster, "data"), "the claim is bound")
    volume = cluster.client.get("PersistentVolume", "disk-b")
    assert volume["spec"]["claimRef"]["name"] == "data"
    assert volume["status"]["phase"] == "Bound"


def test_as_many_pods_as_there_are_volumes(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.storage_class("local", "kubernetes.io/no-provisioner"))
    nodes = [f"node-{number}" for number in range(5)]
    cluster.add(*(objects.node(name) for name in nodes))
    cluster.add(*(objects.local_volume(f"disk-of-{name}", "local", name) for name in nodes))
    cluster.add(*(objects.claim(f"data-{number}", "local") for number in range(6)))

    cluster.add(*(objects.pod(f"db-{number}", claims=(f"data-{number}",)) for number in range(6)))

    def bound() -> list[str]:
        return sorted(filter(None, map(node_name, cluster.pods())))

    wait_for(lambda: len(bound()) == 5, lambda: f"five pods have a volume: {bound()}")
    assert bound() == nodes
    [left] = [pod for pod in cluster.pods() if not node_name(pod)]
    reason = "didn't find available persistent volumes to bind"
    cluster.wait_until_refused(left["metadata"]["name"], saying=reason)

    # One more volume, and the last one goes, too.
    cluster.add(objects.local_volume("late", "local", "node-0"))
    cluster.wait_until_bound()
    cluster.check_books()


def test_a_volume_is_made_on_the_node_that_the_scheduler_chose(
    cluster: Cluster, mooring: Mooring
) -> None:
    provisioner = Provisioner(cluster.client)
    provisioner.start()
    cluster.add(
        objects.storage_class("dynamic", PROVISIONER),
        objects.node("node-a", unschedulable=True),
        objects.node("node-b"),
        objects.claim("data", "dynamic"),
    )

    cluster.add(objects.pod("database", claims=("data",)))

    assert cluster.wait_until_bound() == {"database": "node-b"}
    assert is_bound(cluster, "data"), "the pod was bound before its volume"
    provisioner.stop()


def test_a_choice_that_the_provisioner_takes_back_is_made_again(
    cluster: Cluster, mooring: Mooring
) -> None:
    provisioner = Provisioner(cluster.client, without_disks=frozenset({"node-a"}))
    provisioner.start()
    cluster.add(objects.storage_class("dynamic", PROVISIONER), objects.claim("data", "dynamic"))
    cluster.add(objects.node("node-a"))

    cluster.add(objects.pod("database", claims=("data",)))
    wait_for(lambda: provisioner.refused, "the provisioner refused node-a")
    cluster.client.patch("Node", "node-a", {"spec": {"unschedulable": True}})
    cluster.add(objects.node("node-b"))

    assert cluster.wait_until_bound() == {"database": "node-b"}
    provisioner.stop()
