"""Random cases from a seed: a few nodes, pods on them, pods without a node, and what happens to all of these.

Each object is made of aspects (its labels, its taints, its requests …). An update draws one aspect again, and
pods that are asked about differ from each other in one or two aspects, so that a difference has one cause.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

from mooring.objects.well_known import HOSTNAME, ZONE
from mooring.plugin_kit.case import Case, Event, Manifest, Pool
from mooring.plugin_kit.draw_others import OtherObjects
from mooring.plugin_kit.vocabulary import Vocabulary

_NODE_NAMES = tuple(f"n{i}" for i in range(6))
_ZONES = ("east", "west", "north")
_KEYS = ("app", "disk", "tier")
_VALUES = ("a", "b", "true", "false", "1", "7", "40", "")
#: Drawn more often, so that what a pod asks for and what a node has often meet.
_COMMON_VALUES = ("a", "true")
_EFFECTS = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
_IMAGES = ("app:1", "db:2")
_GPU = "example.com/gpu"
#: Taints that Kubernetes itself puts on nodes.
_SYSTEM_TAINTS = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")

_EVENTS = 14
_PODS = 5

Aspect = Callable[["Draw", dict[str, Any]], None]


def draw_case(seed: int, vocabulary: Vocabulary, pool: Pool | None = None) -> Case:
    return Draw(seed, vocabulary, pool or Pool()).case()


class Draw:
    """Everything that is random about one case."""

    def __init__(self, seed: int, vocabulary: Vocabulary, pool: Pool) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.pool = pool
        words = vocabulary.keys or _KEYS
        #: A few words of the plugin: each case is about some of them, so that pods and nodes share them.
        self.own_keys = tuple(self.random.sample(words, min(len(words), self.random.randint(1, 3))))
        self.keys = (*_KEYS, *self.own_keys)
        self.others = OtherObjects(self.random, vocabulary)
        #: Labels of pods that are asked about: nodes often get the same.
        self.wanted: list[tuple[str, str]] = []
        self._nodes: dict[str, Manifest] = {}
        self._placed: dict[str, Manifest] = {}
        self._count = 0

    def case(self) -> Case:
        self.others.names = list(_NODE_NAMES)
        nodes = [self._new_node(name) for name in _NODE_NAMES[: self.random.randint(2, 4)]]
        events = [Event(manifest) for manifest in (*self.pool.others, *self.others.first(), *nodes)]
        pods = self._questions()
        events += [event for _ in range(_EVENTS) if (event := self._event()) is not None]
        return Case(tuple(events), pods, self.seed)

    # Small choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def key(self) -> str:
        """Mostly a word of the plugin."""
        return str(self.one(self.own_keys if self.chance(0.6) else self.keys))

    def value(self) -> str:
        # A word with a slash is no value of a label.
        word = self.key() if self.chance(0.15) else "/"
        if "/" not in word:
            return word
        return str(self.one(_COMMON_VALUES if self.chance(0.6) else _VALUES))

    def pairs(self, most: int) -> dict[str, str]:
        return {self.key(): self.value() for _ in range(self.random.randint(0, most))}

    # What happens

    def _event(self) -> Event | None:
        kind = self.one(("node", "node", "pod", "pod", "pod goes", "node goes", "label", "other"))
        match kind:
            case "node":
                return self._node_event()
            case "pod":
                return Event(self._placed_pod())
            case "pod goes" if self._placed:
                return Event(self._placed.pop(self.one(sorted(self._placed))), gone=True)
            case "node goes" if len(self._nodes) > 2:
                return Event(self._nodes.pop(self.one(sorted(self._nodes))), gone=True)
            case "label" if self._placed:
                return self._relabelled()
            case "other":
                return self.others.event()
        return None

    def _node_event(self) -> Event:
        name = self.one(_NODE_NAMES)
        known = self._nodes.get(name)
        if known is None:
            return Event(self._new_node(name))
        changed = self._changed(known, (node_labels,) if self.chance(0.4) else NODE_ASPECTS)
        self._nodes[name] = changed
        return Event(changed)

    def _relabelled(self) -> Event:
        name = self.one(sorted(self._placed))
        changed = self._changed(self._placed[name], (pod_labels, pod_annotations))
        self._placed[name] = changed
        return Event(changed)

    # Objects

    def _new_node(self, name: str) -> Manifest:
        if self.pool.nodes and self.chance(0.5):
            node = copy.deepcopy(dict(self.one(self.pool.nodes)))
            node["metadata"] = {**node.get("metadata", {}), "name": name, "uid": name}
            node["metadata"]["labels"] = {**node["metadata"].get("labels", {}), HOSTNAME: name}
        else:
            node = _empty_node(name)
            for aspect in NODE_ASPECTS:
                aspect(self, node)
        self._nodes[name] = node
        return node

    def _placed_pod(self) -> Manifest:
        pod = self._new_pod("placed")
        pod["spec"]["nodeName"] = self.one(sorted(self._nodes) or _NODE_NAMES)
        self._placed[pod["metadata"]["name"]] = pod
        return pod

    def _questions(self) -> tuple[Manifest, ...]:
        """The first is any pod, the others differ from an earlier one in one or two aspects."""
        first = self._new_pod("asked")
        asked = [first]
        # Equal but for its name.
        asked.append(self._renamed(first))
        while len(asked) < _PODS:
            other = self._renamed(self.one(asked))
            for _ in range(self.random.randint(1, 2)):
                self.one((pod_labels,) if self.chance(0.3) else POD_ASPECTS)(self, other)
            asked.append(other)
        self.wanted = [pair for pod in asked for pair in pod["metadata"].get("labels", {}).items()]
        return tuple(asked)

    def _new_pod(self, prefix: str) -> dict[str, Any]:
        self._count += 1
        name = f"{prefix}-{self._count}"
        if self.pool.pods and self.chance(0.5):
            pod = copy.deepcopy(dict(self.one(self.pool.pods)))
            pod["metadata"] = {"namespace": "default", **pod.get("metadata", {})}
            pod["metadata"] |= {"name": name, "uid": name}
            pod["spec"].pop("nodeName", None)
            return pod
        pod = _empty_pod(name)
        for aspect in POD_ASPECTS:
            if aspect is pod_labels or self.chance(0.5):
                aspect(self, pod)
        return pod

    def _renamed(self, pod: Manifest) -> dict[str, Any]:
        self._count += 1
        other = copy.deepcopy(dict(pod))
        other["metadata"] |= {"name": f"asked-{self._count}", "uid": f"asked-{self._count}"}
        return other

    def _changed(self, manifest: Manifest, aspects: Sequence[Aspect]) -> Manifest:
        changed = copy.deepcopy(dict(manifest))
        self.one(aspects)(self, changed)
        return changed


def _empty_node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def _empty_pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }


# Aspects of a node


def node_labels(draw: Draw, node: dict[str, Any]) -> None:
    labels = {HOSTNAME: node["metadata"]["name"], **draw.pairs(2)}
    if draw.chance(0.8):
        labels[ZONE] = draw.one(_ZONES)
    if draw.wanted and draw.chance(0.4):
        key, value = draw.one(draw.wanted)
        labels[key] = value
    node["metadata"]["labels"] = labels


def node_annotations(draw: Draw, node: dict[str, Any]) -> None:
    node["metadata"]["annotations"] = draw.pairs(2)


def node_taints(draw: Draw, node: dict[str, Any]) -> None:
    node["spec"]["taints"] = [
        {"key": draw.key(), "value": draw.one(("a", "b")), "effect": draw.one(_EFFECTS)}
        for _ in range(draw.one((0, 0, 1, 2)))
    ]


def node_cordon(draw: Draw, node: dict[str, Any]) -> None:
    node["spec"]["unschedulable"] = draw.chance(0.2)


def node_allocatable(draw: Draw, node: dict[str, Any]) -> None:
    allocatable = {
        "cpu": str(draw.random.randint(1, 4)),
        "memory": f"{draw.random.randint(1, 8)}Gi",
        "pods": str(draw.one((2, 4, 110))),
    }
    if draw.chance(0.4):
        allocatable[_GPU] = str(draw.random.randint(0, 2))
    for key in draw.own_keys:
        if "/" in key and draw.chance(0.2):
            allocatable[key] = str(draw.random.randint(0, 3))
    node["status"]["allocatable"] = allocatable


def node_images(draw: Draw, node: dict[str, Any]) -> None:
    node["status"]["images"] = [
        {"names": [image], "sizeBytes": draw.one((10, 300, 900)) * 1024 * 1024}
        for image in _IMAGES
        if draw.chance(0.4)
    ]


def node_conditions(draw: Draw, node: dict[str, Any]) -> None:
    node["status"]["conditions"] = [
        {"type": "Ready", "status": draw.one(("True", "True", "False"))}
    ]


# Aspects of a pod


def pod_labels(draw: Draw, pod: dict[str, Any]) -> None:
    """Mostly with a word of the plugin, as many rules compare a label of the pod with the node's."""
    labels = draw.pairs(2)
    if draw.chance(0.6):
        labels[draw.one(draw.own_keys)] = draw.value()
    pod["metadata"]["labels"] = labels


def pod_annotations(draw: Draw, pod: dict[str, Any]) -> None:
    pod["metadata"]["annotations"] = draw.pairs(2)


def pod_namespace(draw: Draw, pod: dict[str, Any]) -> None:
    pod["metadata"]["namespace"] = draw.one(("default", "other"))


def pod_requests(draw: Draw, pod: dict[str, Any]) -> None:
    requests = {}
    if draw.chance(0.8):
        requests["cpu"] = draw.one(("100m", "500m", "1", "2"))
    if draw.chance(0.6):
        requests["memory"] = draw.one(("100Mi", "1Gi", "3Gi"))
    if draw.chance(0.2):
        requests[_GPU] = "1"
    for key in draw.own_keys:
        if "/" in key and draw.chance(0.1):
            requests[key] = "1"
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}


def pod_image(draw: Draw, pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["image"] = draw.one(_IMAGES)


def pod_ports(draw: Draw, pod: dict[str, Any]) -> None:
    ports = [{"containerPort": port, "hostPort": port} for port in (80, 81) if draw.chance(0.3)]
    pod["spec"]["containers"][0]["ports"] = ports


def pod_tolerations(draw: Draw, pod: dict[str, Any]) -> None:
    tolerations = []
    for _ in range(draw.one((0, 1, 2))):
        key = draw.one(_SYSTEM_TAINTS) if draw.chance(0.2) else draw.key()
        exists = {"key": key, "operator": "Exists"}
        equal = {"key": key, "operator": "Equal", "value": draw.one(("a", "b"))}
        tolerations.append(draw.one((exists, equal, {"operator": "Exists"})))
    pod["spec"]["tolerations"] = tolerations


def pod_node_selector(draw: Draw, pod: dict[str, Any]) -> None:
    choices: tuple[dict[str, str], ...] = (
        {},
        {},
        {ZONE: draw.one(_ZONES)},
        {draw.key(): draw.value()},
    )
    pod["spec"]["nodeSelector"] = draw.one(choices)


def pod_priority(draw: Draw, pod: dict[str, Any]) -> None:
    pod["spec"]["priority"] = draw.one((0, 0, 10, 1000))


def pod_affinity(draw: Draw, pod: dict[str, Any]) -> None:
    key = draw.key()
    selects = {"matchExpressions": [{"key": key, "operator": "In", "values": [draw.value(), "a"]}]}
    term = {"labelSelector": selects, "topologyKey": draw.one((ZONE, HOSTNAME))}
    weighted = {"weight": draw.one((1, 50)), "podAffinityTerm": term}
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    choices: tuple[dict[str, Any], ...] = (
        {},
        {"nodeAffinity": {required: {"nodeSelectorTerms": [selects]}}},
        {"nodeAffinity": {preferred: [{"weight": 10, "preference": selects}]}},
        {"podAffinity": {required: [term]}},
        {"podAffinity": {preferred: [weighted]}},
        {"podAntiAffinity": {required: [term]}},
        {"podAntiAffinity": {preferred: [weighted]}},
    )
    pod["spec"]["affinity"] = draw.one(choices)


def pod_spread(draw: Draw, pod: dict[str, Any]) -> None:
    key = draw.key()
    constraint = {
        "maxSkew": 1,
        "topologyKey": draw.one((ZONE, HOSTNAME)),
        "whenUnsatisfiable": draw.one(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]},
    }
    pod["spec"]["topologySpreadConstraints"] = [constraint] if draw.chance(0.7) else []


def pod_others(draw: Draw, pod: dict[str, Any]) -> None:
    draw.others.use_in(pod)


NODE_ASPECTS: tuple[Aspect, ...] = (
    node_labels,
    node_annotations,
    node_taints,
    node_cordon,
    node_allocatable,
    node_images,
    node_conditions,
)
POD_ASPECTS: tuple[Aspect, ...] = (
    pod_labels,
    pod_annotations,
    pod_namespace,
    pod_requests,
    pod_image,
    pod_ports,
    pod_tolerations,
    pod_node_selector,
    pod_priority,
    pod_affinity,
    pod_spread,
    pod_others,
)
