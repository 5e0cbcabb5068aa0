"""Status patches: for each pod at most one under way and one that waits.

A scheduler decides faster than it may write. So a patch that waits is brought up to date instead of being
followed by another one, and it is dropped when it no longer matters.

    patch ──▶ waits ──its turn──▶ under way ──▶ written
                │ ▲                   │
                │ └─after a pause─────┘ failed, and worth another try
                ├ a newer patch is merged into it, as if both had been made one after the other
                └ a bind, or the end of the pod, drops it

A condition that only says with other words what the API server was told a moment ago waits until that
moment is some seconds past: the numbers in "0/6 nodes are available: ..." change with every pod that moves.
While binds are being made, only a few conditions are sent.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

import msgspec

from mooring.errors import ApiError, Conflict, NotFound, Unanswered
from mooring.framework.api import PodStatusPatch
from mooring.framework.clock import Clock, Timer
from mooring.live.bind_traffic import ASK_AGAIN_S, BindTraffic, Refusals
from mooring.live.client import STRATEGIC_MERGE_PATCH, ApiClient, Request, always
from mooring.live.line import Priority
from mooring.live.resources import PODS
from mooring.live.write_metrics import KINDS, WriteMetrics
from mooring.objects.pod import Pod, PodCondition

#: The pauses between the four tries of a patch, and how much longer they are by chance.
_PAUSES_S = (0.01, 0.05, 0.25)
_JITTER = 0.1
#: What is worth another try, beside conflicts and a server that cannot be reached or asks for patience.
_TRANSIENT = frozenset((401, 500, 503))
#: The answer to a patch with the UID of another object.
_INVALID = 422
#: How often a server may ask for patience.
_MOST_RETRIES = 10

#: How long the first condition of a pod waits. Many pods find no place and get one a moment later, as in a
#: rolling update: then it is never sent.
FIRST_AFTER_S = 0.5
#: How long a condition waits that differs from the last one in its message alone.
REPEAT_AFTER_S = 20.0

#: How many patches of one kind are under way at most.
_MOST_UNDER_WAY = 16

DISRUPTION_TARGET = "DisruptionTarget"


@dataclass(slots=True, eq=False)
class _Waiting:
    """What is to be written to one pod."""

    pod: Pod
    #: NOMINATION, EVICTION (the note that precedes it) or CONDITION.
    kind: Priority
    since: float
    #: Type → the condition to write.
    conditions: dict[str, PodCondition]
    #: "" takes the nomination back; None leaves it as it is.
    nominated_node_name: str | None
    #: Resolved when the patch is written, superseded or dropped; the newest caller's.
    ended: asyncio.Future[None]
    tries: int = 0
    #: Whether a bind, or the end of the pod, came while it was under way: it is not tried again.
    overtaken: bool = False
    #: Done when the try under way has ended; None while it waits.
    try_ended: asyncio.Future[None] | None = None
    #: Not sent before this time.
    not_before: float = 0.0

    def end(self, error: ApiError | None = None) -> None:
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)


class StatusPatches:
    """The status patches of one scheduler."""

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Clock,
        rng: random.Random,
        may_write: Callable[[], bool] = always,
        metrics: WriteMetrics | None = None,
        first_after_s: float = FIRST_AFTER_S,
        traffic: BindTraffic | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._first_after_s = first_after_s
        self._may_write = may_write
        self._metrics = metrics or WriteMetrics()
        #: UID → what waits, whether or not it may be sent now.
        self._waiting: dict[str, _Waiting] = {}
        #: Kind → UID → what may be sent now, the oldest first.
        self._ready: dict[Priority, OrderedDict[str, _Waiting]] = {
            kind: OrderedDict()
            for kind in (Priority.EVICTION, Priority.NOMINATION, Priority.CONDITION)
        }
        #: (when, number, UID) of what may not be sent yet, and of conditions that let binds go first.
        self._held: list[tuple[float, int, str]] = []
        self._behind_binds: list[tuple[float, int, str]] = []
        self._refusals = Refusals(traffic, clock) if traffic is not None else None
        self._numbers = count()
        self._timer: Timer | None = None
        #: When the timer goes off, if there is one.
        self._due = 0.0
        #: UID → the patch under way.
        self._under_way: dict[str, _Waiting] = {}
        #: UID → when a condition was last written, and what it said beside its message.
        self._written: dict[str, tuple[float, tuple[str, str, str]]] = {}
        #: Kind → how many workers there are, and how many of them look for something to send.
        self._workers = dict.fromkeys(self._ready, 0)
        self._looking = dict.fromkeys(self._ready, 0)
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many patches wait or are under way."""
        return len(self._waiting) + len(self._under_way)

    async def patch(self, pod: Pod, patch: PodStatusPatch) -> None:
        """Return when it is written, or when a newer one, a bind or the pod's end has replaced it.

        Raises ApiError.
        """
        waiting = self._waiting.get(pod.uid)
        if waiting is None:
            waiting = self._add(pod, patch)
        else:
            self._merge(waiting, pod, patch)
        await waiting.ended

    async def settle(self, uid: str) -> None:
        """Before a bind: drop what waits, and return when nothing is under way for the pod.

        Otherwise a bound pod could be told that it fits nowhere.
        """
        self.forget(uid)
        under_way = self._under_way.get(uid)
        if under_way is not None and under_way.try_ended is not None:
            await asyncio.wait((under_way.try_ended,))

    def forget(self, uid: str) -> None:
        """The pod is gone, or about to be bound, and what waits for it goes too."""
        self._written.pop(uid, None)
        dropped = self._remove(uid)
        if dropped is not None:
            self._metrics.write_superseded(KINDS[dropped.kind])
            dropped.end()
        if uid in self._under_way:
            self._under_way[uid].overtaken = True

    async def close(self) -> int:
        """Send nothing more; how many patches are dropped."""
        if self._timer is not None:
            self._timer.cancel()
        left = len(self)
        for waiting in list(self._waiting.values()):
            self._remove(waiting.pod.uid)
            self._metrics.write_dropped(KINDS[waiting.kind])
            waiting.end()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return left

    # What waits

    def _add(self, pod: Pod, patch: PodStatusPatch) -> _Waiting:
        waiting = _Waiting(
            pod,
            _kind(patch),
            self._clock.now(),
            {patch.condition.type: patch.condition} if patch.condition is not None else {},
            patch.nominated_node_name,
            asyncio.get_running_loop().create_future(),
        )
        waiting.not_before = self._earliest(waiting, waiting.kind)
        self._put(waiting)
        return waiting

    def _merge(self, waiting: _Waiting, pod: Pod, patch: PodStatusPatch) -> None:
        """Bring a patch that waits up to date; those who asked for the older one need not wait.

        An eviction goes on only when the condition of its victim is written.
        """
        self._metrics.write_superseded(KINDS[waiting.kind])
        if waiting.kind != Priority.EVICTION:
            waiting.end()
            waiting.ended = asyncio.get_running_loop().create_future()
        waiting.pod = pod
        if patch.condition is not None:
            waiting.conditions[patch.condition.type] = patch.condition
        if patch.nominated_node_name is not None:
            waiting.nominated_node_name = patch.nominated_node_name
        kind = min(waiting.kind, _kind(patch))
        # A pause after a failure is kept.
        not_before = waiting.not_before if waiting.tries else self._earliest(waiting, kind)
        if kind != waiting.kind or not_before < waiting.not_before:
            self._remove(pod.uid)
            waiting.kind, waiting.not_before = kind, not_before
            self._put(waiting)

    def _earliest(self, waiting: _Waiting, kind: Priority) -> float:
        """When it may be sent: at once, unless it is likely to be out of date soon or says little."""
        if kind != Priority.CONDITION:
            return 0.0
        written = self._written.get(waiting.pod.uid)
        if written is None:
            return waiting.since + self._first_after_s
        at, said = written
        news = any(_said(condition) != said for condition in waiting.conditions.values())
        return 0.0 if news else at + REPEAT_AFTER_S

    def _put(self, waiting: _Waiting) -> None:
        uid = waiting.pod.uid
        self._waiting[uid] = waiting
        self._metrics.write_waits(KINDS[waiting.kind], 1)
        if waiting.not_before > self._clock.now():
            heappush(self._held, (waiting.not_before, next(self._numbers), uid))
            self._set_timer()
        elif waiting.kind == Priority.CONDITION and not self._may_tell(waiting):
            heappush(self._behind_binds, (waiting.since, next(self._numbers), uid))
            self._set_timer()
        else:
            self._ready[waiting.kind][uid] = waiting
            self._send_more(waiting.kind)

    def _may_tell(self, waiting: _Waiting) -> bool:
        return self._refusals is None or self._refusals.may_tell(waiting.since)

    def _remove(self, uid: str) -> _Waiting | None:
        waiting = self._waiting.pop(uid, None)
        if waiting is not None:
            self._ready[waiting.kind].pop(uid, None)
            self._metrics.write_waits(KINDS[waiting.kind], -1)
        return waiting

    def _set_timer(self) -> None:
        """For what is due first; what comes later may be due earlier."""
        due = min(
            self._held[0][0] if self._held else inf,
            self._clock.now() + ASK_AGAIN_S if self._behind_binds else inf,
        )
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due < inf:
            self._due = due
            self._timer = self._clock.call_later(max(0.0, due - self._clock.now()), self._release)

    def _release(self) -> None:
        """Make ready what was held until now. Entries of what is gone, or ready, are passed over."""
        self._timer = None
        now = self._clock.now()
        while self._held and self._held[0][0] <= now:
            _, _, uid = heappop(self._held)
            waiting = self._waiting.get(uid)
            if waiting is None or waiting.not_before > now or uid in self._ready[waiting.kind]:
                continue
            if waiting.kind == Priority.CONDITION:
                heappush(self._behind_binds, (waiting.since, next(self._numbers), uid))
            else:
                self._ready[waiting.kind][uid] = waiting
        while self._behind_binds:
            waiting = self._waiting.get(self._behind_binds[0][2])
            if (
                waiting is not None
                and waiting.kind == Priority.CONDITION
                and waiting.not_before <= now
            ):
                if not self._may_tell(waiting):
                    break
                self._ready[waiting.kind][waiting.pod.uid] = waiting
            heappop(self._behind_binds)
        for kind in self._ready:
            self._send_more(kind)
        self._set_timer()

    # Sending

    def _send_more(self, kind: Priority) -> None:
        """Start workers, so that nothing waits for one that waits for an answer."""
        while (
            self._looking[kind] < len(self._ready[kind]) and self._workers[kind] < _MOST_UNDER_WAY
        ):
            self._workers[kind] += 1
            self._looking[kind] += 1
            task = asyncio.get_running_loop().create_task(self._work(kind))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, kind: Priority) -> None:
        """Send one after another, and choose each only when its turn has come."""
        try:
            while (waiting := await self._next(kind)) is not None:
                await self._send(waiting)
                self._looking[kind] += 1
        finally:
            self._workers[kind] -= 1

    async def _next(self, kind: Priority) -> _Waiting | None:
        """What to send when the turn has come; None if there is nothing."""
        try:
            if not self._ready[kind]:
                return None
            await self._client.turn(kind)
            if kind == Priority.CONDITION:
                # In a storm, the pods that are told why they wait are the ones that are deleted.
                self._client.hear()
            waiting = self._take(kind)
            if waiting is None:
                self._client.give_turn_back()
            return waiting
        finally:
            self._looking[kind] -= 1

    def _take(self, kind: Priority) -> _Waiting | None:
        """The oldest patch whose pod has none under way."""
        for uid in self._ready[kind]:
            if uid not in self._under_way:
                waiting = self._remove(uid)
                assert waiting is not None
                return waiting
        return None

    async def _send(self, waiting: _Waiting) -> None:
        uid = waiting.pod.uid
        self._under_way[uid] = waiting
        ended = waiting.try_ended = asyncio.get_running_loop().create_future()
        now = self._clock.now()
        self._metrics.write_waited(KINDS[waiting.kind], max(0.0, now - waiting.since))
        try:
            await self._client.send(self._request(waiting), self._may_write)
        except ApiError as error:
            self._failed(waiting, error)
        except BaseException:
            self._metrics.write_dropped(KINDS[waiting.kind])
            waiting.end()
            raise
        else:
            if not waiting.overtaken:
                for condition in waiting.conditions.values():
                    self._written[uid] = now, _said(condition)
            waiting.end()
        finally:
            del self._under_way[uid]
            ended.set_result(None)
            newer = self._waiting.get(uid)
            if newer is not None:
                self._send_more(newer.kind)

    def _failed(self, waiting: _Waiting, error: ApiError) -> None:
        """Try again later, unless a newer patch waits: that one then says what this one said, too."""
        if waiting.overtaken:
            waiting.end()
            return
        newer = self._waiting.get(waiting.pod.uid)
        if newer is not None:
            newer.conditions = waiting.conditions | newer.conditions
            if newer.nominated_node_name is None:
                newer.nominated_node_name = waiting.nominated_node_name
            waiting.end()
            return
        pause_s = self._pause_s(waiting, error)
        if pause_s is None:
            self._metrics.write_dropped(KINDS[waiting.kind])
            waiting.end(_as_gone(error))
            return
        waiting.tries += 1
        waiting.not_before = self._clock.now() + pause_s
        self._put(waiting)

    def _pause_s(self, waiting: _Waiting, error: ApiError) -> float | None:
        """How long to wait before the next try; None if there is no point in one."""
        if error.retry_after_s is not None and waiting.tries < _MOST_RETRIES:
            return error.retry_after_s
        worth = isinstance(error, Conflict | Unanswered) or error.status in _TRANSIENT
        if not worth or waiting.tries >= len(_PAUSES_S):
            return None
        return _PAUSES_S[waiting.tries] * (1.0 + _JITTER * self._rng.random())

    def _request(self, waiting: _Waiting) -> Request:
        pod, status = waiting.pod, {}
        if waiting.conditions:
            status["conditions"] = [
                self._condition(pod, condition) for condition in waiting.conditions.values()
            ]
        document: dict[str, Any] = {
            # With its UID, so that a pod that has come under the same name is left alone.
            "metadata": {"uid": pod.uid},
            "status": status,
        }
        if waiting.nominated_node_name is not None:
            document["status"]["nominatedNodeName"] = waiting.nominated_node_name or None
        return Request(
            "PATCH",
            f"{PODS.path_of(pod.namespace, pod.name)}/status",
            body=msgspec.json.encode(document),
            content_type=STRATEGIC_MERGE_PATCH,
            priority=waiting.kind,
        )

    def _condition(self, pod: Pod, condition: PodCondition) -> dict[str, Any]:
        """Fields that are not named stay as they are, so the time is named only when it changes."""
        document: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        if condition.observed_generation:
            document["observedGeneration"] = condition.observed_generation
        known = pod.condition(condition.type)
        if known is None or known.status != condition.status:
            document["lastTransitionTime"] = _timestamp(self._clock.now())
        return document


def _kind(patch: PodStatusPatch) -> Priority:
    if patch.nominated_node_name is not None:
        return Priority.NOMINATION
    if patch.condition is not None and patch.condition.type == DISRUPTION_TARGET:
        return Priority.EVICTION
    return Priority.CONDITION


def _said(condition: PodCondition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason


def _as_gone(error: ApiError) -> ApiError:
    """A pod that another one has followed under its name is as gone as one that is not found."""
    is_refused = isinstance(error, Conflict) or error.status == _INVALID
    if is_refused and "uid" in str(error).lower():
        return NotFound(str(error), status=error.status, reason=error.reason)
    return error


def _timestamp(now_s: float) -> str:
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
