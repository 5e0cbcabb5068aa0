"""How many more pods fit: answered by adding them one by one, not by division."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from mooring.cluster.cache import Cluster
from mooring.cluster.device_classes import is_counted
from mooring.cluster.device_usage import ClassUse, DeviceUsage
from mooring.config import default_config
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.explain.devices import asked_classes
from mooring.explain.settled import LastDecision, OnProgress, Settled, copy_of
from mooring.objects.devices import DeviceClass
from mooring.objects.generated_names import generated_uid
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodSpec
from mooring.objects.storage import PersistentVolumeClaim
from mooring.sim.simulation import Simulation

#: The extension points after the choice of a node, and the plugins there that concern only volumes, claims
#: and the binding itself.
_AFTER_CHOICE = (
    *(Point.RESERVE, Point.PERMIT, Point.PRE_BIND, Point.BIND, Point.POST_BIND),
    Point.PRE_ENQUEUE,
)
_IDLE = frozenset(
    ("VolumeBinding", "DynamicResources", "DefaultBinder", "SchedulingGates", "DefaultPreemption")
)


@dataclass(frozen=True, slots=True)
class Template:
    """A pod to add, and how many copies a round adds."""

    pod: Pod
    count: int = 1
    #: The claims that every copy brings along, as a StatefulSet makes them.
    claims: tuple[PersistentVolumeClaim, ...] = ()

    def copied(self, number: int) -> tuple[Pod, list[PersistentVolumeClaim]]:
        """A copy of the pod, with copies of its own claims."""
        pod = copy_of(self.pod, number)
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
    #: The classes of devices that the pod asks for, at the end; none if it asks for no devices.
    devices: tuple[ClassUse, ...]
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
    others: Sequence[KubeObject] = (),
    on_progress: OnProgress | None = None,
) -> Room:
    """Add rounds of pods, until a pod does not fit. The added pods preempt no other pods.

    `others` are objects that the pods need, such as claims that all copies share.
    """
    adding = _AddingPods(settled, templates, others)
    with adding.simulation as simulation:
        simulation.load((*settled.objects, *others))
        simulation.run()
        if adding.add_at_once(limit) and on_progress is not None:
            on_progress(adding.rounds)
        while adding.rounds < limit and not adding.stopped_at:
            adding.add_round()
            if on_progress is not None:
                on_progress(adding.rounds)
    return Room(
        rounds=adding.rounds,
        pods=_times(templates, adding.rounds),
        stopped_at=adding.stopped_at,
        stopped_by=adding.stopped_by,
        devices=adding.devices,
        nodes=adding.nodes,
    )


def classes_asked_for(cluster: Cluster, pod: Pod) -> tuple[ClassUse, ...]:
    """The classes of the pod's templates and claims, and of its extended resources, that have devices."""
    names = set(asked_classes(cluster, pod))
    used = DeviceUsage(cluster).by_class() if names else {}
    return tuple(used.get(name, ClassUse(name)) for name in sorted(names))


def _times(templates: Sequence[Template], rounds: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in templates:
        counts[each.pod.key] = counts.get(each.pod.key, 0) + each.count * rounds
    return counts


class _AddingPods:
    """Adds pods in order, until one does not fit."""

    def __init__(
        self,
        settled: Settled,
        templates: Sequence[Template],
        others: Sequence[KubeObject] = (),
    ) -> None:
        self._order = [template for template in templates for _ in range(template.count)]
        self._last = LastDecision()
        self.simulation = Simulation(replace(settled.options, on_decision=self._last.note))
        self._scheduler = self.simulation.scheduler
        self._has_device_classes = any(
            isinstance(obj, DeviceClass) for obj in (*settled.objects, *others)
        )
        self._decides = self._needs_only_a_decision(settled)
        self._add = self._decide if self._decides else self._simulate
        self._bases = {id(each): copy_of(each.pod, 0) for each in self._order}
        self._added = 0
        self.rounds = 0
        #: The pod that did not fit, and why.
        self.stopped_at = ""
        self.stopped_by = ""
        self.devices: tuple[ClassUse, ...] = ()
        self.nodes: dict[str, int] = {}

    def add_at_once(self, limit: int) -> bool:
        """Add all rounds, if copies of one pod are asked for and their places can be found at once."""
        if not self._decides or len(self._bases) != 1:
            return False
        each = len(self._order)
        (base,) = self._bases.values()
        placed = self._scheduler.place_copies(base, limit * each)
        if placed is None:
            return False
        self.rounds = len(placed.node_names) // each
        self.nodes = dict(Counter(placed.node_names))
        if placed.fit_error:
            self.stopped_at, self.stopped_by = self._order[0].pod.key, placed.fit_error
        return True

    def add_round(self) -> None:
        for template in self._order:
            node_name, why = self._add(template)
            if not node_name:
                self.stopped_at = template.pod.key
                self.stopped_by = why
                self.devices = classes_asked_for(self._scheduler.cluster, template.pod)
                return
            self.nodes[node_name] = self.nodes.get(node_name, 0) + 1
            self._added += 1
        self.rounds += 1

    def _needs_only_a_decision(self, settled: Settled) -> bool:
        """Whether nothing but the choice of a node decides where the pods go.

        Then the queue and the binding cycle, which take most of the time, would change nothing.
        """
        config = settled.options.config or default_config()
        if config.extenders or any(map(config.percentage_for, config.profiles)):
            return False
        if not settled.nodes:
            return False
        for template in self._order:
            pod = template.pod
            framework = self._scheduler.frameworks.get(pod.scheduler_name)
            if framework is None or pod.spec.scheduling_gates:
                return False
            if pod.spec.resource_claims or any(map(self._may_be_devices, pod.requests)):
                return False
            if any(each.persistent_volume_claim or each.ephemeral for each in pod.spec.volumes):
                return False
            if any(not _IDLE.issuperset(framework.names_at(point)) for point in _AFTER_CHOICE):
                return False
        return True

    def _may_be_devices(self, resource: str) -> bool:
        """Whether devices may serve the resource, so that Reserve takes them."""
        return self._has_device_classes and is_counted(resource)

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


def _last_failure(simulation: Simulation, pod: Pod) -> str:
    return simulation.summary.of(pod.uid).last_failure or "the scheduler did not try it"


def own_claims(pod: Pod, others: Iterable[KubeObject]) -> Iterator[PersistentVolumeClaim]:
    """The claims that were made for this pod: by its StatefulSet, or for an ephemeral volume."""
    owner = pod.metadata.controller
    of_stateful_set = owner is not None and owner.kind == "StatefulSet"
    used = {
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ephemeral = {
        f"{pod.name}-{each.name}" for each in pod.spec.volumes if each.ephemeral is not None
    }
    for claim in others:
        if isinstance(claim, PersistentVolumeClaim) and claim.namespace == pod.namespace:
            made_for_pod = of_stateful_set and claim.name.endswith(f"-{pod.name}")
            if claim.name in ephemeral or (claim.name in used and made_for_pod):
                yield claim


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
