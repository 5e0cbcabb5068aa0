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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring import config as configuration
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extenders import ordered_extenders, tls_of
from mooring.config.types import ExtenderTLSConfig, KubeSchedulerConfiguration
from mooring.errors import ConfigError, ExtenderError
from mooring.framework.events import DEFAULT_EVENTS, EventWithHint
from mooring.framework.interface import MAX_SCORE, Victims
from mooring.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import wrap_int64
from mooring.runtime.scoring import PluginScores, ScoreMatrix
from mooring.scheduler import extender_documents as documents

#: The name under which extenders are blamed for a pod that fits nowhere, and hear of events.
EXTENDER = "Extender"
EXTENDER_EVENTS = tuple(EventWithHint(event) for event in DEFAULT_EVENTS)

#: What an extender gives its best node; it counts as much as the best score of a plugin.
_MAX_EXTENDER_SCORE = 10

#: Users meet these texts in Events and in `kubectl describe`, so they are the reference's, verbatim.
_NOT_OK = "failed {verb} with extender at URL {url}, code {code}"
_UNKNOWN_NODE = (
    'extender "{}" claims a filtered node "{}" which is not found in the input node list'
)
_NO_SUCH_NODE = 'nodeinfo not found for node name "{}"'
_UNKNOWN_VICTIM = (
    "extender: {} claims to preempt pod (UID: &{{{}}}) on node: {},"
    " but the pod is not found on that node"
)
#: The reference shows Go's complaint alone, which does not say whose answer it was.
_NONSENSE = "failed {verb} with extender at URL {url}, cannot read the answer: {problem}"

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Answer(NamedTuple):
    """What came back over HTTP; the body is needed only with code 200."""

    code: int
    body: bytes


class Transport(Protocol):
    """How to reach an extender."""

    def post(self, url: str, body: bytes, *, timeout_s: float, tls: ExtenderTLSConfig) -> Answer:
        """Send JSON and wait for the whole answer, no longer than the timeout.

        Raises ExtenderError if there is none. May be called by several threads at once.
        """
        ...


#: Runs what may take long and touches nothing of the scheduler, beside it if the driver can.
RunBeside = Callable[[Callable[[], None]], Awaitable[None]]


async def run_at_once(work: Callable[[], None]) -> None:
    """For drivers that have no other thread: everything waits."""
    work()


@dataclass(frozen=True, slots=True)
class Filtered:
    """What one extender leaves of the nodes it was asked about."""

    kept: frozenset[str]
    #: Whether it sent nodes back, and not only their names.
    as_nodes: bool
    #: Node name → what it says of the node, which need not be one it was asked about.
    statuses: Mapping[str, Status]


class Extender:
    """One extender: its part of the contract, over the transport."""

    def __init__(
        self, config: configuration.Extender, transport: Transport, texts: documents.NodeTexts
    ) -> None:
        self._config = config
        self._transport = transport
        self._texts = texts
        self._tls = tls_of(config)
        self._managed = frozenset(resource.name for resource in config.managed_resources)

    @property
    def name(self) -> str:
        return self._config.url_prefix

    @property
    def ignorable(self) -> bool:
        return self._config.ignorable

    @property
    def weight(self) -> int:
        """By which its scores are multiplied: its own weight, and the difference of the scales."""
        return wrap_int64(self._config.weight * (MAX_SCORE // _MAX_EXTENDER_SCORE))

    @property
    def filters(self) -> bool:
        return bool(self._config.filter_verb)

    @property
    def prioritizes(self) -> bool:
        return bool(self._config.prioritize_verb)

    @property
    def binds(self) -> bool:
        return bool(self._config.bind_verb)

    def interested(self, pod: Pod) -> bool:
        """Whether the pod names a resource that the extender manages; any pod, if it manages none."""
        return not self._managed or any(
            not self._managed.isdisjoint(_resources(container))
            for container in (*pod.spec.containers, *pod.spec.init_containers)
        )

    def has_say_in_preemption_for(self, pod: Pod) -> bool:
        return bool(self._config.preempt_verb) and self.interested(pod)

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        """Raises ExtenderError, as all of these do."""
        result = self._ask(
            self._config.filter_verb, self._args(pod, nodes), documents.filter_result
        )
        if result.error:
            raise ExtenderError(result.error)
        by_name = self._config.node_cache_capable and result.node_names is not None
        kept = (result.node_names if by_name else result.nodes) or []
        asked = {node.name for node in nodes}
        for name in kept:
            # The reference checks names only, and would bind a pod to a node that it made up.
            if name not in asked:
                raise ExtenderError(_UNKNOWN_NODE.format(self.name, name))
        statuses = {name: unschedulable(why) for name, why in result.failed.items()}
        for name, why in result.failed_and_unresolvable.items():
            statuses[name] = unresolvable(why)
        return Filtered(frozenset(kept), not by_name and result.nodes is not None, statuses)

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Scores from 0 to 10 by name of the node; neither bound is checked."""
        return self._ask(
            self._config.prioritize_verb, self._args(pod, nodes), documents.host_scores
        )

    def bind(self, pod: Pod, node_name: str) -> None:
        args = documents.BindingArgs(pod.name, pod.namespace, pod.uid, node_name)
        error = self._ask(self._config.bind_verb, args, documents.binding_error)
        if error:
            raise ExtenderError(error)

    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot
    ) -> dict[str, Victims]:
        """The victims by node that it wants, which are found again in the snapshot."""
        args = documents.preemption_args(pod, victims, uids=self._config.node_cache_capable)
        wanted = self._ask(self._config.preempt_verb, args, documents.victims_result)
        return {
            name: Victims(self._pods(name, meta.uids, snapshot), meta.violations)
            for name, meta in wanted.items()
        }

    def _pods(self, node_name: str, uids: Iterable[str], snapshot: Snapshot) -> tuple[Pod, ...]:
        node = snapshot.get(node_name)
        if node is None:
            raise ExtenderError(_NO_SUCH_NODE.format(node_name))
        pods = []
        for uid in uids:
            if uid not in node.pods:
                raise ExtenderError(_UNKNOWN_VICTIM.format(self.name, uid, node_name))
            pods.append(node.pods[uid])
        return tuple(pods)

    def _args(self, pod: Pod, nodes: Sequence[NodeInfo]) -> documents.Args:
        if self._config.node_cache_capable:
            return documents.Args(pod, node_names=[node.name for node in nodes])
        return documents.Args(pod, nodes=self._texts.of(nodes))

    def _ask(
        self,
        verb: str,
        args: documents.Args | documents.BindingArgs | documents.PreemptionArgs,
        read: Callable[[bytes], _T],
    ) -> _T:
        url = f"{self.name.rstrip('/')}/{verb}"
        timeout_s = self._config.http_timeout.seconds
        answer = self._transport.post(
            url, documents.encode(args), timeout_s=timeout_s, tls=self._tls
        )
        if answer.code != 200:
            raise ExtenderError(_NOT_OK.format(verb=verb, url=url, code=answer.code))
        try:
            return read(answer.body)
        except (ValueError, RecursionError) as error:
            raise ExtenderError(_NONSENSE.format(verb=verb, url=url, problem=error)) from error


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

    @classmethod
    def build(cls, config: KubeSchedulerConfiguration, transport: Transport | None) -> Extenders:
        """Raises ConfigError if there are extenders and no way to reach them."""
        if not config.extenders:
            return cls()
        if transport is None:
            raise ConfigError(["extenders: there is no transport to reach them by"])
        texts = documents.NodeTexts()
        return cls(Extender(one, transport, texts) for one in ordered_extenders(config.extenders))

    def __iter__(self) -> Iterator[Extender]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def filter_any(self) -> bool:
        return any(extender.filters for extender in self._all)

    @property
    def prioritize_any(self) -> bool:
        return any(extender.prioritizes for extender in self._all)

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


def _resources(container: Container) -> Iterator[str]:
    yield from container.resources.requests
    yield from container.resources.limits
