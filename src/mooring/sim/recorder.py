"""Writes the journal of a simulation.

    scheduler ── writes ──▶ Recorder ──▶ SimApi
                               ▲            │
                               └── watch ───┘

The recorder is between the scheduler and the API, so it sees the end of every attempt. It watches the API for
pods that arrive, finish or are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from mooring.framework.api import ApiWriter, ClaimWriter, Event, PodStatusPatch
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import PersistentVolumeClaim
from mooring.plugins.default_preemption import PreemptionDetail
from mooring.plugins.default_preemption.node_choice import reason_for_node
from mooring.scheduler import journal
from mooring.scheduler.decision import Decision, NoProfileError
from mooring.scheduler.engine import Engine
from mooring.scheduler.journal import Bound, ClaimBound, Fact, FactKind, Journal, Preempted
from mooring.sim.clock import VirtualClock
from mooring.sim.summary import RunSummary

K = TypeVar("K", bound=KubeObject)


@dataclass(slots=True)
class Recorder:
    """An ApiWriter towards the scheduler and a Watcher towards the API."""

    clock: VirtualClock
    api: ApiWriter
    journal: Journal
    #: The scheduler that writes through this recorder.
    scheduler: Engine = field(init=False)
    summary: RunSummary = field(default_factory=RunSummary)
    #: The last attempt if it found no node; PostFilter runs after it.
    _failing: Decision | None = None
    #: UID of a preemptor → why preemption chose that node.
    _why_there: dict[str, str] = field(default_factory=dict)

    def decided(self, decision: Decision) -> None:
        """Called for each attempt after the search for a node."""
        number = self.summary.of(decision.pod.uid).attempts + 1
        self._add(journal.decided(self.clock.elapsed_s, decision, number))
        self._failing = decision if decision.node_name is None else None

    # Writes of the scheduler

    @property
    def claims(self) -> ClaimWriter:
        return self.api.claims

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self.api.bind(pod, node_name)
        self._bound(pod, node_name)

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self.api.patch_pod_status(pod, patch)
        if not patch.nominated_node_name:
            return
        if pod.node_name:
            # The pod is assumed on its node and waits to be bound.
            waiting = self.scheduler.waiting_pods.get(pod.uid)
            if waiting is not None and waiting.decided:
                return  # The last pod of its gang has let it go already.
            held_back_by = waits_for(self.scheduler, pod)
            self._note(FactKind.WAITING, pod, node=pod.node_name, message=held_back_by)
        else:
            self._note(FactKind.NOMINATED, pod, node=patch.nominated_node_name)

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        await self.api.patch_pod_group_status(group, condition)

    async def delete_pod(self, pod: Pod) -> None:
        await self.api.delete_pod(pod)

    async def update_object(self, obj: K) -> K:
        return await self.api.update_object(obj)

    def record_event(self, event: Event) -> None:
        self.api.record_event(event)
        pod = event.regarding
        match event.reason:
            case "Scheduled":
                pass  # `bind` records this
            case "FailedScheduling":
                self._remember_preemption(pod)
                self._note(FactKind.FAILED, pod, message=event.note)
            case "Preempted":
                self._preempted(event)
            case _:
                self._note(FactKind.EVENT, pod, message=f"{event.reason}: {event.note}")

    # Changes in the API

    def added(self, obj: KubeObject) -> None:
        if not isinstance(obj, Pod) or obj.finished:
            return
        what, why = self._admission(obj)
        self._note(what, obj, node=obj.node_name, message=why)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod):
            self._pod_updated(old, new)
        elif isinstance(old, PersistentVolumeClaim) and isinstance(new, PersistentVolumeClaim):
            volume = new.spec.volume_name
            if volume and not old.spec.volume_name:
                at_s, what, to = self.clock.elapsed_s, FactKind.CLAIM_BOUND, f"to volume {volume}"
                self._add(ClaimBound(at_s, what, new.key, new.uid, "", to, claim=new))

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._note(FactKind.DELETED, obj, node=obj.node_name)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.node_name and not old.node_name and new.uid not in self.summary.placements:
            # A plugin bound the pod without `bind`.
            self._bound(new, new.node_name)
        if new.finished and not old.finished:
            self._note(FactKind.FINISHED, new, node=new.node_name)
        elif new.terminating and not old.terminating:
            self._note(FactKind.TERMINATING, new, node=new.node_name)
        if new.node_name != old.node_name and not new.finished:
            self._note(FactKind.PLACED, new, node=new.node_name)

    def _admission(self, pod: Pod) -> tuple[FactKind, str]:
        """What the queue did with a new pod, and why."""
        if pod.node_name:
            return FactKind.PLACED, ""
        if pod.scheduler_name not in self.scheduler.frameworks:
            return FactKind.IGNORED, str(NoProfileError(pod))
        queued = self.scheduler.queue.get(pod.key)
        if queued is not None and queued.gated:
            return FactKind.GATED, gated_by(pod, queued.gating_plugin)
        return FactKind.QUEUED, ""

    # Facts

    def _remember_preemption(self, pod: Pod) -> None:
        decision, self._failing = self._failing, None
        if decision is None or decision.pod.uid != pod.uid or decision.post_filter is None:
            return
        detail = decision.post_filter.detail
        if isinstance(detail, PreemptionDetail) and detail.nominated_node:
            now = datetime.fromtimestamp(self.clock.now(), UTC)
            self._why_there[pod.uid] = reason_for_node(detail, now)

    def _preempted(self, event: Event) -> None:
        victim, preemptor, by, why = event.regarding, event.related, event.note, ""
        if preemptor is not None:
            why = self._why_there.get(preemptor.uid, "")
            name = (
                f"pod group {preemptor.key}" if isinstance(preemptor, PodGroup) else preemptor.key
            )
            by = f"by {name} (priority {preemptor.priority}); {why}".removesuffix("; ")
        at_s, what = self.clock.elapsed_s, FactKind.PREEMPTED
        named = (at_s, what, victim.key, victim.uid, victim.node_name, by)
        self._add(Preempted(*named, victim=victim, preemptor=preemptor, why=why))

    def _bound(self, pod: Pod, node: str) -> None:
        at_s, what = self.clock.elapsed_s, FactKind.BOUND
        self._add(Bound(at_s, what, pod.key, pod.uid, node, assumed=pod))

    def _note(self, what: FactKind, pod: Pod, *, node: str = "", message: str = "") -> None:
        self._add(Fact(self.clock.elapsed_s, what, pod.key, pod.uid, node, message))

    def _add(self, fact: Fact) -> None:
        self.summary.add(fact)
        self.journal.add(fact)


def waits_for(scheduler: Engine, pod: Pod) -> str:
    """What an assumed pod waits for."""
    waiting = scheduler.waiting_pods.get(pod.uid)
    if waiting is None:
        return "for PreBind"
    return f"for Permit of {', '.join(waiting.pending_plugins())}"


def gated_by(pod: Pod, plugin: str) -> str:
    """Why PreEnqueue holds a pod back: its own scheduling gates, or another plugin."""
    gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: {gates}" if gates else f"held back by {plugin}"
