"""Nodes from a short text, for users who have no file with nodes: `3xm5.xlarge`, `10x8cpu,32Gi,zones=3`.

    [COUNTx]TYPE[,OPTION…]           a machine type of a cloud provider
    [COUNTx]CPUcpu,MEMORY[,OPTION…]  any other machine; these amounts are allocatable

The nodes have the labels that the kubelet and the cloud provider set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from mooring.objects.documents import Document
from mooring.objects.instance_types import (
    PROVIDERS,
    InstanceType,
    allocatable,
    default_pods,
    find_instance_type,
    similar_instance_types,
)
from mooring.objects.kubelet_labels import ARCH, BETA_ARCH, BETA_OS, OS
from mooring.objects.quantity import parse_quantity
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, HOSTNAME, REGION, ZONE

EXAMPLES = "3xm5.xlarge or 10x8cpu,32Gi,zones=3"

_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_NVIDIA = "nvidia.com/gpu"
_DEFAULT_PODS = 110
_DEFAULT_DISK = "100Gi"
_MOST_NODES, _MOST_ZONES = 100_000, 26

_COUNT = re.compile(r"([0-9]+)\s*[x×*]\s*(.+)", re.ASCII | re.DOTALL)
_CPU = re.compile(r"([0-9.]+m?)\s*(?:v?cpus?|cores?)", re.ASCII | re.IGNORECASE)
_BARE_MEMORY = re.compile(r"[0-9.]+(?:[KMGTP]i|[kMGTP])B?", re.ASCII)
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_OPTIONS = (
    *("cpu", "memory", "pods", "gpus", "disk", "zones", "zone", "region", "arch", "os", "name"),
    *("labels", "label", "taints", "taint"),
)
#: What a kubelet v1.36 with default feature gates declares, sorted as it does.
_KUBELET_FEATURES = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
]


@dataclass(slots=True)
class NodeGroup:
    """Nodes that are alike, except for their name and zone."""

    #: As the user wrote it.
    text: str
    count: int
    #: The beginning of the nodes' names.
    name: str = ""
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    #: The labels that have the zone as their value.
    zone_labels: tuple[str, ...] = (ZONE, BETA_ZONE)

    def node(self, number: int, name: str) -> dict[str, Any]:
        """The manifest of one node; the zones take turns."""
        zone = self.zones[number % len(self.zones)]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {HOSTNAME: name, **dict.fromkeys(self.zone_labels, zone), **self.labels},
            },
            "spec": {"taints": self.taints},
            "status": {
                "capacity": self.capacity,
                "allocatable": self.allocatable,
                "declaredFeatures": _KUBELET_FEATURES,
            },
        }


def node_documents(groups: Sequence[NodeGroup], taken: Iterable[str] = ()) -> Iterator[Document]:
    """The nodes of all groups, with names that are not `taken`."""
    names = set(taken)
    numbers: dict[str, int] = {}
    for group in groups:
        for i in range(group.count):
            name = ""
            while not name or name in names:
                numbers[group.name] = numbers.get(group.name, 0) + 1
                name = f"{group.name}-{numbers[group.name]}"
            names.add(name)
            yield Document(f"--nodes {group.text}", "v1", "Node", group.node(i, name))


def parse_node_group(text: str) -> NodeGroup:
    """Raises ValueError: what is wrong, and what to write."""
    counted = _COUNT.fullmatch(text.strip())
    count, described = (int(counted[1]), counted[2]) if counted else (1, text.strip())
    if not 1 <= count <= _MOST_NODES:
        raise ValueError(f"{count} nodes: write a number from 1 to {_MOST_NODES:,}")
    words = [word.strip() for word in described.split(",") if word.strip()]
    if not words:
        raise ValueError(f"names no nodes; write {EXAMPLES}")
    return _Parser(NodeGroup(text, count)).parsed(words)


class _Parser:
    def __init__(self, group: NodeGroup) -> None:
        self._group = group
        self._kind: InstanceType | None = None
        self._settings: dict[str, str] = {}
        self._extended: dict[str, str] = {}

    def parsed(self, words: Sequence[str]) -> NodeGroup:
        for i, word in enumerate(words):
            self._read(word, first=i == 0)
        self._set_place()
        self._set_resources()
        group = self._group
        shown = words[0] if self._kind else f"{group.capacity['cpu']}cpu-{group.capacity['memory']}"
        group.name = self._settings.get("name") or _NOT_IN_NAMES.sub("-", shown.lower()).strip("-")
        return group

    def _read(self, word: str, *, first: bool) -> None:
        key, equals, value = (part.strip() for part in word.partition("="))
        if equals:
            self._option(key, value)
        elif cpu := _CPU.fullmatch(word):
            self._set("cpu", cpu[1])
        elif _BARE_MEMORY.fullmatch(word):
            self._set("memory", word.removesuffix("B"))
        elif first:
            self._kind = find_instance_type(word)
            if self._kind is None:
                raise ValueError(_unknown_type(word))
        else:
            raise ValueError(
                f"{word!r} is not an option; write amounts as 8cpu or 32Gi, and options as zones=3"
            )

    def _option(self, key: str, value: str) -> None:
        match key:
            case "label" | "labels":
                self._group.labels.update(_pair(each) for each in _parts(value))
            case "taint" | "taints":
                self._group.taints += [_taint(each) for each in _parts(value)]
            case _ if "/" in key:
                self._extended[key] = str(_whole(key, value, least=0))
            case _ if key in _OPTIONS:
                self._set(key, value)
            case _:
                close = get_close_matches(key, _OPTIONS, n=1)
                hint = f"; did you mean {close[0]}?" if close else f"; use {', '.join(_OPTIONS)}"
                raise ValueError(f"there is no option {key!r}{hint}")

    def _set(self, key: str, value: str) -> None:
        if key in self._settings:
            raise ValueError(f"{key} is given twice")
        if not value:
            raise ValueError(f"{key} has no value; write {key}=VALUE")
        self._settings[key] = value

    def _set_place(self) -> None:
        settings, provider = (
            self._settings,
            PROVIDERS.get(self._kind.provider) if self._kind else None,
        )
        if "zone" in settings and "zones" in settings:
            raise ValueError("zone and zones: give one of the two")
        zones = _whole("zones", settings.get("zones", "1"), least=1, most=_MOST_ZONES)
        region = settings.get("region") or (provider.region if provider else "region-1")
        if "zone" in settings:
            self._group.zones = [settings["zone"]]
        elif provider is None:
            self._group.zones = [f"zone-{chr(ord('a') + n)}" for n in range(zones)]
        else:
            named = (provider.zone(n) for n in range(zones))
            self._group.zones = [f"{region}{zone.removeprefix(provider.region)}" for zone in named]
        os, arch = settings.get("os", "linux"), settings.get("arch", "")
        for key, value, known in (
            ("os", os, ("linux", "windows")),
            ("arch", arch, ("amd64", "arm64")),
        ):
            if value and value not in known:
                raise ValueError(f"{key}={value}: write {' or '.join(known)}")
        arch = arch or (self._kind.arch if self._kind else "amd64")
        labels = {OS: os, ARCH: arch, BETA_OS: os, BETA_ARCH: arch}
        labels |= {REGION: region, BETA_REGION: region}
        if self._kind is not None:
            labels |= dict.fromkeys(_INSTANCE_TYPES, self._kind.name)
        if provider is not None:
            self._group.zone_labels += (provider.disk_zone_label,)
        self._group.labels = {**labels, **self._group.labels}

    def _set_resources(self) -> None:
        settings, kind = self._settings, self._kind
        gpus = _gpus(settings["gpus"]) if "gpus" in settings else {}
        if kind is None:
            missing = [key for key in ("cpu", "memory") if key not in settings]
            if missing:
                raise ValueError(f"{' and '.join(missing)} missing; write {EXAMPLES}")
            pods = _whole("pods", settings.get("pods", str(_DEFAULT_PODS)), least=0)
            offered = {
                "cpu": _quantity("cpu", settings["cpu"]),
                "memory": _quantity("memory", settings["memory"]),
                "ephemeral-storage": _quantity("disk", settings.get("disk", _DEFAULT_DISK)),
                "pods": str(pods),
            }
            self._group.capacity = {**offered, **gpus, **self._extended}
            self._group.allocatable = dict(self._group.capacity)
            return
        fixed = [key for key in ("cpu", "memory") if key in settings]
        if fixed:
            raise ValueError(
                f"{kind.name} has its own {' and '.join(fixed)}; leave it out, or leave out the type"
            )
        pods = _whole("pods", settings.get("pods", str(default_pods(kind))), least=0)
        disk = settings.get("disk")
        disk_bytes = PROVIDERS[kind.provider].disk_bytes
        if disk is not None:
            disk_bytes = parse_quantity(_quantity("disk", disk)).value
        left = allocatable(kind, pods=pods, disk_bytes=disk_bytes)
        counted = {"pods": str(pods), **(gpus or _accelerators(kind)), **self._extended}
        self._group.capacity = {
            "cpu": str(kind.cpu_milli // 1000),
            "memory": f"{kind.memory_bytes // 1024}Ki",
            "ephemeral-storage": f"{disk_bytes // 1024}Ki",
            **counted,
        }
        self._group.allocatable = {
            "cpu": f"{left.cpu_milli}m",
            "memory": f"{left.memory_bytes // 1024}Ki",
            "ephemeral-storage": f"{left.disk_bytes // 1024}Ki",
            **counted,
        }


def _unknown_type(name: str) -> str:
    close = similar_instance_types(name)
    hint = f"did you mean {' or '.join(close)}?" if close else "docs/nodes.md lists the known ones."
    return f"no machine type {name!r} is known; {hint} Or describe it: 8cpu,32Gi"


def _accelerators(kind: InstanceType) -> dict[str, str]:
    return {kind.gpu_resource: str(kind.gpus)} if kind.gpus else {}


def _gpus(value: str) -> dict[str, str]:
    """`4`, or `amd.com/gpu:4`."""
    resource, colon, count = value.rpartition(":")
    if colon and "/" not in resource:
        raise ValueError(f"gpus={value}: write gpus=4 or gpus=amd.com/gpu:4")
    return {resource or _NVIDIA: str(_whole("gpus", count, least=0))}


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(";") if part.strip()]


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    if not key.strip():
        raise ValueError(f"label {text!r} has no key; write label=KEY=VALUE")
    return key.strip(), value.strip()


def _taint(text: str) -> dict[str, str]:
    found = _TAINT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a taint; write taint=KEY=VALUE:NoSchedule")
    return {"key": found[1].strip(), "value": found[2] or "", "effect": found[3]}


def _whole(key: str, text: str, *, least: int, most: int = 1_000_000) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not least <= number <= most:
        raise ValueError(f"{key}={text}: write a whole number from {least} to {most:,}")
    return number


def _quantity(key: str, text: str) -> str:
    try:
        if parse_quantity(text).value > 0:
            return text
    except ValueError:
        pass
    raise ValueError(f"{key}={text}: write an amount such as {'8' if key == 'cpu' else '32Gi'}")
