"""Pods that Permit holds back: allowed, rejected, preempted or timed out, whichever comes first.

             allow (last plugin)  ──▶ Success
waiting ──┬─ reject, time-out     ──▶ Unschedulable, by that plugin
          └─ preempt              ──▶ Error: the pod is retried after a backoff
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial

from mooring.config.durations import Duration
from mooring.errors import MooringError
from mooring.framework.clock import Clock, Timer
from mooring.framework.status import SUCCESS, Code, Status, failure
from mooring.objects.pod import Pod

#: No plugin makes a pod wait for longer.
LONGEST_WAIT_S = 15 * 60.0


class WaitingPod:
    """One pod, and the plugins that have not allowed it yet."""

    def __init__(
        self, pod: Pod, node_name: str, timeouts_s: Mapping[str, float], clock: Clock
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self.since = clock.now()
        self._decision: Status | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timers: dict[str, Timer] = {}
        for plugin, timeout_s in timeouts_s.items():
            self._timers[plugin] = clock.call_later(
                timeout_s, partial(self._expire, plugin, timeout_s)
            )

    @property
    def decided(self) -> bool:
        return self._decision is not None

    def pending_plugins(self) -> list[str]:
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        """One plugin lets the pod go; it goes when none holds it any more."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Whether it took effect: a pod is decided on once."""
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        return self._decide(failure(MooringError(message)).by(plugin))

    async def wait(self) -> Status:
        if self._decision is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        assert self._decision is not None
        return self._decision

    def _decide(self, status: Status) -> bool:
        if self._decision is not None:
            return False
        self._decision = status
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        return True

    def _expire(self, plugin: str, timeout_s: float) -> None:
        waited = Duration(round(timeout_s * 1e9))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")


class WaitingPods:
    """Every pod that waits, by UID; shared by all profiles."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod, node_name: str, timeouts_s: Mapping[str, float]) -> WaitingPod:
        waiting = WaitingPod(pod, node_name, timeouts_s, self._clock)
        self._pods[pod.uid] = waiting
        return waiting

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def reject(self, uid: str) -> bool:
        """For a pod that is going away; whether a pod was waiting and is rejected by this."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", "removed")
