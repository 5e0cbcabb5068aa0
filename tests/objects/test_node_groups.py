"""Nodes from a short text have what machines of a provider have, and the labels that kubelets set."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.instance_types import (
    allocatable,
    default_pods,
    find_instance_type,
    instance_types,
)
from mooring.objects.manifests import read_manifests
from mooring.objects.node_groups import node_documents, parse_node_group

GI, MI = 2**30, 2**20


def nodes_of(*texts, taken=()):
    groups = [parse_node_group(text) for text in texts]
    return read_manifests([], documents=node_documents(groups, taken)).nodes


def test_described_nodes_offer_what_is_written_and_take_turns_in_the_zones():
    nodes = nodes_of("4x8cpu,32Gi,zones=3")

    assert [node.name for node in nodes] == [f"8cpu-32gi-{i}" for i in (1, 2, 3, 4)]
    zones = [node.labels["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert {name: str(q) for name, q in nodes[0].status.allocatable.items()} == {
        "cpu": "8",
        "memory": str(32 * GI),
        "ephemeral-storage": str(100 * GI),
        "pods": "110",
    }


def test_a_node_has_the_labels_of_the_kubelet_and_the_cloud_provider():
    (node,) = nodes_of("m7g.large")

    assert node.labels == {
        "kubernetes.io/hostname": "m7g-large-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "arm64",
        "node.kubernetes.io/instance-type": "m7g.large",
        "beta.kubernetes.io/instance-type": "m7g.large",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
        "failure-domain.beta.kubernetes.io/region": "us-east-1",
        "failure-domain.beta.kubernetes.io/zone": "us-east-1a",
        "topology.ebs.csi.aws.com/zone": "us-east-1a",
    }


@pytest.mark.parametrize(
    ("text", "label", "zones"),
    [
        ("2xm5.large,zones=2", "topology.ebs.csi.aws.com/zone", ["us-east-1a", "us-east-1b"]),
        ("2xe2-medium,zones=2", "topology.gke.io/zone", ["us-central1-a", "us-central1-b"]),
        ("2xD4s_v5,zones=2", "topology.disk.csi.azure.com/zone", ["eastus-1", "eastus-2"]),
        ("2x8cpu,32Gi,zones=2", "failure-domain.beta.kubernetes.io/zone", ["zone-a", "zone-b"]),
    ],
)
def test_zones_have_the_names_by_which_classes_and_old_manifests_ask_for_them(text, label, zones):
    """A StorageClass that allows zones of `topology.gke.io/zone` fitted nowhere."""
    assert [node.labels[label] for node in nodes_of(text)] == zones


@pytest.mark.parametrize(
    ("name", "arch", "cpu", "memory_gib", "pods", "gpus"),
    [
        ("t3a.small", "amd64", 2, 2, 8, 0),
        ("m5.16xlarge", "amd64", 64, 256, 737, 0),
        ("c6g.medium", "arm64", 1, 2, 8, 0),
        ("i3.large", "amd64", 2, 15.25, 29, 0),
        ("g4dn.12xlarge", "amd64", 48, 192, 234, 4),
        ("g5.48xlarge", "amd64", 192, 768, 345, 8),
        ("g6e.48xlarge", "amd64", 192, 1536, 492, 8),
        ("p3dn.24xlarge", "amd64", 96, 768, 737, 8),
        ("p5.48xlarge", "amd64", 192, 2048, 100, 8),
        ("trn1.32xlarge", "amd64", 128, 512, 247, 16),
        ("n1-highcpu-96", "amd64", 96, 86.4, 110, 0),
        ("t2a-standard-48", "arm64", 48, 192, 110, 0),
        ("a2-megagpu-16g", "amd64", 96, 1360, 110, 16),
        ("g2-standard-32", "amd64", 32, 128, 110, 1),
        ("Standard_DS3_v2", "amd64", 4, 14, 110, 0),
        ("Standard_F72s_v2", "amd64", 72, 144, 110, 0),
        ("Standard_D16ps_v5", "arm64", 16, 64, 110, 0),
        ("Standard_NC16as_T4_v3", "amd64", 16, 110, 110, 1),
        ("Standard_ND96isr_H100_v5", "amd64", 96, 1900, 110, 8),
    ],
)
def test_machine_types_have_what_their_providers_publish(name, arch, cpu, memory_gib, pods, gpus):
    """The odd ones of each provider; the whole table was compared with published lists."""
    kind = find_instance_type(name)

    assert kind is not None
    assert (kind.arch, kind.cpu_milli, kind.pods, kind.gpus) == (arch, cpu * 1000, pods, gpus)
    assert kind.memory_bytes == round(memory_gib * GI)


#: Network interfaces, and addresses of each, by the size of the general families of AWS.
_ENIS = {
    "medium": (2, 4),
    "large": (3, 10),
    **dict.fromkeys(("xlarge", "2xlarge"), (4, 15)),
    **dict.fromkeys(("4xlarge", "8xlarge", "12xlarge"), (8, 30)),
    **dict.fromkeys(("16xlarge", "24xlarge", "32xlarge", "48xlarge"), (15, 50)),
}


@pytest.mark.parametrize("family", ["c6i", "c7g", "m5", "m6a", "m7i", "m8g", "r5", "r6g", "r7a"])
def test_pods_of_aws_follow_from_the_network_interfaces(family):
    """Each interface keeps one address for itself; aws-node and kube-proxy use that of the host."""
    sizes = [kind for kind in instance_types() if kind.name.startswith(f"{family}.")]

    assert len(sizes) >= 8
    for kind in sizes:
        interfaces, addresses = _ENIS[kind.name.partition(".")[2]]
        assert kind.pods == interfaces * (addresses - 1) + 2, kind.name


def test_a_node_declares_the_features_of_a_kubelet_with_default_gates():
    """A pod that restarts all its containers fits on a kubelet v1.36, and did not fit here."""
    (node,) = nodes_of("4cpu,16Gi")

    assert node.status.declared_features == [
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    ]


def test_options_set_gpus_pods_labels_taints_disk_name_and_place():
    (node,) = nodes_of(
        "1x16cpu,64Gi,gpus=4,pods=20,disk=1Ti,label=pool=ml,labels=a=b;c,taint=gpu=true:NoSchedule,"
        "taints=x:NoExecute;y:PreferNoSchedule,name=trainer,region=eu,zone=eu-1,arch=arm64,"
        "example.com/fpga=2"
    )

    offered = {name: str(q) for name, q in node.status.allocatable.items()}
    assert offered["nvidia.com/gpu"] == "4"
    assert offered["example.com/fpga"] == "2"
    assert (offered["pods"], offered["ephemeral-storage"]) == ("20", str(1024 * GI))
    assert node.name == "trainer-1"
    assert node.labels.items() >= {"pool": "ml", "a": "b", "c": ""}.items()
    assert node.labels["topology.kubernetes.io/zone"] == "eu-1"
    assert node.labels["kubernetes.io/arch"] == "arm64"
    assert [(t.key, t.value, t.effect) for t in node.taints] == [
        ("gpu", "true", "NoSchedule"),
        ("x", "", "NoExecute"),
        ("y", "", "PreferNoSchedule"),
    ]


def test_gpus_of_another_vendor_are_named():
    (node,) = nodes_of("8cpu,32Gi,gpus=amd.com/gpu:2")

    assert str(node.status.allocatable["amd.com/gpu"]) == "2"


def test_groups_of_the_same_machine_continue_the_numbers_and_avoid_taken_names():
    names = [node.name for node in nodes_of("2xm5.large", "m5.large", taken=["m5-large-2"])]

    assert names == ["m5-large-1", "m5-large-3", "m5-large-4"]


@pytest.mark.parametrize(
    ("name", "pods", "cpu_milli", "memory_bytes"),
    [
        # EKS: 60 + 10 + 2 × 5 millicores; 255 + 11 × 58 MiB, and 100 MiB for eviction.
        ("m5.xlarge", 58, 3920, 16 * GI - (255 + 11 * 58 + 100) * MI),
        # 44 cores more at 2.5 millicores.
        ("m5.12xlarge", 234, 48_000 - 190, 192 * GI - (255 + 11 * 234 + 100) * MI),
        # Managed node groups cap the pods at 110 below 30 vCPUs, otherwise at 250. The memory is that of
        # all pods that the network interfaces allow: nodeadm computes it before it reads the cap.
        ("m5.4xlarge", 110, 16_000 - 110, 64 * GI - (255 + 11 * 234 + 100) * MI),
        ("m5.24xlarge", 250, 96_000 - 310, 384 * GI - (255 + 11 * 737 + 100) * MI),
        # GKE: 25 % of 4 GiB, 20 % of 4 GiB, 10 % of 8 GiB, and 100 MiB for eviction.
        ("e2-standard-4", 110, 3920, round(16 * GI - 2.6 * GI) - 100 * MI),
        ("e2-medium", 110, 940, 3 * GI - 100 * MI),
        # AKS: 140 millicores; 20 MB × 110 + 50 MB.
        ("Standard_D4s_v5", 110, 3860, 16 * GI - 2_250_000_000 - 100 * MI),
        # A quarter of the memory at most.
        ("Standard_B2s", 110, 1900, 3 * GI - 100 * MI),
    ],
)
def test_kubelet_and_system_reserve_by_the_published_formulas(name, pods, cpu_milli, memory_bytes):
    kind = find_instance_type(name)
    assert kind is not None

    left = allocatable(kind, pods=default_pods(kind), disk_bytes=100 * GI)

    assert default_pods(kind) == pods
    assert left.cpu_milli == cpu_milli
    assert abs(left.memory_bytes - memory_bytes) <= 1


@given(st.sampled_from(instance_types()))
def test_every_machine_type_makes_a_node_that_offers_less_than_it_has(kind):
    (node,) = nodes_of(kind.name)
    offered, has = node.status.allocatable, node.status.capacity

    assert 0 < offered["cpu"].milli_value < has["cpu"].milli_value
    assert 0 <= offered["memory"].value < has["memory"].value
    assert offered.keys() == has.keys()
    assert (kind.gpu_resource in offered) == (kind.gpus > 0)


def test_names_are_found_in_any_case_and_without_the_prefix_of_azure():
    assert find_instance_type("M5.XLARGE") is find_instance_type("m5.xlarge")
    assert find_instance_type("d4s_v5") is find_instance_type("Standard_D4s_v5")


@pytest.mark.parametrize(
    ("name", "bytes_per_pod"),
    [
        pytest.param(
            "Standard_D4s_v5", 20_000_000, id="AKS reserves for the most pods of the node"
        ),
        pytest.param("m5.xlarge", 0, id="EKS reserves for what the network interfaces allow"),
        pytest.param("e2-standard-4", 0, id="GKE reserves by the memory alone"),
    ],
)
def test_what_the_most_pods_of_a_node_reserve(name, bytes_per_pod):
    small, large = nodes_of(f"{name},pods=20", f"{name},pods=110")

    less = small.status.allocatable["memory"].value - large.status.allocatable["memory"].value
    assert abs(less - 90 * bytes_per_pod) <= 1024


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3xm5.xlagre", "did you mean m5.xlarge"),
        ("zzz", "docs/nodes.md lists the known ones"),
        ("", "names no nodes"),
        ("0xm5.large", "write a number from 1"),
        ("8cpu", "memory missing"),
        ("32Gi", "cpu missing"),
        ("8cpu,32Gi,zone=a,zones=3", "give one of the two"),
        ("8cpu,32Gi,zones=0", "a whole number from 1 to 26"),
        ("8cpu,32Gi,lables=a=b", "did you mean labels"),
        ("8cpu,32Gi,taint=a", "write taint=KEY=VALUE:NoSchedule"),
        ("8cpu,32Gi,label==b", "has no key"),
        ("8cpu,32Gi,64Gi", "memory is given twice"),
        ("8cpu,32Gi,m5.large", "is not an option"),
        ("8cpu,memory=lots", "write an amount such as 32Gi"),
        ("8cpu,32Gi,pods=many", "a whole number"),
        ("8cpu,32Gi,gpus=x:4", "write gpus=4 or gpus=amd.com/gpu:4"),
        ("8cpu,32Gi,arch=vax", "write amd64 or arm64"),
        ("8cpu,32Gi,name=", "name has no value"),
        ("m5.large,32Gi", "has its own memory"),
    ],
)
def test_what_describes_no_nodes_is_refused_with_what_to_write(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_node_group(text)


@given(st.text(max_size=30))
def test_any_text_is_a_group_or_refused(text):
    try:
        group = parse_node_group(text)
    except ValueError:
        return
    assert group.count >= 1
