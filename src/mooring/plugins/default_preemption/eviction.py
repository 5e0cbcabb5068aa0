"""Evict the victims, beside the scheduling cycle, while the preemptor waits.

A victim that is not bound yet is stopped in memory: a pod that waits on Permit, or is in PreBind,
returns to the queue. Any other victim gets a condition with the reason, and is deleted through the
API.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.plugin import ApiError, Event, Handle, NotFound, PodStatusPatch

_LOG = logging.getLogger(__name__)

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

#: With so many preemptors, those whose victims are gone are forgotten.
_MANY = 64

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
_CONDITION_MESSAGE = "{}: preempting to accommodate a higher priority {}"
_NOTE = "Preempted by {} {} on node {}"
_IN_MEMORY = " (in kube-scheduler memory)."


def terminating_by_preemption(pod: Pod) -> bool:
    condition = pod.condition(DISRUPTION_TARGET)
    return (
        pod.terminating
        and condition is not None
        and condition.status == "True"
        and condition.reason == PREEMPTION_BY_SCHEDULER
    )


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Who needs room: a pod, or all pods of a group."""

    obj: Pod | PodGroup
    #: The pods that wait for the room.
    pods: tuple[Pod, ...]

    @property
    def uid(self) -> str:
        return self.obj.uid

    @property
    def word(self) -> str:
        return "podgroup" if isinstance(self.obj, PodGroup) else "pod"

    @property
    def scheduler_name(self) -> str:
        return self.pods[0].scheduler_name


@dataclass(slots=True, eq=False)
class _Eviction:
    """The victims of one preemptor."""

    preemptor: Preemptor
    node_name: str
    #: From most to least important; at least one.
    victims: list[Pod]
    #: Pods of lower priority that the node was held for when the evictions started.
    nominated: list[Pod]
    #: The last victim, set when its eviction starts.
    last: Pod | None = None
    #: Whether a victim is deleted that has no node, as far as the watch has shown. Its place may have become
    #: free before, while the preemptor was held back, and the end of such a pod is no event about a place.
    is_silent: bool = False
    work: Coroutine[Any, Any, None] | None = None
    #: Whether `work` has begun. From then on it ends by itself.
    has_begun: bool = False


class Evictions:
    """The evictions in progress, by UID of the preemptor."""

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._under_way: dict[str, _Eviction] = {}
        #: UID of a preemptor → its victims, which the API server has deleted.
        self._deleted: dict[str, list[Pod]] = {}
        #: UID of a victim → the result of its eviction.
        self._victims: dict[str, asyncio.Future[bool]] = {}

    def start(self, preemptor: Preemptor, node_name: str, victims: Sequence[Pod]) -> None:
        """Start the evictions and return. Terminating victims are skipped."""
        staying = [victim for victim in victims if not victim.terminating]
        if not staying:
            return
        self._handle.preemption_metrics.preemption_victims(len(victims))
        # A pod that is nominated later in the same cycle of its group keeps its nomination.
        lower = [
            pod
            for pod in self._handle.nominated_pods(node_name)
            if pod.priority < preemptor.obj.priority and pod.nominated_node_name
        ]
        eviction = _Eviction(preemptor, node_name, staying, lower)
        eviction.work = self._run(eviction)
        self._under_way[preemptor.uid] = eviction
        self._handle.spawn(eviction.work)

    def holds_back(self, preemptor: Pod | PodGroup) -> bool:
        """Whether the preemptor must wait for the eviction of its victims.

        The watch may show that the last victim leaves before the delete call returns. The preemptor
        must not miss that event, so it is no longer held back from then on.
        """
        eviction = self._under_way.get(preemptor.uid)
        if eviction is None or (not eviction.has_begun and _dropped(eviction)):
            return False
        if eviction.last is None:
            return True
        observed = self._handle.observed_pod(eviction.last.key)
        return observed is not None and not observed.terminating

    def are_leaving(self, preemptor: Pod) -> bool:
        """Whether a victim is deleted, and the watch has yet to show that.

        The preemptor may be tried in between, because of another pod that left. It must not preempt again.
        """
        victims = self._deleted.get(preemptor.uid)
        if victims is None:
            return False
        if any(map(self._seems_to_stay, victims)):
            return True
        del self._deleted[preemptor.uid]
        return False

    @property
    def are_seen(self) -> bool:
        """Whether the watch has shown that every victim leaves that is deleted."""
        self._forget_seen()
        return not self._deleted

    def _seems_to_stay(self, victim: Pod) -> bool:
        known = self._handle.cluster.pods.get(victim.uid)
        return known is not None and not known.terminating

    def _note_deleted(self, eviction: _Eviction) -> None:
        if len(self._deleted) >= _MANY:
            self._forget_seen()
        self._deleted[eviction.preemptor.uid] = eviction.victims

    def _forget_seen(self) -> None:
        self._deleted = {
            uid: victims
            for uid, victims in self._deleted.items()
            if any(map(self._seems_to_stay, victims))
        }

    async def _run(self, eviction: _Eviction) -> None:
        eviction.has_begun = True
        preemptor, metrics = eviction.preemptor, self._handle.preemption_metrics
        succeeded = False
        started = metrics.timer()
        try:
            succeeded = await self._carry_out(eviction)
        except Exception:
            _LOG.exception("evicting pods for %s", preemptor.obj.key)
        finally:
            if self._under_way.get(preemptor.uid) is eviction:
                del self._under_way[preemptor.uid]
        if succeeded:
            self._note_deleted(eviction)
        metrics.evicted("success" if succeeded else "error", metrics.timer() - started)
        if not succeeded or eviction.is_silent:
            # Perhaps no event follows that makes the queue try the pod again.
            self._handle.activate({pod.key: pod for pod in preemptor.pods})

    async def _carry_out(self, eviction: _Eviction) -> bool:
        """Evict all but the last in parallel, then the last. Return whether all succeeded."""
        cleared = await self._clear_nominations(eviction)
        *others, last = eviction.victims
        evicted = await asyncio.gather(*(self._evict(eviction, victim) for victim in others))
        if not all(evicted):
            return False
        eviction.last = last
        return await self._evict(eviction, last) and cleared

    async def _clear_nominations(self, eviction: _Eviction) -> bool:
        """Pods of lower priority that were nominated to the node should find another soon."""
        cleared = True
        for pod in eviction.nominated:
            try:
                await self._handle.writer.patch_pod_status(
                    pod, PodStatusPatch(nominated_node_name="")
                )
            except ApiError as error:
                _LOG.warning("clearing the nomination of %s: %s", pod.key, error)
                cleared = False
        return cleared

    async def _evict(self, eviction: _Eviction, victim: Pod) -> bool:
        """Evict a victim. If two preemptors need it gone, it is evicted once."""
        if self._is_gone(victim):
            return True
        by_another = self._victims.get(victim.uid)
        if by_another is not None:
            return await asyncio.shield(by_another)
        evicted = self._victims[victim.uid] = asyncio.get_running_loop().create_future()
        try:
            succeeded = await self._evict_first(eviction, victim)
            evicted.set_result(succeeded)
            return succeeded
        finally:
            del self._victims[victim.uid]
            if not evicted.done():
                evicted.set_result(False)

    async def _evict_first(self, eviction: _Eviction, victim: Pod) -> bool:
        preemptor = eviction.preemptor
        note = _NOTE.format(preemptor.word, preemptor.uid, eviction.node_name)
        if self._stop_in_memory(victim):
            note += _IN_MEMORY
        else:
            observed = self._handle.observed_pod(victim.key)
            if observed is not None and not observed.node_name:
                eviction.is_silent = True
            try:
                await self._delete(victim, preemptor)
            except NotFound:
                return True
            except ApiError as error:
                _LOG.warning("preempting %s: %s", victim.key, error)
                return False
        self._handle.writer.record_event(
            Event(
                regarding=victim,
                type="Normal",
                reason="Preempted",
                action="Preempting",
                note=note,
                reporting_controller=self._handle.profile_name,
                related=preemptor.obj,
            )
        )
        return True

    def _stop_in_memory(self, victim: Pod) -> bool:
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        in_pre_bind = self._handle.pod_in_pre_bind(victim.uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {self._plugin}")

    async def _delete(self, victim: Pod, preemptor: Preemptor) -> None:
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=_CONDITION_MESSAGE.format(preemptor.scheduler_name, preemptor.word),
            observed_generation=victim.metadata.generation,
        )
        if not _says(victim, condition):
            await self._handle.writer.patch_pod_status(victim, PodStatusPatch(condition))
        if not self._is_gone(victim):
            await self._handle.writer.delete_pod(victim)

    def _is_gone(self, victim: Pod) -> bool:
        return victim.uid not in self._handle.cluster.pods


def _dropped(eviction: _Eviction) -> bool:
    """Whether the driver closed the coroutine instead of running it, as some replays do."""
    work = eviction.work
    return work is not None and inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


def _says(pod: Pod, condition: PodCondition) -> bool:
    known = pod.condition(condition.type)
    return known is not None and (known.status, known.reason, known.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
