"""Claims that nothing will ever give a volume are warned about, by name."""

from __future__ import annotations

import pytest

from tests.objects.admission.reading import STANDARD, claim, container, obj, pod, read, workload

BARE = claim("data", storageClassName=None)
DEFAULT = STANDARD | {
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
}


def volume(name: str = "pv", class_name: str = "", storage: str = "1Gi"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": storage},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
        },
    }


def mounting(*names: str, name: str = "web"):
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    return pod(name, container(), volumes=volumes)


NO_CLASS = "claim shop/data has no class and there is no default StorageClass; add one"
NO_SUCH_CLASS = "claim shop/data names the StorageClass 'standard', which does not exist; add it"

NO_SUCH_VOLUME = "claim shop/data names the PersistentVolume 'pv', which does not exist; add it"
NOT_ITS_VOLUME = "claim shop/data names the PersistentVolume 'pv', which it cannot get: "


@pytest.mark.parametrize(
    ("documents", "warnings"),
    [
        pytest.param([BARE], [NO_CLASS], id="no class"),
        pytest.param([BARE, STANDARD], [NO_CLASS], id="no default class"),
        pytest.param([BARE, DEFAULT], [], id="a default class"),
        pytest.param([BARE, volume()], [], id="a volume without a class"),
        pytest.param([BARE, volume(storage="1Mi")], [NO_CLASS], id="a volume that is too small"),
        pytest.param([claim("data", storageClassName="")], [], id="no class on purpose"),
        pytest.param(
            [claim("data", volumeName="pv"), volume(class_name="standard")],
            [],
            id="a volume by name",
        ),
        pytest.param([claim("data", volumeName="pv")], [NO_SUCH_VOLUME], id="no such volume"),
        pytest.param(
            [claim("data", volumeName="pv"), volume(class_name="fast")],
            [NOT_ITS_VOLUME + "it is of another storage class"],
            id="a volume by name of another class",
        ),
        pytest.param(
            [claim("data", volumeName="pv"), volume(class_name="standard", storage="1Mi")],
            [NOT_ITS_VOLUME + "it is smaller than the claim requests"],
            id="a volume by name that is too small",
        ),
        pytest.param([claim("data")], [NO_SUCH_CLASS], id="no such class"),
        pytest.param([claim("data"), STANDARD], [], id="its class"),
        pytest.param(
            [claim("data"), volume(class_name="standard")], [], id="a volume by its class"
        ),
    ],
)
def test_a_claim_that_nothing_can_bind_is_warned_about(documents, warnings):
    assert read(*documents).warnings == warnings


def test_a_volume_that_is_reserved_for_another_claim_is_warned_about():
    taken = volume(class_name="standard")
    taken["spec"]["claimRef"] = {"namespace": "shop", "name": "other"}

    assert read(claim("data", volumeName="pv"), taken).warnings == [
        NOT_ITS_VOLUME + "it is reserved for another claim"
    ]


def test_a_volume_without_the_labels_that_a_claim_selects_is_no_volume_for_it():
    selecting = claim("data", selector={"matchLabels": {"disk": "ssd"}})

    assert read(selecting, volume(class_name="standard")).warnings == [NO_SUCH_CLASS]


def test_a_volume_is_for_one_claim():
    written = [claim("one"), claim("two"), volume(class_name="standard")]

    assert read(*written).warnings == [NO_SUCH_CLASS.replace("data", "two")]


def test_claims_that_lack_the_same_are_one_line():
    template = {"metadata": {"name": "data"}, "spec": BARE["spec"]}
    db = workload("StatefulSet", "db", replicas=7, volumeClaimTemplates=[template])

    assert read(db).warnings == [
        "claims shop/data-db-0, shop/data-db-1, shop/data-db-2, shop/data-db-3, shop/data-db-4 and"
        " 2 more have no class and there is no default StorageClass; add one"
    ]


def test_a_claim_that_a_pod_names_and_that_is_not_there():
    assert read(mounting("data")).warnings == [
        "claim shop/data, which pods name, does not exist; add it"
    ]
    assert read(mounting("data", "logs")).warnings == [
        "claims shop/data, shop/logs, which pods name, do not exist; add them"
    ]
    assert read(DEFAULT, claim("data"), mounting("data")).warnings == []


def test_pods_that_run_or_have_finished_have_their_claims():
    done = mounting("data") | {"status": {"phase": "Succeeded"}}

    assert read(done).warnings == []


def test_the_claim_of_an_ephemeral_volume_is_made_for_the_pod():
    template = {"spec": claim()["spec"]}
    tmp = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}

    assert read(STANDARD, pod("web", container(), volumes=[tmp])).warnings == []


def test_what_the_cluster_has_is_not_missing():
    around = read(DEFAULT, claim("data")).objects

    assert (
        read(mounting("data"), BARE | {"metadata": {"name": "more"}}, among=around).warnings == []
    )


def test_a_claim_that_is_refused_is_told_once():
    quota = obj("v1", "ResourceQuota", "q", spec={"hard": {"persistentvolumeclaims": "0"}})
    manifests = read(DEFAULT, quota, claim("data"), mounting("data"))

    assert manifests.warnings == []
    assert len(manifests.refusals) == 1


NO_NODE = (
    "StorageClass standard allows only nodes with the label topology.gke.io/zone=a|b, "
    "and no node has it; add it to the nodes, or change allowedTopologies"
)


@pytest.mark.parametrize(
    ("labels", "warnings"),
    [
        pytest.param({"topology.gke.io/zone": "b"}, [], id="a node of one of the zones"),
        pytest.param({"topology.gke.io/zone": "c"}, [NO_NODE], id="a node of another zone"),
        pytest.param({}, [NO_NODE], id="no node with the label"),
    ],
)
def test_a_class_that_allows_none_of_the_nodes_is_warned_about(labels, warnings):
    terms = [{"matchLabelExpressions": [{"key": "topology.gke.io/zone", "values": ["a", "b"]}]}]
    kubelet = {f"kubernetes.io/{key}": key for key in ("hostname", "os", "arch")}
    node = obj("v1", "Node", "n-1", status={"capacity": {"pods": "9"}})
    node["metadata"]["labels"] = kubelet | labels

    assert read(claim("data"), STANDARD | {"allowedTopologies": terms}, node).warnings == warnings
    assert read(STANDARD | {"allowedTopologies": terms}, node).warnings == []
