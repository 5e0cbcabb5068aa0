"""The control plane itself, before anything is tested on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import control_plane as module
import pytest
from control_plane import ADMIN, KUBE_SCHEDULER, ControlPlane
from plain_client import ApiFailure, PlainClient

from tests.live import objects
from tests.live.cluster import Cluster, bind_by_hand, node_name
from tests.live.proxy import Proxy, binds
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live


def test_it_serves_the_version_that_mooring_follows(client: PlainClient) -> None:
    assert client.request("GET", "/version")["gitVersion"] == module.version()


def test_nobody_may_do_more_than_the_roles_allow(control_plane: ControlPlane) -> None:
    with control_plane.client(ADMIN) as admin, control_plane.client(KUBE_SCHEDULER) as scheduler:
        assert admin.list("ClusterRole")
        assert scheduler.list("Pod", "") == []
        with pytest.raises(ApiFailure, match="cannot list resource"):
            scheduler.list("ClusterRole")


def test_a_kubeconfig_is_all_that_kubectl_needs(cluster: Cluster) -> None:
    cluster.add(objects.node("node-a"))

    assert cluster.control_plane.kubectl("get", "nodes", "--output=name") == "node/node-a\n"


def test_a_new_node_has_no_taints(cluster: Cluster) -> None:
    cluster.add(objects.node("node-a"))

    assert cluster.client.get("Node", "node-a")["spec"] == {}


def test_a_killed_api_server_comes_back_with_its_data(cluster: Cluster) -> None:
    cluster.add(objects.node("node-a"), objects.pod("web"))
    before = cluster.pod("web")

    cluster.control_plane.restart_api_server()

    assert cluster.pod("web") == before


def test_a_watch_from_before_a_compaction_has_expired(cluster: Cluster) -> None:
    version = cluster.client.list_document("Pod")["metadata"]["resourceVersion"]
    cluster.add(*objects.pods("web", 3))
    cluster.control_plane.compact()
    cluster.control_plane.restart_api_server()

    event = next(cluster.client.watch("Pod", version=version))
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_every_bind_is_in_the_audit_log(cluster: Cluster) -> None:
    cluster.add(objects.node("node-a"), objects.pod("web"))

    bind_by_hand(cluster.client, "web", "node-a")
    with pytest.raises(ApiFailure, match="already assigned"):
        bind_by_hand(cluster.client, "web", "node-a")

    assert node_name(cluster.pod("web")) == "node-a"
    assert cluster.answers_to_binds() == [
        ("default/web", "admin", 201),
        ("default/web", "admin", 409),
    ]


def test_the_controllers_bind_volumes(cluster: Cluster) -> None:
    controllers = cluster.control_plane.start_controllers("persistentvolume-binder-controller")
    cluster.add(objects.storage_class("local", "kubernetes.io/no-provisioner", waits=False))
    cluster.add(objects.local_volume("disk", "local", "node-a"), objects.claim("data", "local"))

    wait_for(
        lambda: cluster.client.get("PersistentVolumeClaim", "data")["status"]["phase"] == "Bound",
        "the claim is bound",
    )
    controllers.stop()


def test_kube_scheduler_binds_pods(cluster: Cluster) -> None:
    scheduler = cluster.control_plane.start_scheduler()
    cluster.add(objects.node("node-a"), objects.pod("web"))

    assert cluster.wait_until_bound() == {"web": "node-a"}
    scheduler.stop()


def test_the_proxy_loses_what_it_is_told_to(cluster: Cluster) -> None:
    plane = cluster.control_plane
    cluster.add(objects.node("node-a"), *objects.pods("web", 3))
    with (
        Proxy(plane) as proxy,
        PlainClient(proxy.url, token=plane.token(ADMIN), ca_file=plane.ca_file) as client,
    ):
        proxy.lose_requests(binds)
        with pytest.raises(OSError):
            bind_by_hand(client, "web-0", "node-a")
        proxy.lose_answers(binds)
        with pytest.raises(OSError):
            bind_by_hand(client, "web-1", "node-a")
        proxy.refuse(binds, status=500)
        with pytest.raises(ApiFailure, match="refused by a test"):
            bind_by_hand(client, "web-2", "node-a")
        bind_by_hand(client, "web-2", "node-a")

    assert cluster.nodes_of(["web-0", "web-1", "web-2"]) == {
        "web-0": "",
        "web-1": "node-a",
        "web-2": "node-a",
    }


def test_by_hand_it_prints_a_kubeconfig_and_leaves_nothing_behind(tmp_path: Path) -> None:
    script = Path(module.__file__)
    process = subprocess.Popen(
        [sys.executable, script, "up"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    with process:
        assert process.stdout is not None
        kubeconfig = Path(process.stdout.readline().strip())
        assert kubeconfig.is_relative_to(tmp_path)
        process.terminate()

    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_with_a_folder_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with ControlPlane(tmp_path) as first, first.client() as client:
        client.create(objects.node("node-a"))

    with ControlPlane(tmp_path) as second, second.client() as client:
        assert [node["metadata"]["name"] for node in client.list("Node")] == ["node-a"]
