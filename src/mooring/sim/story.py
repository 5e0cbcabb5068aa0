"""What happens to the pods of a simulation, in the order it happens in virtual time.

    scheduler ── writes ──▶ Story ──▶ SimApi
                              ▲          │
                              └─ watch ──┘

The story stands between the scheduler and the API, so it hears of an attempt at the moment of its end, and
watches the API for what the scheduler has no part in: pods that arrive, finish and go away.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from mooring.framework.api import Event, PodStatusPatch
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim
from mooring.plugins.default_preemption import PreemptionDetail
from mooring.plugins.default_preemption.node_choice import why_that_node
from mooring.scheduler.scheduling_cycle import Decision
from mooring.sim.clock import VirtualClock

if TYPE_CHECKING:
    from mooring.framework.api import ApiWriter
    from mooring.scheduler.scheduler import Scheduler

K = TypeVar("K", bound=KubeObject)


class What(StrEnum):
    """The kinds of things that happen to a pod."""

    QUEUED = "queued"
    GATED = "gated"
    IGNORED = "ignored"
    FAILED = "failed"
    NOMINATED = "nominated"
    WAITING = "waiting"
    BOUND = "bound"
    PREEMPTED = "preempted"
    TERMINATING = "terminating"
    FINISHED = "finished"
    DELETED = "deleted"
    CLAIM_BOUND = "claim-bound"
    #: Anything else that a plugin tells users by an Event.
    EVENT = "event"


_NO_PROGRESS = frozenset((What.FAILED, What.NOMINATED, What.WAITING, What.EVENT))


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of a timeline."""

    #: Seconds of virtual time since the simulation began.
    at_s: float
    what: What
    #: `namespace/name` of the pod; of the claim, if a claim was bound.
    pod: str
    node: str = ""
    message: str = ""


@dataclass(slots=True)
class Stay:
    """A pod's time on a node that the scheduler bound it to."""

    pod: Pod
    node: str
    at_s: float
    #: How it ended; None while the pod is there.
    ended: What | None = None
    ended_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that had to go for a more important one."""

    at_s: float
    victim: Pod
    #: None if whoever told of it did not say.
    preemptor: Pod | None
    node: str
    #: Why that node and no other; "" if nobody said.
    why: str = ""


@dataclass(frozen=True, slots=True)
class BoundClaim:
    at_s: float
    claim: PersistentVolumeClaim


@dataclass(slots=True)
class Story:
    """Everything that happened; an ApiWriter towards the scheduler and a Watcher towards the API."""

    clock: VirtualClock
    api: ApiWriter
    #: Whether to keep every single happening: a long run has a great many.
    keeps_timeline: bool = False
    timeline: list[Happening] = field(default_factory=list)
    #: By UID, in the order of binding; a pod is bound once.
    stays: dict[str, Stay] = field(default_factory=dict)
    #: By UID: when the pod came to be without a node.
    arrived_s: dict[str, float] = field(default_factory=dict)
    #: By UID: how often a node was looked for.
    attempts: Counter[str] = field(default_factory=Counter)
    #: By UID: what the last failed attempt came to.
    last_failure: dict[str, str] = field(default_factory=dict)
    #: Pods that ran to their end: when, by UID.
    finished_s: dict[str, float] = field(default_factory=dict)
    #: When something last happened, and when it last was more than a failure.
    last_s: float = 0.0
    last_progress_s: float = 0.0
    #: How many pods came with their node.
    already_placed: int = 0
    evictions: list[Eviction] = field(default_factory=list)
    bound_claims: list[BoundClaim] = field(default_factory=list)
    _scheduler: Scheduler | None = None
    #: The last attempt, if it found no node: PostFilter has yet to say what it does about it.
    _failing: Decision | None = None
    #: By UID of a pod for which others were chosen to go: why on that node.
    _why_there: dict[str, str] = field(default_factory=dict)

    def follow(self, scheduler: Scheduler) -> None:
        """The scheduler whose writes pass through here; asked who holds a pod back."""
        self._scheduler = scheduler

    def decided(self, decision: Decision) -> None:
        """Told of each attempt once its node is found, or found missing."""
        self.attempts[decision.pod.uid] += 1
        self._failing = decision if decision.node_name is None else None

    # What the scheduler writes

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self.api.bind(pod, node_name)
        self._bound(pod, node_name)

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self.api.patch_pod_status(pod, patch)
        if not patch.nominated_node_name:
            return
        if pod.node_name:
            # The pod is assumed there, and something keeps it from being bound at once.
            self._note(What.WAITING, pod, node=pod.node_name, message=self.held_back_by(pod))
        else:
            self._note(What.NOMINATED, pod, node=patch.nominated_node_name)

    async def delete_pod(self, pod: Pod) -> None:
        await self.api.delete_pod(pod)

    async def update_object(self, obj: K) -> K:
        return await self.api.update_object(obj)

    def record_event(self, event: Event) -> None:
        self.api.record_event(event)
        pod = event.regarding
        match event.reason:
            case "Scheduled":
                pass  # told by the binding itself
            case "FailedScheduling":
                self.last_failure[pod.uid] = event.note
                self._remember_preemption(pod)
                self._note(What.FAILED, pod, message=event.note)
            case "Preempted":
                self._evicted(event)
            case _:
                self._note(What.EVENT, pod, message=f"{event.reason}: {event.note}")

    # What the API shows

    def added(self, obj: KubeObject) -> None:
        if not isinstance(obj, Pod) or obj.finished:
            return
        if obj.node_name:
            self.already_placed += 1
        else:
            self.arrived_s[obj.uid] = self.clock.elapsed_s
            what, why = self._admission(obj)
            self._note(what, obj, message=why)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod):
            self._pod_updated(old, new)
        elif isinstance(old, PersistentVolumeClaim) and isinstance(new, PersistentVolumeClaim):
            if new.spec.volume_name and not old.spec.volume_name:
                self.bound_claims.append(BoundClaim(self.clock.elapsed_s, new))
                self._note(What.CLAIM_BOUND, new, message=f"to volume {new.spec.volume_name}")

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._left(obj, What.DELETED)
            self._note(What.DELETED, obj, node=obj.node_name)

    # Telling

    def _bound(self, pod: Pod, node_name: str) -> None:
        self.stays[pod.uid] = Stay(pod, node_name, self.clock.elapsed_s)
        self._note(What.BOUND, pod, node=node_name)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.node_name and not old.node_name and new.uid not in self.stays:
            # By a plugin that binds in its own way.
            self._bound(new, new.node_name)
        if new.finished and not old.finished:
            self.finished_s[new.uid] = self.clock.elapsed_s
            self._left(new, What.FINISHED)
            self._note(What.FINISHED, new, node=new.node_name)
        elif new.terminating and not old.terminating:
            self._note(What.TERMINATING, new, node=new.node_name)

    def _admission(self, pod: Pod) -> tuple[What, str]:
        """How the queue took a pod that it has just been told of."""
        if self._scheduler is None:
            return What.QUEUED, ""
        if pod.scheduler_name not in self._scheduler.frameworks:
            return What.IGNORED, no_profile(pod)
        queued = self._scheduler.queue.get(pod.key)
        if queued is not None and queued.gated:
            return What.GATED, gated_by(pod, queued.gating_plugin)
        return What.QUEUED, ""

    def held_back_by(self, pod: Pod) -> str:
        """What a pod that is assumed on its node waits for."""
        waiting = self._scheduler.waiting_pods.get(pod.uid) if self._scheduler else None
        if waiting is None:
            return "for PreBind"
        return f"for Permit of {', '.join(waiting.pending_plugins())}"

    def _remember_preemption(self, pod: Pod) -> None:
        decision, self._failing = self._failing, None
        if decision is None or decision.pod.uid != pod.uid or decision.post_filter is None:
            return
        detail = decision.post_filter.detail
        if isinstance(detail, PreemptionDetail) and detail.nominated_node:
            now = datetime.fromtimestamp(self.clock.now(), UTC)
            self._why_there[pod.uid] = why_that_node(detail, now)

    def _evicted(self, event: Event) -> None:
        victim, preemptor = event.regarding, event.related
        why = self._why_there.get(preemptor.uid, "") if preemptor is not None else ""
        self.evictions.append(
            Eviction(self.clock.elapsed_s, victim, preemptor, victim.node_name, why)
        )
        by = event.note
        if preemptor is not None:
            by = f"by {preemptor.key} (priority {preemptor.priority}); {why}".removesuffix("; ")
        self._left(victim, What.PREEMPTED)
        self._note(What.PREEMPTED, victim, node=victim.node_name, message=by)

    def _left(self, pod: Pod, how: What) -> None:
        stay = self.stays.get(pod.uid)
        if stay is not None and stay.ended is None:
            stay.ended, stay.ended_at_s = how, self.clock.elapsed_s

    def _note(self, what: What, obj: KubeObject, *, node: str = "", message: str = "") -> None:
        self.last_s = self.clock.elapsed_s
        if what not in _NO_PROGRESS:
            self.last_progress_s = self.last_s
        if self.keeps_timeline:
            self.timeline.append(Happening(self.clock.elapsed_s, what, obj.key, node, message))


def no_profile(pod: Pod) -> str:
    return f"no profile has the scheduler name {pod.scheduler_name!r}"


def gated_by(pod: Pod, plugin: str) -> str:
    """Why PreEnqueue keeps a pod out: by the pod's own gates, or by some other plugin."""
    gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: {gates}" if gates else f"held back by {plugin}"
