"""A replay that stops at each pod that has a feasible node, and asks for the node."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns
from mooring.errors import MooringError
from mooring.gym.agent_choice import AgentChoice, registry_with, scored_by_agent
from mooring.gym.episodes import Episode
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.sim.simulation import SimOptions
from mooring.sim.traces.replay import Replay

_NO_ROWS = np.empty(0, np.intp)


class PlacementRun(Replay):
    """Virtual time goes on between two choices: pods arrive, end, fail and are tried again as ever.

    advance ──▶ `pod` is set: choose(row) ──▶ advance ──▶ … ──▶ `pod` is None: the episode has ended
    """

    def __init__(self, episode: Episode, options: SimOptions, *, until_s: float | None) -> None:
        """Raises ConfigError and InputError."""
        self._choice = AgentChoice()
        #: The pod that was popped and waits for a choice.
        self._asked: QueuedPodInfo | None = None
        #: intp[...]: the rows that the pod may go to.
        self.feasible: NDArray[np.intp] = _NO_ROWS
        self._end_s = until_s
        #: UID of each pod without a node → when it arrived.
        self._arrivals: dict[str, float] = {}
        #: The sum of the arrivals above, and what pods have waited that wait no more.
        self._sum_of_arrivals = self._waited_before = 0.0
        assert options.config is not None
        config = scored_by_agent(options.config)
        agent = replace(options, config=config, registry=registry_with(self._choice))
        super().__init__(episode.trace, agent, pods_end=episode.pods_end)
        self.load(episode.objects)

    def __enter__(self) -> Self:
        return self

    @property
    def pod(self) -> Pod | None:
        """The pod to place; None if the episode has ended."""
        return None if self._asked is None else self._asked.pod

    @property
    def columns(self) -> Columns:
        return self.scheduler.cluster.snapshot().columns

    @property
    def pending(self) -> int:
        """The number of pods without a node."""
        return len(self._arrivals)

    @property
    def waited_s(self) -> float:
        """What all pods together have waited so far."""
        now_s = self.loop.time()
        return self._waited_before + len(self._arrivals) * now_s - self._sum_of_arrivals

    def advance(self) -> None:
        """Go on to the next choice, or to the end."""
        while True:
            self.run(until_s=self._end_s)
            if self._asked is None:
                return
            self.feasible = self._feasible_rows(self._asked.pod)
            if len(self.feasible):
                return
            # What happened at the same moment has taken the room.
            self._try(self._asked)

    def choose(self, row: int) -> None:
        """Place the pod on this feasible row."""
        asked = self._asked
        assert asked is not None
        self._choice.row = row
        self._try(asked)
        self._choice.row = None

    def _try(self, queued: QueuedPodInfo) -> None:
        self._asked, self.feasible = None, _NO_ROWS
        self.scheduler.try_pod(queued)

    def _attempt(self) -> bool:
        """As for every simulation, but the pod is not tried before the agent has chosen."""
        if self._asked is not None or self.scheduler.queue.closed:
            return False
        queued = self.scheduler.queue.pop()
        if queued is None:
            return False
        # The members of a gang are placed together; the engine chooses for them.
        alone = queued.pod.spec.scheduling_group is None
        if alone and len(self._feasible_rows(queued.pod)):
            self._asked = queued
            self.loop.stop()
            return False
        self.scheduler.try_pod(queued)
        return True

    def _feasible_rows(self, pod: Pod) -> NDArray[np.intp]:
        try:
            return self.scheduler.decide(pod).feasible
        except MooringError:
            # The attempt will say the same, and the pod is told.
            return _NO_ROWS

    # Changes in the API

    def added(self, obj: KubeObject) -> None:
        super().added(obj)
        if isinstance(obj, Pod) and not obj.node_name:
            self._arrivals[obj.uid] = self.loop.time()
            self._sum_of_arrivals += self.loop.time()

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        super().updated(old, new)
        if isinstance(new, Pod) and new.node_name:
            self._waits_no_more(new)

    def deleted(self, obj: KubeObject) -> None:
        super().deleted(obj)
        if isinstance(obj, Pod):
            self._waits_no_more(obj)

    def _waits_no_more(self, pod: Pod) -> None:
        arrived_s = self._arrivals.pop(pod.uid, None)
        if arrived_s is not None:
            self._sum_of_arrivals -= arrived_s
            self._waited_before += self.loop.time() - arrived_s
