"""How many more pods fit, and how many nodes to add: answered by simulation, not by division.

Every question starts from the *settled* cluster, in which every pod that fits has been placed. All pods run
at the same time: their run times are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from msgspec.structs import replace as changed

from mooring.config import default_config
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.config.merge import ALL
from mooring.objects.controllers import made_by_controllers
from mooring.objects.defaults import Defaults
from mooring.objects.generated_names import generated_uid
from mooring.objects.kinds import DaemonSet
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodSpec, PodStatus
from mooring.objects.pod_class import PodClasses
from mooring.objects.requests import PODS, amounts
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.well_known import HOSTNAME
from mooring.scheduler.decision import Decision
from mooring.sim.api import RUN_SECONDS
from mooring.sim.report import Pending, build_report
from mooring.sim.simulation import SimOptions, Simulation

#: If only these plugins refuse a pod, placing more pods cannot help it.
_FINAL = frozenset(
    ("NodeResourcesFit", "NodeAffinity", "TaintToleration", "NodeName", "NodeUnschedulable")
)
#: The extension points after the choice of a node, and the plugins there that concern only volumes, claims
#: and the binding itself.
_AFTER_CHOICE = (
    *(Point.RESERVE, Point.PERMIT, Point.PRE_BIND, Point.BIND, Point.POST_BIND),
    Point.PRE_ENQUEUE,
)
_IDLE = frozenset(
    ("VolumeBinding", "DynamicResources", "DefaultBinder", "SchedulingGates", "DefaultPreemption")
)
#: With more pods than this, the search does not check whether more nodes would be worse.
_MOST_TO_CHECK = 5_000
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
    #: Pods that ask for a scheduler that the configuration does not have; they are not part of the answers.
    other_schedulers: tuple[Pending, ...]
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
    others = {each.pod for each in report.other_schedulers}
    return Settled(
        objects=tuple(obj for obj in stored if not _waits(obj)),
        waiting=tuple(
            obj for obj in stored if isinstance(obj, Pod) and _waits(obj) and obj.key not in others
        ),
        pending=report.pending,
        other_schedulers=report.other_schedulers,
        evicted=tuple(victim.pod for each in report.preemptions for victim in each.victims),
        options=replace(options, on_decision=None),
    )


# How many more


@dataclass(frozen=True, slots=True)
class Template:
    """A pod to add, and how many copies a round adds."""

    pod: Pod
    count: int = 1
    #: The claims that every copy brings along, as a StatefulSet makes them.
    claims: tuple[PersistentVolumeClaim, ...] = ()

    def copied(self, number: int) -> tuple[Pod, list[PersistentVolumeClaim]]:
        """A copy of the pod, with copies of its own claims."""
        pod = _copy_of(self.pod, number)
        names = {claim.name: self._claim_name(claim.name, pod.name) for claim in self.claims}
        copies = [_claim_like(claim, names[claim.name], pod) for claim in self.claims]
        return changed(pod, spec=_with_claims(pod.spec, names)) if names else pod, copies

    def _claim_name(self, name: str, copy: str) -> str:
        """The claim of an ephemeral volume begins with the name of its pod, others end with it."""
        own = self.pod.name
        if name.startswith(f"{own}-"):
            return f"{copy}{name.removeprefix(own)}"
        return f"{name.removesuffix(own)}{copy}" if name.endswith(f"-{own}") else f"{name}-{copy}"


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
    """Add rounds of pods, until a pod does not fit. The added pods preempt no other pods."""
    adding = _AddingPods(settled, templates)
    with adding.simulation as simulation:
        simulation.load(settled.objects)
        simulation.run()
        while adding.rounds < limit and not adding.stopped_at:
            adding.add_round()
            if on_progress is not None:
                on_progress(adding.rounds)
    return Room(
        rounds=adding.rounds,
        pods=_times(templates, adding.rounds),
        stopped_at=adding.stopped_at,
        stopped_by=adding.stopped_by,
        nodes=adding.nodes,
    )


def _times(templates: Sequence[Template], rounds: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in templates:
        counts[each.pod.key] = counts.get(each.pod.key, 0) + each.count * rounds
    return counts


class _AddingPods:
    """Adds pods in order, until one does not fit."""

    def __init__(self, settled: Settled, templates: Sequence[Template]) -> None:
        self._order = [template for template in templates for _ in range(template.count)]
        self._last = _LastDecision()
        self.simulation = Simulation(replace(settled.options, on_decision=self._last.note))
        self._scheduler = self.simulation.scheduler
        self._add = self._decide if self._needs_only_a_decision(settled.options) else self._simulate
        self._bases = {id(each): _copy_of(each.pod, 0) for each in self._order}
        self._added = 0
        self.rounds = 0
        #: The pod that did not fit, and why.
        self.stopped_at = ""
        self.stopped_by = ""
        self.nodes: dict[str, int] = {}

    def add_round(self) -> None:
        for template in self._order:
            node_name, why = self._add(template)
            if not node_name:
                self.stopped_at = template.pod.key
                self.stopped_by = why
                return
            self.nodes[node_name] = self.nodes.get(node_name, 0) + 1
            self._added += 1
        self.rounds += 1

    def _needs_only_a_decision(self, options: SimOptions) -> bool:
        """Whether nothing but the choice of a node decides where the pods go.

        Then the queue and the binding cycle, which take most of the time, would change nothing.
        """
        config = options.config or default_config()
        if config.extenders or any(map(config.percentage_for, config.profiles)):
            return False
        for template in self._order:
            pod = template.pod
            framework = self._scheduler.frameworks.get(pod.scheduler_name)
            if framework is None or pod.spec.scheduling_gates or pod.spec.resource_claims:
                return False
            if any(each.persistent_volume_claim or each.ephemeral for each in pod.spec.volumes):
                return False
            if any(not _IDLE.issuperset(framework.names_at(point)) for point in _AFTER_CHOICE):
                return False
        return True

    def _decide(self, template: Template) -> tuple[str, str]:
        """The node of another copy, counted on it; or why there is none."""
        base, number = self._bases[id(template)], self._added + 1
        name = f"{template.pod.name}-more-{number}"
        copy = changed(base, metadata=changed(base.metadata, name=name, uid=f"{base.uid} {number}"))
        copy.take_derived_from(base)
        decision = self._scheduler.decide(copy)
        if decision.node_name is None:
            return "", decision.diagnosis.fit_error
        self._scheduler.cluster.add_pod(copy.placed_on(decision.node_name))
        return decision.node_name, ""

    def _simulate(self, template: Template) -> tuple[str, str]:
        """The same with everything that happens to a pod in a cluster."""
        pod, claims = template.copied(self._added)
        for claim in claims:
            self.simulation.api.create(claim)
        copy = self.simulation.api.create(pod)
        self.simulation.run()
        stored = self.simulation.api.get(Pod, copy.key)
        if stored is None or not stored.node_name:
            return "", self._last.message_for(copy) or _last_failure(self.simulation, copy)
        return stored.node_name, ""


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
    """Search upwards from what the requests need at least, then by bisection.

    One node fewer is not enough: it was tried, or the requests exceed what all nodes offer. More nodes can be
    worse for a scheduler, so the search also tries one and two nodes more than the answer, unless there are
    very many pods. `on_progress` is told how many decisions were taken.
    """
    adding = _AddingNodes(settled, template, on_progress)
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


class _AddingNodes:
    """Tries numbers of nodes."""

    def __init__(self, settled: Settled, template: Node, on_progress: OnProgress | None) -> None:
        self._settled = settled
        self._template = template
        self._on_progress = on_progress
        self._daemon_sets = [obj for obj in settled.objects if isinstance(obj, DaemonSet)]
        self._decisions = 0
        #: The pods that must be placed.
        self.expected: Sequence[Pod] = settled.waiting
        self.probes: dict[int, bool] = {}
        #: The pods that were pending with the last number that was not enough.
        self.left: tuple[Pending, ...] = ()

    def smallest(self, limit: int) -> int | None:
        """The smallest n ≥ 1 that is enough, if more is never worse; None if `limit` is not enough."""
        least = min(self._least(), limit)
        too_few, n = (least - 1 if self._fits_by_requests() else 0), least
        failures = 0
        while not self.is_enough(n):
            if n >= limit:
                return None
            # The pods that are left say how many more are needed; if that is wrong, hurry.
            more = max(self._nodes_for(each.pod for each in self.left), 2**failures)
            too_few, n, failures = n, min(n + more, limit), failures + 1
        while n - too_few > 1:
            middle = (n + too_few) // 2
            if self.is_enough(middle):
                n = middle
            else:
                too_few = middle
        if len(self.expected) <= _MOST_TO_CHECK:
            for more in (n + 1, n + 2):
                self.is_enough(more)
        return n

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
        free: dict[str, int] = {}
        for obj in self._settled.objects:
            if isinstance(obj, Node):
                _add_amounts(free, _offered(obj), 1)
            elif isinstance(obj, Pod) and obj.node_name and not obj.finished:
                _add_amounts(free, {**obj.requests, PODS: 1}, -1)
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
            ceil((amount - max(0, (free or {}).get(resource, 0))) / offered[resource])
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
        """The nodes, and the DaemonSet pods that would run on them."""
        nodes = [_node_like(self._template, i + 1) for i in range(count)]
        yield from nodes
        if self._daemon_sets:
            known = [obj for obj in self._settled.objects if isinstance(obj, Node | Pod)]
            defaults = Defaults(self._settled.objects)
            objects = [*self._daemon_sets, *known, *nodes]
            made = made_by_controllers(objects, admit=defaults.spec)
            for each in made[: len(self._daemon_sets)]:
                yield from (defaults.of(obj) for obj in each)


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


def _offered(node: Node) -> dict[str, int]:
    return dict(amounts(node.status.allocatable))


def _add_amounts(total: dict[str, int], more: Mapping[str, int], sign: int) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + sign * amount


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


def _claim_like(claim: PersistentVolumeClaim, name: str, pod: Pod) -> PersistentVolumeClaim:
    metadata = changed(
        claim.metadata,
        name=name,
        uid=generated_uid("", "PersistentVolumeClaim", claim.namespace, name),
        owner_references=[
            changed(owner, name=pod.name, uid=pod.uid) if owner.kind == "Pod" else owner
            for owner in claim.metadata.owner_references
        ],
    )
    spec = changed(claim.spec, volume_name="")
    return changed(claim, metadata=metadata, spec=spec, status=type(claim.status)())


def _with_claims(spec: PodSpec, names: Mapping[str, str]) -> PodSpec:
    return changed(
        spec,
        volumes=[
            volume
            if volume.persistent_volume_claim is None
            or volume.persistent_volume_claim.claim_name not in names
            else changed(
                volume,
                persistent_volume_claim=changed(
                    volume.persistent_volume_claim,
                    claim_name=names[volume.persistent_volume_claim.claim_name],
                ),
            )
            for volume in spec.volumes
        ],
    )


def _node_like(template: Node, number: int) -> Node:
    name = f"{template.name}-added-{number}"
    metadata = changed(
        template.metadata,
        name=name,
        uid=generated_uid("", "Node", "", name),
        labels={**template.labels, HOSTNAME: name},
    )
    return changed(template, metadata=metadata, spec=changed(template.spec, unschedulable=False))
