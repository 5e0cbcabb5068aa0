"""How many more pods fit, and how many nodes to add: answered by simulation, not by division.

Every question starts from the *settled* cluster, in which every pod that fits has been placed. All pods run
at the same time: their run times are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from msgspec.structs import replace as changed

from mooring.objects.admission import Admission
from mooring.objects.controllers import made_by_controllers
from mooring.objects.generated_names import generated_uid
from mooring.objects.kinds import DaemonSet
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodStatus
from mooring.objects.pod_class import PodClasses
from mooring.objects.requests import amounts
from mooring.objects.well_known import HOSTNAME
from mooring.scheduler.decision import Decision
from mooring.sim.api import RUN_SECONDS
from mooring.sim.report import Pending, build_report
from mooring.sim.simulation import SimOptions, Simulation

#: If only these plugins refuse a pod, placing more pods cannot help it.
_FINAL = frozenset(
    ("NodeResourcesFit", "NodeAffinity", "TaintToleration", "NodeName", "NodeUnschedulable")
)
#: The search tries at least this many nodes before it gives up.
_FEWEST_TO_TRY = 16

OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Settled:
    """A cluster in which every pod that fits has been placed."""

    #: All objects except the pending pods.
    objects: tuple[KubeObject, ...]
    waiting: tuple[Pod, ...]
    pending: tuple[Pending, ...]
    #: Pods that were preempted while the cluster settled.
    evicted: tuple[str, ...]
    options: SimOptions

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.objects if isinstance(obj, Node)]


def settle(objects: Sequence[KubeObject], options: SimOptions) -> Settled:
    """Raises InputError and ConfigError."""
    with Simulation(options) as simulation:
        simulation.load(_without_run_time(obj) for obj in objects)
        simulation.run()
        report = build_report(simulation)
        stored = list(simulation.api.all(KubeObject))
    waiting = tuple(obj for obj in stored if _waits(obj) and isinstance(obj, Pod))
    return Settled(
        objects=tuple(obj for obj in stored if not _waits(obj)),
        waiting=waiting,
        pending=report.pending,
        evicted=tuple(victim.pod for each in report.preemptions for victim in each.victims),
        options=replace(options, on_decision=None),
    )


# How many more


@dataclass(frozen=True, slots=True)
class Template:
    """A pod to add, and how many copies a round adds."""

    pod: Pod
    count: int = 1


@dataclass(frozen=True, slots=True)
class Room:
    """How many more pods fit."""

    #: The number of complete rounds.
    rounds: int
    #: Template's pod → how many copies fit, in complete rounds.
    pods: dict[str, int]
    #: The pod that did not fit and why; "" if the search reached the limit.
    stopped_at: str
    stopped_by: str
    #: Node → how many of the added pods went there, including those of the last, incomplete round.
    nodes: dict[str, int]

    @property
    def limited(self) -> bool:
        return not self.stopped_at


def how_many_more(
    settled: Settled,
    templates: Sequence[Template],
    *,
    limit: int,
    on_progress: OnProgress | None = None,
) -> Room:
    """Add rounds of pods one by one, until a pod does not fit. The added pods preempt no other pods."""
    last = _LastDecision()
    nodes: dict[str, int] = {}
    order = [template.pod for template in templates for _ in range(template.count)]
    rounds, stopped = 0, None
    with Simulation(replace(settled.options, on_decision=last.note)) as simulation:
        simulation.load(settled.objects)
        simulation.run()
        while rounds < limit and stopped is None:
            for i, pod in enumerate(order):
                copy = simulation.api.create(_copy_of(pod, rounds * len(order) + i))
                simulation.run()
                stored = simulation.api.get(Pod, copy.key)
                if stored is None or not stored.node_name:
                    stopped = (pod, last.message_for(copy) or _last_failure(simulation, copy))
                    break
                nodes[stored.node_name] = nodes.get(stored.node_name, 0) + 1
            else:
                rounds += 1
                if on_progress is not None:
                    on_progress(rounds)
    return Room(
        rounds=rounds,
        pods={each.pod.key: each.count * rounds for each in templates},
        stopped_at=stopped[0].key if stopped else "",
        stopped_by=stopped[1] if stopped else "",
        nodes=nodes,
    )


# How many nodes


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
    most: int | None = None,
    on_progress: OnProgress | None = None,
) -> NodesToAdd:
    """Search by doubling, then by bisection. One node fewer has been tried and is not enough.

    More nodes can be worse for a scheduler, so the search also tries one and two nodes more than the answer.
    """
    adding = _Adding(settled, template, on_progress)
    answer = NodesToAdd(template.name, len(settled.waiting), 0)
    if not settled.waiting:
        return answer
    hopeless = adding.find_hopeless()
    answer = replace(answer, hopeless=tuple((pod.key, why) for pod, why in hopeless.values()))
    if len(hopeless) == len(settled.waiting):
        return replace(answer, count=None)
    adding.expected = [pod for pod in settled.waiting if pod.uid not in hopeless]
    limit = most or max(_FEWEST_TO_TRY, 2 * len(adding.expected))
    count = _smallest(adding.is_enough, start=min(adding.lower_bound(), limit), limit=limit)
    left = () if count is not None else adding.left
    return replace(answer, count=count, probes=dict(adding.probes), left=left)


def _smallest(is_enough: Callable[[int], bool], *, start: int, limit: int) -> int | None:
    """The smallest n ≥ 1 that is enough, if more is never worse; None if `limit` is not enough."""
    too_few, n = 0, start
    while not is_enough(n):
        if n >= limit:
            return None
        too_few, n = n, min(2 * n, limit)
    while n - too_few > 1:
        middle = (n + too_few) // 2
        if is_enough(middle):
            n = middle
        else:
            too_few = middle
    for more in (n + 1, n + 2):
        is_enough(more)
    return n


class _Adding:
    """Tries numbers of nodes."""

    def __init__(self, settled: Settled, template: Node, on_progress: OnProgress | None) -> None:
        self._settled = settled
        self._template = template
        self._on_progress = on_progress
        self._daemon_sets = [obj for obj in settled.objects if isinstance(obj, DaemonSet)]
        #: The pods that must be placed.
        self.expected: Sequence[Pod] = settled.waiting
        self.probes: dict[int, bool] = {}
        #: The pods that were pending with the last number that was not enough.
        self.left: tuple[Pending, ...] = ()

    def find_hopeless(self) -> dict[str, tuple[Pod, str]]:
        """By UID: the pods that do not fit even on an empty added node, and why."""
        last = _LastDecision()
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

    def lower_bound(self) -> int:
        """A lower bound from the requests alone; it is only the start of the search."""
        offered = amounts(self._template.status.allocatable)
        wanted: dict[str, int] = {}
        for pod in self.expected:
            for resource, amount in pod.requests.items():
                wanted[resource] = wanted.get(resource, 0) + amount
        bounds = [
            ceil(amount / offered[resource])
            for resource, amount in wanted.items()
            if offered.get(resource)
        ]
        return max(1, *bounds) if bounds else 1

    def is_enough(self, count: int) -> bool:
        if count not in self.probes:
            self.probes[count] = self._probe(count)
            if self._on_progress is not None:
                self._on_progress(len(self.probes))
        return self.probes[count]

    def _probe(self, count: int) -> bool:
        failed = False
        expected = {pod.uid for pod in self.expected}

        def note(decision: Decision) -> None:
            nonlocal failed
            if (
                decision.node_name is None
                and decision.pod.uid in expected
                and decision.diagnosis.unschedulable_plugins <= _FINAL
            ):
                # This pod stays pending, whatever comes later.
                failed = True
                simulation.loop.stop()

        with Simulation(replace(self._settled.options, on_decision=note)) as simulation:
            simulation.load((*self._settled.objects, *self._added(count), *self.expected))
            simulation.run()
            report = build_report(simulation)
        enough = not failed and not report.pending and not report.preemptions
        if not enough:
            self.left = report.pending
        return enough

    def _added(self, count: int) -> Iterator[KubeObject]:
        """The nodes, and the DaemonSet pods that would run on them."""
        nodes = [_node_like(self._template, i + 1) for i in range(count)]
        yield from nodes
        if self._daemon_sets:
            known = [obj for obj in self._settled.objects if isinstance(obj, Node | Pod)]
            admission = Admission(self._settled.objects, stored=self._settled.objects)
            objects = [*self._daemon_sets, *known, *nodes]
            made = made_by_controllers(objects, admit=admission.defaults.spec)
            for each in made[: len(self._daemon_sets)]:
                yield from filter(None, map(admission.create, each))


# Small steps


@dataclass(slots=True)
class _LastDecision:
    uid: str = ""
    #: Why the pod fits on no node; "" if it fits.
    message: str = ""
    plugins: frozenset[str] = frozenset()

    def note(self, decision: Decision) -> None:
        self.uid, diagnosis = decision.pod.uid, decision.diagnosis
        self.message = diagnosis.fit_error if decision.node_name is None else ""
        self.plugins = frozenset(diagnosis.unschedulable_plugins)

    def message_for(self, pod: Pod) -> str:
        """Why the pod fits on no node; "" if the last decision was about another pod."""
        return self.message if self.uid == pod.uid else ""


def _last_failure(simulation: Simulation, pod: Pod) -> str:
    return simulation.summary.of(pod.uid).last_failure or "the scheduler did not try it"


def _tried_alone(simulation: Simulation, pod: Pod, last: _LastDecision) -> str:
    """Why the pod can never be placed; "" if it can, or if that depends on other pods."""
    tried = simulation.api.create(_copy_of(pod, 0))
    simulation.run()
    why, final = last.message_for(tried), last.plugins <= _FINAL
    simulation.api.delete(tried)
    simulation.run()
    return why if final else ""


def _waits(obj: KubeObject) -> bool:
    return isinstance(obj, Pod) and not obj.node_name and not obj.finished


def _without_run_time(obj: KubeObject) -> KubeObject:
    if not isinstance(obj, Pod) or RUN_SECONDS not in obj.metadata.annotations:
        return obj
    kept = {key: value for key, value in obj.metadata.annotations.items() if key != RUN_SECONDS}
    return changed(obj, metadata=changed(obj.metadata, annotations=kept))


def unbound(pod: Pod, *, name: str = "", **spec: object) -> Pod:
    """The pod as its controller would recreate it: without a node and without status."""
    bare = _without_run_time(pod)
    name = name or pod.name
    metadata = changed(
        bare.metadata,
        name=name,
        uid=generated_uid("", "Pod", pod.namespace, f"{name} again"),
        deletion_timestamp=None,
    )
    return changed(
        pod,
        metadata=metadata,
        spec=changed(pod.spec, node_name="", **spec),
        status=PodStatus(),
    )


def _copy_of(pod: Pod, number: int) -> Pod:
    return unbound(pod, name=f"{pod.name}-more-{number + 1}", preemption_policy="Never")


def _node_like(template: Node, number: int) -> Node:
    name = f"{template.name}-added-{number}"
    metadata = changed(
        template.metadata,
        name=name,
        uid=generated_uid("", "Node", "", name),
        labels={**template.labels, HOSTNAME: name},
    )
    return changed(template, metadata=metadata, spec=changed(template.spec, unschedulable=False))
