"""Replay a trace: pods arrive and leave at their times, and the scheduler places them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Self

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.traces.trace import Trace, TracePod


class Replay(Simulation):
    """A simulation of a trace; `run()` replays it. It also watches its own API.

    Unschedulable pods are tried again when an event may help them, but not also every five minutes: over
    months of virtual time, that would be most of the work, with the same result.
    """

    def __init__(
        self, trace: Trace, options: SimOptions | None = None, *, pods_end: bool = True
    ) -> None:
        expected = [each.pod for each in trace.pods]
        super().__init__(
            replace(options or SimOptions(), tries_leftover=False, expected_pods=expected)
        )
        #: UID → run time; pods that never finish have no entry.
        self._run_s: dict[str, float] = {}
        #: The number of pods that have arrived, and that have ended.
        self.arrived = 0
        self.ended = 0
        self.load(trace.nodes)
        self.api.watch(self)
        # One timer per moment: timers of the same moment have no order.
        for at_s, together in groupby(trace.pods, key=lambda each: each.arrives_s):
            pods = list(together)
            self.clock.call_later(at_s, lambda pods=pods: self._arrive(pods))  # type: ignore[misc]
            for each in pods if pods_end else ():
                self._plan_end(each)

    def __enter__(self) -> Self:
        return self

    def _plan_end(self, each: TracePod) -> None:
        if each.run_s is not None:
            self._run_s[each.pod.uid] = each.run_s
        if each.leaves_s is not None:
            pod, leaves_s = each.pod, max(each.leaves_s, each.arrives_s)
            self.clock.call_later(leaves_s, lambda: self._leave(pod))

    def _arrive(self, pods: list[TracePod]) -> None:
        self.arrived += len(pods)
        for each in pods:
            self.api.create(each.pod)

    def _leave(self, pod: Pod) -> None:
        stored = self.api.get(Pod, pod.key)
        if stored is not None and stored.uid == pod.uid:
            self.ended += 1
            self.api.delete(stored)

    # Changes in the API

    def added(self, obj: KubeObject) -> None:
        pass

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod) and new.node_name and not old.node_name:
            run_s = self._run_s.get(new.uid)
            if run_s is not None:
                self.clock.call_later(run_s, lambda: self._leave(new))

    def deleted(self, obj: KubeObject) -> None:
        pass
