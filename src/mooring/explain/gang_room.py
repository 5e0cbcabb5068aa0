"""How many more whole gangs fit: copies of all their pods are added, until one of a copy gets no node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from mooring.cluster.device_usage import ClassUse
from mooring.explain.room import Room, Template, classes_asked_for
from mooring.explain.settled import OnProgress, Settled
from mooring.objects.generated_names import generated_uid
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, SchedulingGroup
from mooring.objects.pod_groups import PodGroup
from mooring.scheduler.decision import Decision
from mooring.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class GangTemplates:
    """The pods of one `--pod`, in their groups, and how many copies a round adds."""

    pods: tuple[Template, ...]
    groups: tuple[PodGroup, ...]
    count: int = 1


def how_many_more_gangs(
    settled: Settled,
    gangs: Sequence[GangTemplates],
    *,
    limit: int,
    others: Sequence[KubeObject] = (),
    on_progress: OnProgress | None = None,
) -> Room:
    """Add rounds of whole workloads, until one does not fit. The added pods preempt no other pods.

    Each copy has groups of its own. `others` are objects that the pods need.
    """
    adding = _AddingGangs(settled, gangs)
    with adding.simulation as simulation:
        simulation.load((*settled.objects, *others))
        simulation.run()
        while adding.rounds < limit and not adding.stopped_at:
            adding.add_round()
            if on_progress is not None:
                on_progress(adding.rounds)
    return Room(
        rounds=adding.rounds,
        pods={each.pod.key: gang.count * adding.rounds for gang in gangs for each in gang.pods},
        stopped_at=adding.stopped_at,
        stopped_by=adding.stopped_by,
        devices=adding.devices,
        nodes=adding.nodes,
    )


class _AddingGangs:
    def __init__(self, settled: Settled, gangs: Sequence[GangTemplates]) -> None:
        self._order = [gang for gang in gangs for _ in range(gang.count)]
        self._messages: dict[str, str] = {}
        self.simulation = Simulation(replace(settled.options, on_decision=self._note))
        self._copies = 0
        self.rounds = 0
        #: The pod that did not fit, and why.
        self.stopped_at = ""
        self.stopped_by = ""
        self.devices: tuple[ClassUse, ...] = ()
        self.nodes: dict[str, int] = {}

    def add_round(self) -> None:
        for gang in self._order:
            if not self._add(gang):
                return
        self.rounds += 1

    def _add(self, gang: GangTemplates) -> bool:
        """Whether all pods of another copy got a node."""
        api = self.simulation.api
        for group in gang.groups:
            api.create(_group_copy(group, self._suffix))
        added = []
        for template in gang.pods:
            pod, claims = template.copied(self._copies)
            for claim in claims:
                api.create(claim)
            added.append((template, api.create(_in_copied_group(pod, self._suffix))))
        self._copies += 1
        self.simulation.run()
        stored = [(template, api.get(Pod, pod.key) or pod) for template, pod in added]
        for _, pod in stored:
            if pod.node_name:
                self.nodes[pod.node_name] = self.nodes.get(pod.node_name, 0) + 1
        left = [(template, pod) for template, pod in stored if not pod.node_name]
        if left:
            template, pod = min(left, key=lambda each: not self._messages.get(each[1].uid))
            self.stopped_at, self.stopped_by = template.pod.key, self._why(pod)
            self.devices = classes_asked_for(self.simulation.scheduler.cluster, pod)
        return not left

    @property
    def _suffix(self) -> str:
        return f"-more-{self._copies + 1}"

    def _why(self, pod: Pod) -> str:
        last = self.simulation.summary.of(pod.uid).last_failure
        return self._messages.get(pod.uid) or last or "the scheduler did not try it"

    def _note(self, decision: Decision) -> None:
        fits = decision.node_name is not None
        self._messages[decision.pod.uid] = "" if fits else decision.diagnosis.fit_error


def gang_templates(
    objects: Sequence[KubeObject], templates: Iterator[Template], count: int
) -> GangTemplates | None:
    """What to copy, if a pod is in a group of these objects; otherwise None."""
    pods = tuple(templates)
    keys = {each.pod.group_key for each in pods if each.pod.group_key}
    groups = tuple(obj for obj in objects if isinstance(obj, PodGroup) and obj.key in keys)
    return GangTemplates(pods, groups, count) if groups else None


def _group_copy(group: PodGroup, suffix: str) -> PodGroup:
    name = f"{group.name}{suffix}"
    uid = generated_uid("scheduling.k8s.io", "PodGroup", group.namespace, name)
    return changed(
        group,
        metadata=changed(group.metadata, name=name, uid=uid),
        status=type(group.status)(),
    )


def _in_copied_group(pod: Pod, suffix: str) -> Pod:
    group = pod.spec.scheduling_group
    if group is None:
        return pod
    copied = SchedulingGroup(pod_group_name=f"{group.pod_group_name}{suffix}")
    return changed(pod, spec=changed(pod.spec, scheduling_group=copied))
