"""What a plugin gets of the scheduler it runs in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.cluster.cache import Cluster
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.nominator import Nominator
from mooring.framework.runtime import Framework
from mooring.framework.waiting_pods import WaitingPod, WaitingPods
from mooring.objects.pod import Pod

Spawn = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(slots=True)
class PluginHandle:
    """The one implementation of `interface.Handle`; one for each profile."""

    profile_name: str
    cluster: Cluster
    clock: Clock
    writer: ApiWriter
    nominator: Nominator
    waiting: WaitingPods
    spawn: Spawn
    activate: Callable[[Mapping[str, Pod]], None]
    #: The plugins of this profile; set once all of them are built.
    _framework: Framework | None = None

    @property
    def framework(self) -> Framework:
        """For plugins that run others, as preemption does. Not to be used while being built."""
        assert self._framework is not None, "plugins are still being built"
        return self._framework

    @framework.setter
    def framework(self, framework: Framework) -> None:
        self._framework = framework

    def waiting_pods(self) -> Sequence[WaitingPod]:
        return list(self.waiting)

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        return self.waiting.reject(uid)
