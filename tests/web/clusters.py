"""Clusters to look at: one with a bit of everything, one that is large, one that is hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]

ZONES = ("quay-a", "quay-b", "quay-c")
#: Markup that would run, were it ever taken for markup.
SCRIPT = "<img src=x onerror=\"window.hostile='ran'\"><script>window.hostile='ran'</script>"


def write_cluster(folder: Path, manifests: Iterator[Manifest]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    items = list(manifests)
    (folder / "cluster.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8"
    )
    return folder


def harbour() -> Iterator[Manifest]:
    """A hundred nodes of all sorts, and pods that finish, preempt, and do not fit."""
    yield from _harbour_nodes()
    for name, value in (("critical", 1000), ("batch", -10)):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    spread = {"topologySpreadConstraints": [_spread(1)]}
    yield deployment("shop/web", 120, cpu="1", memory="2Gi", **spread)
    yield deployment("shop/cart", 60, cpu="500m", memory="1Gi", **spread)
    yield deployment("shop/search", 36, cpu="3", memory="12Gi")
    yield deployment("data/kafka", 15, cpu="6", memory="24Gi", **_apart("kafka"))
    yield deployment("data/postgres", 9, cpu="8", memory="48Gi", **_apart("postgres"))
    yield deployment("observability/metrics", 24, cpu="2", memory="8Gi")
    for i in range(150):
        yield pod(
            f"batch/nightly-{i}",
            cpu="2",
            memory="4Gi",
            priorityClassName="batch",
            labels={"app": "nightly"},
            nodeName=f"berth-{i * 7 % 96:02d}",
        )
    for i in range(60):
        yield pod(
            f"batch/report-{i}",
            cpu="4",
            memory="8Gi",
            annotations={"mooring.dev/run-seconds": str(60 + 45 * (i % 9))},
            labels={"app": "report"},
        )
    gpu = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    for i in range(10):
        yield pod(
            f"ml/train-{i}",
            cpu="6",
            memory="48Gi",
            gpu=2,
            annotations={"mooring.dev/run-seconds": str(300 + 60 * i)},
            labels={"app": "train"},
            **gpu,
        )
    for i in range(26):
        yield pod(
            f"shop/checkout-{i}",
            cpu="4",
            memory="6Gi",
            priorityClassName="critical",
            labels={"app": "checkout"},
        )
    yield from _that_wait()


def _harbour_nodes() -> Iterator[Manifest]:
    for i in range(96):
        size = (("8", "32Gi"), ("16", "64Gi"), ("32", "128Gi"))[0 if i % 4 else 1 + (i % 8 == 0)]
        yield node(
            f"berth-{i:02d}",
            cpu=size[0],
            memory=size[1],
            zone=ZONES[i % 3],
            pool="general",
            unschedulable=i in (17, 40),
            taints=[{"key": "spot", "value": "true", "effect": "NoSchedule"}]
            if i % 16 == 5
            else [],
        )
    for i in range(6):
        yield node(
            f"crane-{i}",
            cpu="32",
            memory="256Gi",
            zone=ZONES[i % 3],
            pool="gpu",
            taints=[{"key": "gpu", "value": "true", "effect": "NoSchedule"}],
            gpu=4,
        )


def _that_wait() -> Iterator[Manifest]:
    yield pod("data/warehouse-0", cpu="40", memory="64Gi", labels={"app": "warehouse"})
    yield pod("data/archive-0", cpu="4", memory="300Gi", labels={"app": "archive"})
    yield pod("ml/notebook-0", cpu="2", memory="8Gi", gpu=1, labels={"app": "notebook"})
    yield pod("shop/pinned-0", cpu="1", memory="1Gi", nodeSelector={"pool": "arm"})
    yield pod("batch/gated-0", cpu="1", memory="1Gi", schedulingGates=[{"name": "quota/review"}])
    yield deployment(
        "data/quorum",
        4,
        cpu="1",
        memory="2Gi",
        **_apart("quorum", key="topology.kubernetes.io/zone"),
    )


def large(nodes: int = 5000, pods: int = 50_000, waiting: int = 400) -> Iterator[Manifest]:
    """As large as the page must bear. Most pods have a node; the rest are placed, or do not fit."""
    sizes = [(8, 16, 32)[i % 3] for i in range(nodes)]
    for i, size in enumerate(sizes):
        yield node(
            f"node-{i:04d}",
            cpu=str(size),
            memory=f"{4 * size}Gi",
            zone=ZONES[i * 7 % 11 % 3],
            pool=f"pool-{i % 7}",
            unschedulable=i % 97 == 0,
            taints=[{"key": "spot", "effect": "NoSchedule"}] if i % 41 == 0 else [],
        )
    berths = [i for i, size in enumerate(sizes) for _ in range(size // 8)]
    for i in range(pods - waiting):
        # Some nodes are much fuller than others, as in a real cluster.
        at = berths[i * 7919 % (len(berths) if i % 3 else len(berths) // 2)]
        yield pod(
            f"team-{i % 20}/svc-{i % 311}-{i}",
            cpu=f"{250 * (1 + i % 6)}m",
            memory="2Gi",
            labels={"app": f"svc-{i % 311}"},
            nodeName=f"node-{at:04d}",
        )
    for i in range(waiting):
        cpu = "80" if i % 4 == 0 else "2"
        yield pod(f"team-{i % 20}/late-{i}", cpu=cpu, memory="1Gi", labels={"app": f"late-{i % 5}"})


def hostile() -> Iterator[Manifest]:
    """Markup wherever an object may carry it and still be read."""
    yield node("plain", cpu="4", memory="8Gi", zone="a", pool="p", images=[SCRIPT])
    yield pod(
        "default/fits",
        cpu="1",
        memory="1Gi",
        annotations={"note": SCRIPT},
        image=SCRIPT,
    )
    yield pod("default/waits", cpu="100", memory="1Gi", annotations={"note": SCRIPT}, image=SCRIPT)
    yield pod("default/other", cpu="1", memory="1Gi", schedulerName=SCRIPT)
    yield pod(
        "default/claims",
        cpu="1",
        memory="1Gi",
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": SCRIPT}}],
    )


def node(
    name: str,
    *,
    cpu: str,
    memory: str,
    zone: str,
    pool: str,
    unschedulable: bool = False,
    taints: list[Manifest] | None = None,
    gpu: int = 0,
    images: list[str] | None = None,
) -> Manifest:
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"}
    if gpu:
        allocatable["nvidia.com/gpu"] = str(gpu)
    labels = {"topology.kubernetes.io/zone": zone, "pool": pool, "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": unschedulable, "taints": taints or []},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "images": [{"names": [name], "sizeBytes": 10**9} for name in images or []],
        },
    }


def pod(
    key: str,
    *,
    cpu: str,
    memory: str,
    gpu: int = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    image: str = "harbour.example/app:1",
    **spec: Any,
) -> Manifest:
    namespace, name = key.split("/", 1)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {**spec, "containers": [_container(cpu, memory, gpu, image)]},
    }


def deployment(key: str, replicas: int, *, cpu: str, memory: str, **spec: Any) -> Manifest:
    namespace, name = key.split("/")
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    **_matching(spec, name),
                    "containers": [_container(cpu, memory, 0, f"harbour.example/{name}:1")],
                },
            },
        },
    }


def _matching(spec: Manifest, name: str) -> Manifest:
    """A spread constraint is over the workload's own pods."""
    constraints = [
        {**each, "labelSelector": {"matchLabels": {"app": name}}}
        for each in spec.get("topologySpreadConstraints", [])
    ]
    return {**spec, **({"topologySpreadConstraints": constraints} if constraints else {})}


def _container(cpu: str, memory: str, gpu: int, image: str) -> Manifest:
    amounts = {"nvidia.com/gpu": str(gpu)} if gpu else {}
    resources = {"requests": {"cpu": cpu, "memory": memory, **amounts}, "limits": amounts}
    return {"name": "main", "image": image, "resources": resources}


def _spread(skew: int) -> Manifest:
    return {
        "maxSkew": skew,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    }


def _apart(name: str, key: str = "kubernetes.io/hostname") -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": key}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }
