"""Small clusters as YAML."""

from __future__ import annotations

NODES = """
apiVersion: v1
kind: Node
metadata:
  name: n-1
  labels: {kubernetes.io/hostname: n-1, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata:
  name: n-2
  labels: {kubernetes.io/hostname: n-2, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
"""


def pod(name: str, *, cpu: str = "1", metadata: str = "", spec: str = "") -> str:
    """A document of its own; `metadata` and `spec` are further fields, as `, key: value`."""
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}{metadata}}}
spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]{spec}}}
"""


FITS = NODES + pod("web") + pod("api")
TOO_BIG = FITS + pod("big", cpu="8")
