"""A real cluster written down: a simulation goes on from it as the real scheduler does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import MOORING
from plain_client import Json

from tests.live import command, objects
from tests.live.cluster import Cluster
from tests.live.conftest import StartMooring

pytestmark = pytest.mark.live

PRIVATE = "not for the eyes of others"
SECRETS = "/api/v1/namespaces/default/secrets"

#: By the rules there is one best node for each of the first two, and none for the third.
WAITING = [
    *objects.pods("web", 2, cpu="1500m"),
    objects.pod("picky", nodeSelector={"disk": "ssd"}),
]


@pytest.fixture
def secret(cluster: Cluster) -> Iterator[str]:
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "secret", "namespace": "default"},
        "stringData": {"password": PRIVATE},
    }
    cluster.client.request("POST", SECRETS, document)
    yield "secret"
    cluster.client.request("DELETE", f"{SECRETS}/secret")


def at_work(secret: str) -> list[Json]:
    """Two nodes with pods, one of which is full of what nobody else should see."""
    private = objects.pod("private", nodeName="node-a", imagePullSecrets=[{"name": secret}])
    private["metadata"]["annotations"] = {"note": PRIVATE}
    [container] = private["spec"]["containers"]
    container["command"] = ["sh", "-c", PRIVATE]
    container["env"] = [{"name": "PASSWORD", "value": PRIVATE}]
    return [
        objects.node("node-a", cpu="4", zone="z1"),
        objects.node("node-b", cpu="4", zone="z2"),
        objects.storage_class("local", "kubernetes.io/no-provisioner"),
        objects.local_volume("disk", "local", "node-b"),
        objects.claim("data", "local"),
        private,
        *objects.pods("there", 3, cpu="1", nodeName="node-b"),
    ]


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json"])
def test_a_simulation_goes_on_from_it_as_the_scheduler_does(
    cluster: Cluster, start_mooring: StartMooring, secret: str, tmp_path: Path, name: str
) -> None:
    cluster.add(*at_work(secret))
    file, more = tmp_path / name, tmp_path / "more.json"
    # With the rights that mooring is shipped with, which do not let it read Secrets.
    kubeconfig = cluster.control_plane.kubeconfig(MOORING)

    taken = command.run("snapshot", "--kubeconfig", kubeconfig, "--output", file)

    assert taken.exit_code == 0, taken.errors
    assert "warning" not in taken.errors
    assert PRIVATE not in file.read_text()
    assert "imagePullSecrets" not in file.read_text()
    more.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": WAITING}))
    simulated = command.run("simulate", file, more, "--output", "json")
    assert simulated.exit_code == 1, f"one pod is pending: {simulated.errors}"
    report = json.loads(simulated.output)
    start_mooring()
    cluster.add(*WAITING)
    refused = cluster.wait_until_refused("picky")
    bound = cluster.wait_until_bound("web-0", "web-1")
    placed = {each["pod"]: each["node"] for each in report["placements"]}
    assert placed == {f"default/web-{number}": bound[f"web-{number}"] for number in range(2)}
    [pending] = report["pending"]
    assert refused["message"] in json.dumps(pending)


def test_a_cluster_that_cannot_be_reached_is_said_in_a_line(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")

    taken = command.run("snapshot", "--kubeconfig", kubeconfig)

    assert taken.exit_code == 2
    assert "Traceback" not in taken.errors
    assert str(kubeconfig) in taken.errors
