"""Where the episodes of an environment come from: a trace, the files of a cluster, or a generated load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from mooring.errors import InputError
from mooring.objects.documents import Document
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import KubeObject, ResourceList
from mooring.objects.node import Node
from mooring.objects.node_groups import node_documents, parse_node_group
from mooring.objects.pod import Pod
from mooring.objects.quantity import parse_quantity
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.objects import PodMaker, make_spec
from mooring.sim.traces.reading import TraceOptions, read_trace
from mooring.sim.traces.trace import Trace, TracePod


@dataclass(frozen=True, slots=True)
class Episode:
    """The pods that an agent places, and the cluster that it finds."""

    #: Nodes, and pods with their times.
    trace: Trace
    #: What else is there from the start: volumes, budgets, pods that have a node.
    objects: tuple[KubeObject, ...] = ()
    pods_end: bool = True


class EpisodeSource(Protocol):
    def episode(self, seed: int) -> Episode:
        """The same episode for the same seed; all episodes have the same nodes. Raises InputError."""
        ...


@dataclass(frozen=True)
class TraceSource:
    """A recorded trace (docs/traces.md).

    With a `load`, pods are drawn from the trace by the seed until they request this multiple of all GPUs;
    they never end. Without it, every episode is the trace as recorded.
    """

    path: str | Path
    nodes: str | Path | None = None
    load: float | None = None
    endless: bool = False
    options: TraceOptions = field(default_factory=TraceOptions)

    def episode(self, seed: int) -> Episode:
        if self.load is None:
            return Episode(self._trace, pods_end=not self.endless)
        drawn = draw_load(self._trace.pods, self._trace.nodes, load=self.load, seed=seed)
        return Episode(replace(self._trace, pods=drawn), pods_end=False)

    @cached_property
    def _trace(self) -> Trace:
        nodes = None if self.nodes is None else Path(self.nodes)
        return read_trace(Path(self.path), nodes_path=nodes, options=self.options)


@dataclass(frozen=True)
class ClusterSource:
    """Files and folders with manifests, as for `mooring simulate`; the seed puts the pods in an order."""

    paths: Sequence[str | Path]
    #: Nodes to add, such as `3xm5.xlarge`.
    nodes: Sequence[str] = ()

    def episode(self, seed: int) -> Episode:
        waiting = [each for each in self._objects if _waits(each)]
        order = np.random.default_rng(seed).permutation(len(waiting))
        pods = [TracePod(waiting[i], float(at_s)) for at_s, i in enumerate(order)]
        rest = tuple(o for o in self._objects if not _waits(o) and not isinstance(o, Node))
        nodes = [each for each in self._objects if isinstance(each, Node)]
        return Episode(Trace("cluster", nodes, pods), rest)

    @cached_property
    def _objects(self) -> list[KubeObject]:
        groups = _documents(self.nodes)
        return read_manifests([str(path) for path in self.paths], documents=groups).objects


def _waits(obj: KubeObject) -> bool:
    return isinstance(obj, Pod) and not obj.node_name and not obj.finished


@dataclass(frozen=True, slots=True)
class PodShape:
    """Pods that request the same; `weight` says how frequent they are."""

    weight: float
    requests: dict[str, str]


DEFAULT_SHAPES = (
    PodShape(5, {"cpu": "1", "memory": "2Gi"}),
    PodShape(3, {"cpu": "2", "memory": "12Gi"}),
    PodShape(2, {"cpu": "6", "memory": "8Gi"}),
    PodShape(1, {"cpu": "12", "memory": "24Gi"}),
)


@dataclass(frozen=True)
class GeneratedLoad:
    """Pods drawn from a few shapes. They arrive at random, and run for a random time or for ever."""

    nodes: Sequence[str] = ("6x16cpu,64Gi", "2x32cpu,64Gi")
    pods: int = 60
    shapes: Sequence[PodShape] = DEFAULT_SHAPES
    #: The mean time from one arrival to the next.
    every_s: float = 10.0
    #: The mean run time; None runs for ever.
    run_s: float | None = None

    def episode(self, seed: int) -> Episode:
        rng = np.random.default_rng(seed)
        weights = np.array([shape.weight for shape in self.shapes], np.float64)
        chosen = rng.choice(len(self.shapes), size=self.pods, p=weights / weights.sum())
        arrivals = np.cumsum(rng.exponential(self.every_s, self.pods)) if self.pods else np.empty(0)
        maker = PodMaker()
        pods = [
            TracePod(
                self._pod(maker, i, int(shape)), float(arrivals[i] - arrivals[0]), self._run(rng)
            )
            for i, shape in enumerate(chosen)
        ]
        return Episode(Trace("generated", self._made_nodes, pods))

    def _pod(self, maker: PodMaker, number: int, shape: int) -> Pod:
        def spec_requests() -> ResourceList:
            return {k: parse_quantity(v) for k, v in self.shapes[shape].requests.items()}

        return maker.make(f"pod-{number}", shape, lambda: make_spec(spec_requests()))

    def _run(self, rng: np.random.Generator) -> float | None:
        return None if self.run_s is None else float(rng.exponential(self.run_s))

    @cached_property
    def _made_nodes(self) -> list[Node]:
        return read_manifests([], documents=_documents(self.nodes)).nodes


def _documents(nodes: Sequence[str]) -> list[Document]:
    groups = []
    for text in nodes:
        try:
            groups.append(parse_node_group(text))
        except ValueError as error:
            raise InputError([f"nodes: {text!r}: {error}"]) from error
    return list(node_documents(groups))
