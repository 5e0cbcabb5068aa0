"""What a snapshot holds, and above all what it does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from mooring.live.decoding import decode_object
from mooring.live.resources import PODS
from mooring.live.snapshot import NEEDED, read_cluster, stripped, to_data
from mooring.objects.kinds import KIND_OF, Kind, ReplicaSet
from mooring.objects.manifests import read_manifests
from mooring.objects.pod import Pod
from mooring.sim.build_report import simulate_objects
from mooring.sim.simulation import SimOptions

SECRET = "hunter2"

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u1",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
            "mooring.dev/run-seconds": "5",
        },
        "labels": {"app": "x"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "rs",
                "uid": "r1",
                "controller": True,
            }
        ],
    },
    "spec": {
        "imagePullSecrets": [{"name": SECRET}],
        "serviceAccountName": SECRET,
        "containers": [
            {
                "name": "c",
                "image": "registry/image",
                "command": [SECRET],
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "resources": {"requests": {"cpu": "100m"}},
            }
        ],
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "message": SECRET},
        ]
    },
}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "rs", "namespace": "default", "uid": "r1"},
    "spec": {
        "replicas": 7,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"note": SECRET}},
            "spec": {"containers": [{"name": "c", "env": [{"name": "P", "value": SECRET}]}]},
        },
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "annotations": {"flannel": SECRET}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


class FakeClient:
    """Answers lists, two objects a page."""

    def __init__(self, objects: dict[str, list[dict]]) -> None:
        self._objects = objects
        self.asked: list[tuple[str, str]] = []

    async def request(self, method, path, *, params=None, **_):
        self.asked.append((method, path))
        found = self._objects.get(path, [])
        start = int(params.get("continue", 0))
        rest = str(start + 2) if start + 2 < len(found) else ""
        return msgspec.json.encode(
            {"metadata": {"continue": rest}, "items": found[start : start + 2]}
        )


def decoded(document: dict, kind: Kind):
    return decode_object(msgspec.json.encode(document), kind)


def test_nothing_secret_and_nothing_unneeded_is_written():
    (pod,) = stripped([decoded(POD, PODS)])

    text = msgspec.json.encode(to_data([pod])).decode()

    assert SECRET not in text
    assert pod.metadata.annotations == {"mooring.dev/run-seconds": "5"}
    assert isinstance(pod, Pod)
    assert str(pod.spec.containers[0].resources.requests["cpu"]) == "100m"


def test_a_controller_wants_as_many_pods_as_there_are():
    objects = [decoded(POD, PODS), decoded(REPLICA_SET, KIND_OF[ReplicaSet])]

    _, replica_set = stripped(objects)

    assert isinstance(replica_set, ReplicaSet)
    assert replica_set.spec.replicas == 1
    assert SECRET not in msgspec.json.encode(to_data([replica_set])).decode()


def test_secrets_and_config_maps_are_not_even_asked_for():
    asked = {kind.plural for kind in NEEDED}

    assert not asked & {"secrets", "configmaps", "serviceaccounts"}


def test_a_snapshot_only_reads_and_a_simulation_starts_from_it(tmp_path: Path):
    names = [f"a{i}" for i in range(5)]
    nodes = [{**NODE, "metadata": {"name": name}} for name in names]
    client = FakeClient(
        {"/api/v1/nodes": nodes, "/api/v1/pods": [POD], "/apis/apps/v1/replicasets": [REPLICA_SET]}
    )

    objects, left_out = asyncio.run(read_cluster(client))
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode(to_data(objects)))
    manifests = read_manifests([str(path)])
    report = simulate_objects(manifests.objects, SimOptions())

    assert left_out == []
    assert {method for method, _ in client.asked} == {"GET"}
    assert len(manifests.pods) == 1
    assert report.all_placed
