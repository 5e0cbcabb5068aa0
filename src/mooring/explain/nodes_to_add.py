"""How many nodes must be added to place all pending pods: answered by simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from msgspec.structs import replace as changed

from mooring.config import default_config
from mooring.config.merge import ALL
from mooring.explain.settled import LastDecision, OnProgress, Settled, copy_of
from mooring.objects.daemon_pods import daemon_pods_for
from mooring.objects.devices import ResourceSlice
from mooring.objects.generated_names import generated_uid
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.node_devices import slices_like
from mooring.objects.pod import Pod
from mooring.objects.pod_class import PodClasses
from mooring.objects.requests import PODS, amounts
from mooring.objects.well_known import HOSTNAME
from mooring.scheduler.decision import Decision
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending
from mooring.sim.simulation import Simulation

#: If only these plugins refuse a pod, placing more pods cannot help it.
_FINAL = frozenset(
    ("NodeResourcesFit", "NodeAffinity", "TaintToleration", "NodeName", "NodeUnschedulable")
)
#: With more pods than this, the search does not check whether more nodes would be worse.
_MOST_TO_CHECK = 5_000
#: The search tries at least this many nodes before it gives up.
_FEWEST_TO_TRY = 16


@dataclass(frozen=True, slots=True)
class NodesToAdd:
    """The smallest number of nodes that places all pending pods."""

    template: str
    #: The number of pending pods before any node is added.
    waiting: int
    #: None if no number was enough.
    count: int | None
    #: Pods that do not fit even on an empty node of this kind: pod and why.
    hopeless: tuple[tuple[str, str], ...] = ()
    #: Number of nodes → whether it was enough, in the order of the attempts.
    probes: dict[int, bool] = field(default_factory=dict)
    #: The pods that are still pending with the largest number tried, if that was not enough.
    left: tuple[Pending, ...] = ()

    @property
    def monotone(self) -> bool:
        """Whether more nodes were never worse than fewer, in all attempts."""
        enough = [n for n, ok in self.probes.items() if ok]
        short = [n for n, ok in self.probes.items() if not ok]
        return not enough or not short or max(short) < min(enough)


def nodes_to_add(
    settled: Settled,
    template: Node,
    *,
    slices: Sequence[ResourceSlice] = (),
    most: int | None = None,
    on_progress: OnProgress | None = None,
) -> NodesToAdd:
    """Search upwards from what the requests need at least, then by bisection.

    One node fewer is not enough: it was tried, or the requests exceed what all nodes offer. More nodes can be
    worse for a scheduler, so the search also tries one and two nodes more than the answer, unless there are
    very many pods. `slices` has the devices of a template that is not in the cluster. `on_progress` is told
    how many decisions were taken.
    """
    adding = _AddingNodes(settled, template, slices, on_progress)
    answer = NodesToAdd(template.name, len(settled.waiting), 0)
    if not settled.waiting:
        return answer
    hopeless = adding.find_hopeless()
    answer = replace(answer, hopeless=tuple((pod.key, why) for pod, why in hopeless.values()))
    if len(hopeless) == len(settled.waiting):
        return replace(answer, count=None)
    adding.expected = [pod for pod in settled.waiting if pod.uid not in hopeless]
    limit = most or max(_FEWEST_TO_TRY, 2 * len(adding.expected))
    count = adding.smallest(limit)
    left = () if count is not None else adding.left
    return replace(answer, count=count, probes=dict(adding.probes), left=left)


def _smallest(
    is_enough: Callable[[int], bool],
    *,
    start: int,
    limit: int,
    more: Callable[[], int] = lambda: 1,
    too_few: int = 0,
) -> int | None:
    """The smallest n that is enough, if more is never worse; None if `limit` is not enough.

    `too_few` is known not to be enough. `more` estimates how many are missing after a number that was not;
    in case it estimates too little, the steps also double.
    """
    n, step = start, 1
    while not is_enough(n):
        if n >= limit:
            return None
        too_few, n, step = n, min(n + max(more(), step), limit), 2 * step
    while n - too_few > 1:
        middle = (n + too_few) // 2
        if is_enough(middle):
            n = middle
        else:
            too_few = middle
    return n


class _AddingNodes:
    """Tries numbers of nodes."""

    def __init__(
        self,
        settled: Settled,
        template: Node,
        slices: Sequence[ResourceSlice],
        on_progress: OnProgress | None,
    ) -> None:
        self._settled = settled
        self._template = template
        self._on_progress = on_progress
        self._slices = [
            *slices,
            *(obj for obj in settled.objects if isinstance(obj, ResourceSlice)),
        ]
        self._decisions = 0
        #: The pods that must be placed.
        self.expected: Sequence[Pod] = settled.waiting
        self.probes: dict[int, bool] = {}
        #: The pods that were pending with the last number that was not enough.
        self.left: tuple[Pending, ...] = ()

    def smallest(self, limit: int) -> int | None:
        start = min(self._least(), limit)
        found = _smallest(
            self.is_enough,
            start=start,
            limit=limit,
            more=lambda: self._nodes_for(each.pod for each in self.left),
            too_few=start - 1 if self._fits_by_requests() else 0,
        )
        if found is not None and len(self.expected) <= _MOST_TO_CHECK:
            for n in (found + 1, found + 2):
                self.is_enough(n)
        return found

    def find_hopeless(self) -> dict[str, tuple[Pod, str]]:
        """By UID: the pods that do not fit even on an empty added node, and why."""
        last = LastDecision()
        found: dict[str, tuple[Pod, str]] = {}
        classes = PodClasses()
        verdicts: dict[int, str] = {}
        with Simulation(replace(self._settled.options, on_decision=last.note)) as simulation:
            simulation.load((*self._settled.objects, *self._added(1)))
            simulation.run()
            for pod in self._settled.waiting:
                pod_class = classes.of(pod)
                verdict = verdicts.get(pod_class) if pod_class is not None else None
                if verdict is None:
                    verdict = _tried_alone(simulation, pod, last)
                if pod_class is not None:
                    verdicts[pod_class] = verdict
                if verdict:
                    found[pod.uid] = (pod, verdict)
        return found

    def _fits_by_requests(self) -> bool:
        """Whether every profile refuses pods that request more than a node has left."""
        config = self._settled.options.config or default_config()
        if config.extenders:
            return False
        for profile in config.profiles:
            args = profile.args_of("NodeResourcesFit")
            plugins = profile.plugins
            enabled = {
                each.name for each in (*plugins.multi_point.enabled, *plugins.filter.enabled)
            }
            disabled = {each.name for each in plugins.filter.disabled}
            if "NodeResourcesFit" not in enabled or disabled & {"NodeResourcesFit", ALL}:
                return False
            if args is not None and (args.ignored_resources or args.ignored_resource_groups):
                return False
        return True

    def _least(self) -> int:
        """How many nodes the requests of the pods need, beside what other nodes have left."""
        on_nodes: dict[str, dict[str, int]] = {
            node.name: _offered(node) for node in self._settled.nodes
        }
        for obj in self._settled.objects:
            if isinstance(obj, Pod) and obj.node_name in on_nodes and not obj.finished:
                _add_amounts(on_nodes[obj.node_name], {**obj.requests, PODS: 1}, -1)
        free: dict[str, int] = {}
        for left in on_nodes.values():
            # A node that holds more than it offers takes nothing from the others.
            _add_amounts(free, {name: max(0, amount) for name, amount in left.items()}, 1)
        return self._nodes_for((pod.key for pod in self.expected), free)

    def _nodes_for(self, pods: Iterable[str], free: Mapping[str, int] | None = None) -> int:
        """How many nodes these pods fill at least, by their requests alone."""
        by_key = {pod.key: pod for pod in self.expected}
        wanted: dict[str, int] = {}
        for key in pods:
            if key in by_key:
                _add_amounts(wanted, {**by_key[key].requests, PODS: 1}, 1)
        offered = _offered(self._template)
        bounds = [
            ceil((amount - (free or {}).get(resource, 0)) / offered[resource])
            for resource, amount in wanted.items()
            if offered.get(resource)
        ]
        return max(1, *bounds) if bounds else 1

    def is_enough(self, count: int) -> bool:
        if count not in self.probes:
            self.probes[count] = self._probe(count)
        return self.probes[count]

    def _probe(self, count: int) -> bool:
        def note(_: Decision) -> None:
            self._decisions += 1
            if self._on_progress is not None:
                self._on_progress(self._decisions)

        with Simulation(replace(self._settled.options, on_decision=note)) as simulation:
            simulation.load((*self._settled.objects, *self._added(count), *self.expected))
            simulation.run()
            report = build_report(simulation)
        enough = not report.pending and not report.preemptions
        if not enough:
            self.left = report.pending
        return enough

    def _added(self, count: int) -> Iterator[KubeObject]:
        """The nodes, their devices, and the DaemonSet pods that would run on them."""
        nodes = [_node_like(self._template, i + 1) for i in range(count)]
        yield from nodes
        for node in nodes if self._slices else ():
            yield from slices_like(self._slices, self._template.name, node.name)
        yield from daemon_pods_for(nodes, self._settled.objects)


def _tried_alone(simulation: Simulation, pod: Pod, last: LastDecision) -> str:
    """Why the pod can never be placed; "" if it can, or if that depends on other pods."""
    tried = simulation.api.create(copy_of(pod, 0))
    simulation.run()
    why, final = last.message_for(tried), last.plugins <= _FINAL
    simulation.api.delete(tried)
    simulation.run()
    return why if final else ""


def _offered(node: Node) -> dict[str, int]:
    """What a node offers, the number of pods included."""
    allocatable = node.status.allocatable
    pods = {PODS: allocatable[PODS].value} if PODS in allocatable else {}
    return {**amounts(allocatable), **pods}


def _add_amounts(total: dict[str, int], more: Mapping[str, int], sign: int) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + sign * amount


def _node_like(template: Node, number: int) -> Node:
    name = f"{template.name}-added-{number}"
    metadata = changed(
        template.metadata,
        name=name,
        uid=generated_uid("", "Node", "", name),
        labels={**template.labels, HOSTNAME: name},
    )
    return changed(template, metadata=metadata, spec=changed(template.spec, unschedulable=False))
