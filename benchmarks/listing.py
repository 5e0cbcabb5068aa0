"""A cluster as `kubectl get nodes,pods --all-namespaces -o json` prints it, with all that nobody reads.

A pod is of the size that pods have: an owner, environment, probes, mounts, and a status with conditions. In
a cluster of 150,000 they come from 3,000 workloads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.manifests import node_document, node_name

_PODS_PER_OWNER = 50
_TIME = "2026-01-01T00:00:00Z"


def write_cluster(path: Path, nodes: int, pods: int) -> None:
    """One List with every node and every pod, the pods on their nodes."""
    with path.open("w") as file:
        file.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
        for i in range(nodes):
            file.write(node_text(i))
            file.write(",\n")
        for number, text in enumerate(pod_texts(nodes, pods), start=1):
            file.write(text)
            file.write(",\n" if number < pods else "\n")
        file.write("]}\n")


def node_text(i: int) -> str:
    document = node_document(i)
    document["metadata"] |= {
        "annotations": {
            "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        },
        "creationTimestamp": _TIME,
        "resourceVersion": str(1000 + i),
    }
    document["spec"] = {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}
    document["status"] |= {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "conditions": [
            _condition(kind, "True" if kind == "Ready" else "False")
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        ],
        "images": [
            {"names": [f"registry.example.com/team/app-{n}:1.{n}"], "sizeBytes": 10**8 + n}
            for n in range(i % 100, i % 100 + 20)
        ],
        "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.36.0"},
    }
    return json.dumps(document)


def pod_texts(nodes: int, pods: int) -> Iterator[str]:
    text = json.dumps(_pod_document())
    for i in range(pods):
        yield (
            text.replace("@owner@", f"app-{i // _PODS_PER_OWNER}")
            .replace("@name@", f"{i // _PODS_PER_OWNER}-{i % _PODS_PER_OWNER}")
            .replace("@uid@", f"00000000-0000-4000-8000-{i:012d}")
            .replace("@node@", node_name(i % nodes))
        )


def _pod_document() -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "@owner@-7d9c5b8f6d",
        "uid": "@owner@-7d9c5b8f6d",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    mount = {
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": "kube-api-access",
    }
    token = {
        "name": "kube-api-access",
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt"}]}},
            ],
        },
    }
    container = {
        "name": "app",
        "image": "registry.example.com/team/@owner@:1.0",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(8)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "500Mi"},
            "limits": {"cpu": "200m", "memory": "500Mi"},
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount | {"readOnly": True}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "@owner@-7d9c5b8f6d-@name@",
            "generateName": "@owner@-7d9c5b8f6d-",
            "namespace": "default",
            "uid": "@uid@",
            "resourceVersion": "123456",
            "creationTimestamp": _TIME,
            "labels": {
                "app.kubernetes.io/name": "@owner@",
                "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": "7d9c5b8f6d",
            },
            "annotations": {"prometheus.io/scrape": "true"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": "@node@",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "terminationGracePeriodSeconds": 30,
            "securityContext": {},
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{problem}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for problem in ("not-ready", "unreachable")
            ],
            "containers": [container],
            "volumes": [token],
        },
        "status": {
            "phase": "Running",
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "qosClass": "Burstable",
            "startTime": _TIME,
            "conditions": [
                _condition(kind, "True")
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": "app",
                    "image": "registry.example.com/team/@owner@:1.0",
                    "imageID": "registry.example.com/team/@owner@@sha256:" + "0" * 64,
                    "containerID": "containerd://" + "0" * 64,
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": _TIME}},
                    "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
                    "allocatedResources": {"cpu": "100m", "memory": "500Mi"},
                }
            ],
        },
    }


def _condition(kind: str, status: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": _TIME,
    }
