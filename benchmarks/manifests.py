"""The objects of the benchmarks: nodes and pods as an API server shows them, decoded from JSON one by one.

Nodes and pods have the sizes of upstream's scheduler_perf. Each pod is decoded by itself, so that pods of
one controller share no string and no list: finding out that they can is part of what is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mooring.objects.decoding import decode_json, decode_object
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.well_known import HOSTNAME, ZONE

ZONES = 10

CPU_PER_NODE_MILLI = 4000
CPU_PER_POD_MILLI = 100

#: What admission adds to every pod.
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists", "effect": "NoExecute"}
    | {"tolerationSeconds": 300}
    for problem in ("not-ready", "unreachable")
]


def node_name(i: int) -> str:
    return f"node-{i:05d}"


def zone_of(name: str) -> int:
    """The number of the zone that a node of this name is in."""
    return int(name.removeprefix("node-")) % ZONES


def node_document(i: int) -> dict[str, Any]:
    name = node_name(i)
    size = {"cpu": f"{CPU_PER_NODE_MILLI}m", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {
                HOSTNAME: name,
                ZONE: f"zone-{i % ZONES}",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {},
        "status": {"allocatable": size, "capacity": size},
    }


def make_node(i: int) -> Node:
    node = decode_object(node_document(i))
    assert isinstance(node, Node)
    return node


def make(document: Mapping[str, Any]) -> KubeObject:
    return decode_object(document)


class Template:
    """Pods of one make, which differ in their names (and in their claims, if they have any)."""

    def __init__(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        cpu_milli: int = CPU_PER_POD_MILLI,
        memory: str = "500Mi",
        priority: int = 0,
        claim: bool = False,
        requests: Mapping[str, str] | None = None,
        status: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """`spec` holds further fields, spelt as in YAML; with `claim` a pod uses the one of its name.

        `@name@` in `spec` and in `status` stands for the name of the pod.
        """
        self._labels = dict(labels or {"app": "plain"})
        self._spec = {
            "schedulerName": "default-scheduler",
            "priority": priority,
            "terminationGracePeriodSeconds": 30,
            "tolerations": _TOLERATIONS,
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10.1",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {
                        "requests": {"cpu": f"{cpu_milli}m", "memory": memory, **(requests or {})}
                    },
                }
            ],
            **spec,
        }
        if claim:
            self._spec["volumes"] = [
                {"name": "data", "persistentVolumeClaim": {"claimName": "@name@"}}
            ]
        self._text = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": "@name@",
                    "namespace": "default",
                    "uid": "@name@",
                    "labels": self._labels,
                },
                "spec": self._spec,
                "status": {"phase": "Pending", **(status or {})},
            }
        )

    def pod(self, name: str) -> Pod:
        pod = decode_json(self._text.replace("@name@", name).encode(), Pod)
        assert isinstance(pod, Pod)
        return pod


def affinity_term(labels: Mapping[str, str], key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}


def preferred_term(labels: Mapping[str, str], key: str, weight: int) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": affinity_term(labels, key)}


def pod_affinity(
    *required: dict[str, Any], preferred: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Pod affinity or anti-affinity, whichever it is put under."""
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": list(required),
        "preferredDuringSchedulingIgnoredDuringExecution": preferred or [],
    }


def spread(labels: Mapping[str, str], *, max_skew: int, hard: bool) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": max_skew,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(labels)},
        }
    ]
