"""Extenders: webhooks that take part in scheduling.

    Filter plugins → filter → (PostFilter: preempt) → Score plugins → prioritize → … → bind, or Bind plugins

Those that may not fail come first, then the ignorable ones. Filter and preempt are asked one after the
other, each about what the last one left; bind is asked of the first that offers it. An extender that
manages certain resources hears only of pods that ask for one of them.

Nothing here opens a socket: a driver hands in the `Transport`. The scheduling cycle waits for an answer,
as it does in the reference; while a binding cycle waits, others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extenders import ordered_extenders
from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import ConfigError, ExtenderError
from mooring.framework.events import DEFAULT_EVENTS, EventWithHint
from mooring.framework.status import SUCCESS, Status, failure
from mooring.objects.pod import Pod
from mooring.objects.quantity import wrap_int64
from mooring.runtime.scoring import PluginScores, ScoreMatrix
from mooring.scheduler.extenders.documents import NodeTexts
from mooring.scheduler.extenders.extender import Extender, Transport

#: The plugin name of extenders: for pods that they reject, and for the events that they register.
EXTENDER = "Extender"
EXTENDER_EVENTS = tuple(EventWithHint(event) for event in DEFAULT_EVENTS)

_LOG = logging.getLogger(__name__)


#: Runs what may take long and touches nothing of the scheduler, beside it if the driver can.
RunBeside = Callable[[Callable[[], None]], Awaitable[None]]


async def run_at_once(work: Callable[[], None]) -> None:
    """For drivers that have no other thread: everything waits."""
    work()


@dataclass(slots=True)
class Survivors:
    """What all extenders together leave of the nodes that the plugins let pass."""

    #: intp[...]: in the order in which the rows were given.
    rows: NDArray[np.intp]
    #: Node name → the last that was said of it.
    statuses: dict[str, Status] = field(default_factory=dict)
    #: Node name → the extender that took it away.
    removed_by: dict[str, str] = field(default_factory=dict)
    #: Whether an extender sent the nodes back as objects. They come without pods and images, and
    #: so they are scored.
    bare: bool = False


class Extenders:
    """All extenders, in the order in which they are asked; the same for every profile."""

    def __init__(self, extenders: Iterable[Extender] = ()) -> None:
        self._all = tuple(extenders)
        self.any = bool(self._all)
        self.filter_any = any(extender.filters for extender in self._all)
        self.prioritize_any = any(extender.prioritizes for extender in self._all)

    @classmethod
    def build(cls, config: KubeSchedulerConfiguration, transport: Transport | None) -> Extenders:
        """Raises ConfigError if there are extenders and no way to reach them."""
        if not config.extenders:
            return cls()
        if transport is None:
            raise ConfigError(["extenders: there is no transport to reach them by"])
        texts = NodeTexts()
        return cls(Extender(one, transport, texts) for one in ordered_extenders(config.extenders))

    def __iter__(self) -> Iterator[Extender]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp]) -> Survivors:
        """Raises ExtenderError if one fails that may not."""
        survivors = Survivors(rows)
        for extender in self._all:
            if not len(survivors.rows):
                break
            if not extender.filters or not extender.interested(pod):
                continue
            nodes = _nodes(snapshot, survivors.rows)
            try:
                filtered = extender.filter(pod, nodes)
            except ExtenderError as error:
                if not extender.ignorable:
                    raise
                _LOG.warning("going on without extender %s: %s", extender.name, error)
                continue
            survivors.statuses.update(filtered.statuses)
            removed = [node.name for node in nodes if node.name not in filtered.kept]
            survivors.removed_by.update(dict.fromkeys(removed, extender.name))
            kept = [node.row for node in nodes if node.name in filtered.kept]
            survivors.rows = np.array(kept, np.intp)
            survivors.bare = survivors.bare or filtered.as_nodes
        return survivors

    def add_scores(self, pod: Pod, snapshot: Snapshot, scores: ScoreMatrix) -> None:
        """Let those that prioritize add to the scores of the plugins; one that fails adds nothing."""
        for extender in self._all:
            if not extender.prioritizes or not extender.interested(pod):
                continue
            nodes = _nodes(snapshot, scores.rows)
            try:
                given = extender.prioritize(pod, nodes)
            except ExtenderError as error:
                _LOG.info("no scores by extender %s: %s", extender.name, error)
                continue
            raw = np.array([wrap_int64(given.get(node.name, 0)) for node in nodes], np.int64)
            scores.add(extender.name, extender.weight, PluginScores(raw, raw))

    async def bind(self, pod: Pod, node_name: str, run_beside: RunBeside) -> Status | None:
        """None if it is left to the Bind plugins."""
        for extender in self._all:
            if not extender.binds or not extender.interested(pod):
                continue
            try:
                await run_beside(partial(extender.bind, pod, node_name))
            except ExtenderError as error:
                if not extender.ignorable:
                    return failure(error)
                _LOG.warning("going on without extender %s: %s", extender.name, error)
                continue
            return SUCCESS
        return None


def bare(snapshot: Snapshot, rows: NDArray[np.intp]) -> list[NodeInfo]:
    """The nodes as an extender sends them back: without what only the scheduler knows of them.

    The reference scores such nodes as if they were empty and had no images.
    """
    return [_bare(node) for node in _nodes(snapshot, rows)]


def _bare(info: NodeInfo) -> NodeInfo:
    node = info.node
    assert node is not None
    without = NodeInfo(info.name, info.row)
    without.set_node(replace(node, status=replace(node.status, images=[])))
    return without


def _nodes(snapshot: Snapshot, rows: NDArray[np.intp]) -> list[NodeInfo]:
    return [snapshot.at(row) for row in rows.tolist()]
