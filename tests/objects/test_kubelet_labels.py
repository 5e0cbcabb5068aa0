"""Nodes in files get the labels that every kubelet sets."""

from __future__ import annotations

import io

from mooring.objects.kubelet_labels import ARCH, BETA_ARCH, BETA_OS, OS, labelled, warning
from mooring.objects.manifests import read_manifests
from mooring.objects.well_known import HOSTNAME
from mooring.sim.build_report import simulate_objects
from tests.makers import make_node

BARE = """
apiVersion: v1
kind: Node
metadata: {name: %s%s}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}%s}
---
"""

APART = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchLabels: {app: web}}
            topologyKey: kubernetes.io/hostname
"""


BETA = {BETA_OS: "linux", BETA_ARCH: "amd64"}


def read(text: str, among=()):
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()), among=among)


def test_missing_labels_are_set_as_the_kubelet_does_with_one_warning_for_all_nodes():
    manifests = read("".join(BARE % (f"n{i}", "", "") for i in range(1, 8)))

    for node in manifests.nodes:
        assert node.labels == {HOSTNAME: node.name, OS: "linux", ARCH: "amd64"} | BETA
    assert manifests.warnings == [
        "7 nodes lack labels that every kubelet sets (kubernetes.io/hostname, kubernetes.io/os,"
        " kubernetes.io/arch); mooring sets them as the kubelet does: n1, n2, n3, n4, n5 and 2 more"
    ]


def test_the_system_of_the_node_is_that_of_its_status():
    info = ", nodeInfo: {operatingSystem: windows, architecture: arm64}"
    (node,) = read(BARE % ("n1", "", info)).nodes

    assert (node.labels[OS], node.labels[ARCH]) == ("windows", "arm64")


def test_a_selector_by_the_labels_of_old_finds_nodes_that_were_written_without_them():
    """The labels follow those that the node has; nobody is told of them."""
    labels = "{kubernetes.io/hostname: n1, kubernetes.io/os: windows, kubernetes.io/arch: arm64}"
    manifests = read(BARE % ("n1", f", labels: {labels}", ""))

    (node,) = manifests.nodes
    assert (node.labels[BETA_OS], node.labels[BETA_ARCH]) == ("windows", "arm64")
    assert manifests.warnings == []


def test_labels_that_are_there_stay():
    labels = ", labels: {kubernetes.io/hostname: other, kubernetes.io/os: linux}"
    manifests = read(BARE % ("n1", labels, ""))

    (node,) = manifests.nodes
    assert node.labels == {HOSTNAME: "other", OS: "linux", ARCH: "amd64"} | BETA
    assert manifests.warnings == [
        "1 node lacks labels that every kubelet sets (kubernetes.io/arch); mooring sets them as the"
        " kubelet does: n1"
    ]


def test_a_node_with_all_labels_is_left_alone():
    node = labelled(make_node("n1"))

    assert labelled(node) is node
    assert warning([node]) == ""


def test_pods_that_keep_apart_by_hostname_are_on_different_nodes():
    """Without the label, the anti-affinity did nothing, and all pods were placed."""
    manifests = read(BARE % ("n1", "", "") + BARE % ("n2", "", "") + APART)

    report = simulate_objects(manifests.objects)

    assert sorted(placed.node for placed in report.placements) == ["n1", "n2"]
    assert len(report.pending) == 1


def test_nodes_that_are_not_read_here_are_left_alone():
    """A real cluster, and the cases of kube-scheduler, have the labels that they have."""
    bare = make_node("n0")

    manifests = read(APART, among=[bare])

    assert manifests.warnings == []
    assert HOSTNAME not in bare.labels or bare.labels[HOSTNAME] == "n0"
