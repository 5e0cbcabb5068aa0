"""The settled cluster: the start of every question about capacity.

In it, every pod that fits has been placed. All pods run at the same time: their run times are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from mooring.objects.generated_names import generated_uid
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodStatus
from mooring.scheduler.decision import Decision
from mooring.sim.api import RUN_SECONDS
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending
from mooring.sim.simulation import SimOptions, Simulation

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


@dataclass(slots=True)
class LastDecision:
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


def copy_of(pod: Pod, number: int) -> Pod:
    return unbound(pod, name=f"{pod.name}-more-{number + 1}", preemption_policy="Never")


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
