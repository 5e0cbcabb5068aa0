"""Pods whose PreBind is under way: preemption stops it, which is kinder than deleting the pod.

              mark_prebound ──▶ finished: too late to stop, the pod is about to be bound
in PreBind ──┤
              cancel        ──▶ cancelled: the pod is not bound, and retried after a backoff
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mooring.errors import MooringError
from mooring.faults import is_being_cancelled
from mooring.framework.status import Status, failure


class PreBindCancelled(asyncio.CancelledError):
    """What a plugin was doing when its PreBind was cancelled: the beginning of the pod's failure."""

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self.doing = doing


class PodInPreBind:
    """One pod, from the start of its PreBind to the end of it."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._finished = False
        #: Why it was cancelled; None as long as it was not.
        self.cause: str | None = None

    def cancel(self, cause: str) -> bool:
        """Whether the pod will not be bound: one that is past PreBind cannot be stopped. The first
        cause counts.
        """
        if self._finished:
            return False
        if self.cause is None:
            self.cause = cause
            self._stop()
        return True

    def mark_prebound(self) -> bool:
        """Whether the pod may be bound."""
        self._finished = self.cause is None
        return self._finished


class PodsInPreBind:
    """Every such pod, by UID; shared by all profiles."""

    def __init__(self) -> None:
        self._pods: dict[str, PodInPreBind] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> PodInPreBind | None:
        return self._pods.get(uid)

    async def run(self, uid: str, pre_bind: Coroutine[Any, Any, Status]) -> Status:
        """Run a pod's PreBind in such a way that it can be cancelled; its cause is then the error.

        A plugin that does not heed being cancelled runs to its end, and the pod is not bound all
        the same.
        """
        task = asyncio.ensure_future(pre_bind)
        running = self._pods[uid] = PodInPreBind(task.cancel)
        try:
            status = await task
        except asyncio.CancelledError as cancelled:
            if running.cause is None or is_being_cancelled():
                raise
            doing = f"{cancelled.doing}: " if isinstance(cancelled, PreBindCancelled) else ""
            return failure(MooringError(doing + running.cause))
        finally:
            del self._pods[uid]
        if status.ok and not running.mark_prebound():
            return failure(MooringError(running.cause))
        return status
