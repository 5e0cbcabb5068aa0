"""The node affinity of provisioned volumes, and what follows from it for pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.explain.drain import without_nodes
from mooring.explain.settled import settle
from mooring.objects.claims import allows_topology, is_accessible_from
from mooring.objects.manifests import read_manifests
from mooring.objects.pod import Pod
from mooring.objects.provisioners import VOLUME_TOPOLOGY
from mooring.objects.storage import PersistentVolume
from mooring.objects.well_known import BETA_ZONE, HOSTNAME, ZONE
from mooring.sim.build_report import simulate_objects
from mooring.sim.provisioned_volume import spread_number, volume_affinity
from mooring.sim.simulation import SimOptions
from tests.makers import make_node
from tests.volume_world import make_claim, make_class, make_csi_node, with_annotations

WAIT, NOW = "WaitForFirstConsumer", "Immediate"
EBS, EFS, LOCAL = "ebs.csi.aws.com", "efs.csi.aws.com", "rancher.io/local-path"

NODES = [
    make_node(f"n-{zone}{i}", labels={ZONE: f"zone-{zone}", HOSTNAME: f"n-{zone}{i}"})
    for zone in "abc"
    for i in (1, 2)
]


def usable_from(storage_class, claim=None, *, selected=None, nodes=NODES, csi_nodes=()) -> set[str]:
    """The nodes that can use the volume."""
    affinity = volume_affinity(
        storage_class,
        claim or make_claim(),
        selected=next((node for node in nodes if node.name == selected), None),
        nodes=nodes,
        csi_nodes={each.name: each for each in csi_nodes},
    )
    volume = PersistentVolume()
    volume = replace(volume, spec=replace(volume.spec, node_affinity=affinity))
    return {node.name for node in nodes if is_accessible_from(volume, node.labels)}


ALL = {node.name for node in NODES}


@pytest.mark.parametrize(
    ("provisioner", "modes", "expected"),
    [
        pytest.param(EBS, ["ReadWriteOnce"], {"n-b1", "n-b2"}, id="a disk in its zone"),
        pytest.param(LOCAL, ["ReadWriteOnce"], {"n-b1"}, id="a local disk on its node"),
        pytest.param(EFS, ["ReadWriteOnce"], ALL, id="a file system everywhere"),
        pytest.param("disk.example.com", ["ReadWriteMany"], ALL, id="for many nodes, everywhere"),
    ],
)
def test_a_volume_for_a_pod_can_be_used_where_its_kind_can(provisioner, modes, expected):
    claim = make_claim(modes=modes)

    assert usable_from(make_class(provisioner=provisioner), claim, selected="n-b1") == expected


def test_without_zones_a_network_disk_can_be_used_everywhere():
    nodes = [make_node(name, labels={HOSTNAME: name}) for name in ("a", "b")]

    storage_class = make_class(provisioner=EBS)
    assert usable_from(storage_class, selected="a", nodes=nodes) == {"a", "b"}


@pytest.mark.parametrize("key", ["topology.ebs.csi.aws.com/zone", ZONE, BETA_ZONE])
def test_the_zone_is_read_from_the_label_that_nodes_have(key):
    nodes = [make_node(name, labels={key: name[0]}) for name in ("a1", "a2", "b1")]

    storage_class = make_class(provisioner="kubernetes.io/aws-ebs")
    assert usable_from(storage_class, selected="a2", nodes=nodes) == {"a1", "a2"}


def test_the_driver_on_a_node_says_which_labels_matter():
    """Of an unknown driver nothing else is known."""
    nodes = [make_node(name, labels={"rack": name[0], ZONE: "z"}) for name in ("a1", "a2", "b1")]
    csi_nodes = []
    for node in nodes:
        csi_node = make_csi_node(node.name, {"disk.example.com": None})
        (driver,) = csi_node.spec.drivers
        driver = replace(driver, topology_keys=["rack"])
        csi_nodes.append(replace(csi_node, spec=replace(csi_node.spec, drivers=[driver])))
    storage_class = make_class(provisioner="disk.example.com")

    found = usable_from(storage_class, selected="a1", nodes=nodes, csi_nodes=csi_nodes)
    assert found == {"a1", "a2"}

    annotated = with_annotations(storage_class, {VOLUME_TOPOLOGY: "zone"})
    found = usable_from(annotated, selected="a1", nodes=nodes, csi_nodes=csi_nodes)
    assert found == {"a1", "a2", "b1"}


@pytest.mark.parametrize("provisioner", [EBS, EFS, LOCAL])
@pytest.mark.parametrize("selected", ["n-b1", None])
def test_no_volume_is_outside_what_the_class_allows(provisioner, selected):
    storage_class = make_class(provisioner=provisioner, mode=NOW, topologies=[{ZONE: ["zone-b"]}])

    found = usable_from(storage_class, selected=selected)

    assert found
    assert found <= {"n-b1", "n-b2"}


def test_a_disk_without_a_pod_is_in_one_of_the_allowed_zones():
    storage_class = make_class(provisioner=EBS, mode=NOW, topologies=[{ZONE: ["zone-b", "zone-c"]}])

    zones = [usable_from(storage_class, make_claim(f"data-web-{i}")) for i in range(4)]

    assert zones[0] == zones[2]
    assert zones[1] == zones[3]
    assert {frozenset(zone) for zone in zones} == {
        frozenset({"n-b1", "n-b2"}),
        frozenset({"n-c1", "n-c2"}),
    }


def test_if_no_node_is_allowed_no_node_can_use_the_volume():
    storage_class = make_class(provisioner=EBS, mode=NOW, topologies=[{ZONE: ["zone-x"]}])

    assert usable_from(storage_class) == set()


def test_a_local_disk_without_a_pod_is_on_a_node_that_takes_pods():
    nodes = [
        replace(node, spec=replace(node.spec, unschedulable=node.name != "n-c2")) for node in NODES
    ]

    storage_class = make_class(provisioner="hostpath.csi.k8s.io", mode=NOW)
    assert usable_from(storage_class, nodes=nodes) == {"n-c2"}


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("data-web-0", "data-web-1", 1),
        ("data-web-0", "logs-web-0", 0),
        ("web-3", "web-5", 2),
        ("data", "data", 0),
    ],
)
def test_claims_of_a_stateful_set_are_spread_and_those_of_a_pod_are_together(one, other, apart):
    assert spread_number(other) - spread_number(one) == apart


def test_the_hash_of_a_name_is_fnv_1():
    assert spread_number("") == 0x811C9DC5
    assert spread_number("a") == 0x050C5D7E
    assert spread_number("foobar") == 0x31F0B262


@given(
    zones=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    allowed=st.sets(st.sampled_from("abc")),
    provisioner=st.sampled_from([EBS, EFS, LOCAL, "disk.example.com"]),
    waits=st.booleans(),
    name=st.from_regex(r"[a-z]{1,5}(-[a-z]{1,5})?(-[0-9]{1,2})?", fullmatch=True),
)
def test_a_volume_can_be_used_by_its_pods_node_and_only_where_allowed(
    zones, allowed, provisioner, waits, name
):
    nodes = [
        make_node(f"n{i}", labels={ZONE: zone, HOSTNAME: f"n{i}"}) for i, zone in enumerate(zones)
    ]
    topologies = [{ZONE: sorted(allowed)}] if allowed else []
    storage_class = make_class(
        provisioner=provisioner, mode=WAIT if waits else NOW, topologies=topologies
    )
    possible = [node.name for node in nodes if allows_topology(storage_class, node.labels)]
    selected = possible[0] if waits and possible else None

    found = usable_from(storage_class, make_claim(name), selected=selected, nodes=nodes)

    assert found <= set(possible)
    assert bool(found) == bool(possible)
    if selected:
        assert selected in found


# What follows for pods

CLUSTER = "".join(
    f"""
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: {name[0]}}}}}
status: {{allocatable: {{cpu: "4", memory: 16Gi, pods: "110"}}}}
"""
    for name in ("a1", "a2", "b1")
)


def storage(provisioner: str, mode: str, *, binding: str = WAIT, more: str = "") -> str:
    return f"""
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: {provisioner}
volumeBindingMode: {binding}
{more}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec:
  accessModes: [{mode}]
  resources: {{requests: {{storage: 10Gi}}}}
"""


def deployment(replicas: int) -> str:
    return f"""
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: web, image: web, resources: {{requests: {{cpu: 500m}}}}}}]
      volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
"""


def read(tmp_path, text: str):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return read_manifests([path]).objects


@pytest.mark.parametrize(
    ("provisioner", "holds"),
    [(EBS, True), ("kubernetes.io/gce-pd", True), (EFS, True), (LOCAL, False)],
)
def test_a_pod_with_a_zonal_volume_moves_to_the_neighbour_when_its_node_is_drained(
    tmp_path, provisioner, holds
):
    """Volumes were tied to the hostname, so that a drain never held."""
    objects = read(tmp_path, CLUSTER + storage(provisioner, "ReadWriteOnce") + deployment(1))
    settled = settle(objects, SimOptions())
    (pod,) = (obj for obj in settled.objects if isinstance(obj, Pod))
    assert pod.node_name in ("a1", "a2")

    assert without_nodes(settled, [pod.node_name]).holds == holds
    assert without_nodes(settled, ["a1", "a2"]).holds == (provisioner == EFS)


@pytest.mark.parametrize("provisioner", [EFS, "nfs.csi.k8s.io", "disk.example.com"])
@pytest.mark.parametrize("binding", [WAIT, NOW])
def test_replicas_on_one_claim_for_many_nodes_do_not_pile_up_on_one_node(
    tmp_path, provisioner, binding
):
    """All 12 were on the node of the first one."""
    text = CLUSTER + storage(provisioner, "ReadWriteMany", binding=binding) + deployment(12)

    report = simulate_objects(read(tmp_path, text))

    assert not report.pending
    nodes = [placed.node for placed in report.placements]
    assert sorted(nodes.count(name) for name in ("a1", "a2", "b1")) == [3, 4, 5]


@pytest.mark.parametrize("binding", [WAIT, NOW])
@pytest.mark.parametrize("provisioner", [EBS, EFS, LOCAL])
def test_pods_go_where_the_class_allows_volumes(tmp_path, provisioner, binding):
    allowed = """
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b]}]
"""
    text = CLUSTER + storage(provisioner, "ReadWriteOnce", binding=binding, more=allowed)

    report = simulate_objects(read(tmp_path, text + deployment(3)))

    assert [placed.node for placed in report.placements] == ["b1"] * 3
