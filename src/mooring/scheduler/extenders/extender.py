"""One extender: its part of the contract, over a transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from mooring import config as configuration
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extenders import tls_of
from mooring.config.types import ExtenderTLSConfig
from mooring.errors import ExtenderError
from mooring.framework.interface import MAX_SCORE, Victims
from mooring.framework.status import Status, unresolvable, unschedulable
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import wrap_int64
from mooring.scheduler.extenders import documents

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


@dataclass(frozen=True, slots=True)
class Filtered:
    """What one extender leaves of the nodes it was asked about."""

    kept: frozenset[str]
    #: Whether it sent nodes back, and not only their names.
    as_nodes: bool
    #: Node name → what it says of the node, which need not be one it was asked about.
    statuses: Mapping[str, Status]


class Extender:
    """A webhook; what it may be asked follows from its configuration."""

    def __init__(
        self, config: configuration.Extender, transport: Transport, texts: documents.NodeTexts
    ) -> None:
        self.name = config.url_prefix
        self.ignorable = config.ignorable
        #: By which its scores are multiplied: its own weight, and the difference of the scales.
        self.weight = wrap_int64(config.weight * (MAX_SCORE // _MAX_EXTENDER_SCORE))
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.binds = bool(config.bind_verb)
        self._config = config
        self._transport = transport
        self._texts = texts
        self._tls = tls_of(config)
        self._managed = frozenset(resource.name for resource in config.managed_resources)

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


def _resources(container: Container) -> Iterator[str]:
    yield from container.resources.requests
    yield from container.resources.limits
