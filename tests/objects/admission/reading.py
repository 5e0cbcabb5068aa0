"""Manifests for the tests of admission, as YAML, and what becomes of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import yaml

from mooring.objects.manifests import Manifests, read_manifests

NAMESPACE = "shop"


def read(*documents: dict[str, Any], among: Sequence[Any] = ()) -> Manifests:
    text = yaml.safe_dump_all(documents)
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()), among=among)


def reasons(manifests: Manifests) -> list[str]:
    return [each.reason for each in manifests.refused]


def obj(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def container(
    name: str = "app", requests: dict[str, str] | None = None, limits: dict[str, str] | None = None
) -> dict[str, Any]:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"name": name, "image": name, "resources": resources}


def pod(name: str = "web", *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = spec.pop("metadata", {})
    status = spec.pop("status", {})
    spec = {"containers": list(containers) or [container()], **spec}
    return obj("v1", "Pod", name, metadata=metadata, spec=spec, status=status)


def workload(
    kind: str, name: str, *containers: dict[str, Any], group: str = "apps/v1", **fields: Any
) -> dict[str, Any]:
    """A Deployment, for example. `pod_spec` has further fields of its pods."""
    labels = {"app": name}
    pod_spec = {"containers": list(containers) or [container()], **fields.pop("pod_spec", {})}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": labels}, "template": template, **fields}
    return obj(group, kind, name, spec=spec)


def quota(name: str = "quota", hard: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return obj("v1", "ResourceQuota", name, spec={"hard": hard or {}, **spec})


def limit_range(name: str = "limits", *limits: dict[str, Any]) -> dict[str, Any]:
    return obj("v1", "LimitRange", name, spec={"limits": list(limits)})


def claim(name: str = "data", storage: str = "1Gi", **spec: Any) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": storage}},
        **spec,
    }
    return obj("v1", "PersistentVolumeClaim", name, spec=spec)


STANDARD = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard"},
    "provisioner": "ebs.csi.aws.com",
}
