"""The engine: one pod after another, from the queue to its node.

    added, updated, deleted ──▶ EventHandlers ──▶ queue, cluster
                                                     │
    schedule_one ──▶ pop ──▶ SchedulingCycle ──▶ BindingCycle ──▶ bound
                                   └───── Failures ─────┘──▶ back to the queue

It never opens a socket, never reads a clock and never sleeps: a driver (`sim`, `live`) tells it what happens
in the cluster, calls `schedule_one` while there is work, and carries out its writes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mooring.cluster.listers import LISTED
from mooring.config.types import KubeSchedulerConfiguration
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import ASSIGNED_POD_DELETE
from mooring.framework.interface import Nomination
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.saved_queue import SavedQueue
from mooring.runtime.framework import Framework
from mooring.scheduler.binding_cycle import BindingCycle
from mooring.scheduler.decision import Decision, NoProfileError
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.event_handlers import EventHandlers
from mooring.scheduler.failure import Failures
from mooring.scheduler.group_cycle import GroupCycle
from mooring.scheduler.group_questions import GroupQuestions
from mooring.scheduler.node_search import PlacedCopies
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_conditions import PodConditions
from mooring.scheduler.scheduling_cycle import SchedulingCycle
from mooring.scheduler.writes import Writes

_LOG = logging.getLogger("mooring.scheduler")


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of an engine that has nothing under way."""

    #: In the order in which they were known.
    objects: list[KubeObject]
    queue: SavedQueue
    #: The node and the pod, in order.
    nominations: list[tuple[str, ObjectMeta]]
    search_start: int


class Engine:
    """All profiles over one queue and one cluster."""

    def __init__(self, config: KubeSchedulerConfiguration, deps: Dependencies) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        parts = self.parts = Parts(config, deps)
        self.config = parts.config
        self.cluster = parts.cluster
        self.queue = parts.queue
        #: By scheduler name.
        self.frameworks = parts.frameworks
        self.waiting_pods = parts.waiting_pods
        self.binding = parts.binding
        # Not for other rooms; conformance and tests replay steps by hand.
        self.searches = parts.searches
        self.nominator = parts.nominator
        self.observed_pods = parts.observed_pods
        #: What plugins count about themselves.
        self.plugin_metrics = parts.plugin_metrics
        self._conditions = PodConditions(parts)
        self.failures = Failures(parts, self._conditions)
        binding_cycle = BindingCycle(parts, self.failures)
        self._scheduling_cycle = SchedulingCycle(parts, binding_cycle, self.failures)
        #: None unless pods of a group are scheduled together.
        self._group_cycle = (
            GroupCycle(parts, self._scheduling_cycle, self.failures)
            if parts.schedules_groups
            else None
        )
        #: What would become of pod groups; None unless pods of a group are scheduled together.
        self.group_questions = (
            GroupQuestions(parts, self._scheduling_cycle) if parts.schedules_groups else None
        )
        self._handlers = EventHandlers(parts)

    # What happens in the cluster

    def added(self, obj: KubeObject) -> None:
        self._handlers.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._handlers.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        self._handlers.deleted(obj)

    def load(self, objects: Iterable[KubeObject]) -> None:
        """Take in what is there at the start. Unlike `added`, this wakes no waiting pod."""
        waiting: list[Pod] = []
        for obj in objects:
            if isinstance(obj, Node):
                self.cluster.add_node(obj)
            elif not isinstance(obj, Pod):
                self.cluster.listers.put(obj)
            elif obj.node_name and not obj.finished:
                self.cluster.add_pod(obj)
                self.observed_pods[obj.key] = obj
            else:
                waiting.append(obj)
        for pod in waiting:
            self.added(pod)

    def take_over(self, other: Engine) -> None:
        """Go on with everything that another engine knows: objects, assumptions, waiting pods.

        The bindings that the other one has under way end there. If one fails, this engine tries the pod.
        """
        known, pods = other.cluster, other.observed_pods.values()
        known.snapshot()  # takes in what plugins have fed
        self.cluster.columns.own_columns.take_over(known.columns.own_columns)
        self.load(obj for kind in self._listed() for obj in known.listers.all(kind))
        self.load(info.node for info in known.infos.values() if info.node is not None)
        self.load(pod for pod in pods if pod.node_name)
        self.cluster.claims.take_over(known.claims)
        for pod in pods:
            self._handlers.note_member(pod)
        for pod in known.assumed_pods():
            self.cluster.assume_pod(pod)
        for pod in pods:
            self.observed_pods[pod.key] = pod
            if not pod.node_name and not self.cluster.is_assumed(pod):
                self._queue_as_before(pod, other.queue.get(pod.key))
        other.parts.hand_over = self._take_back

    def may_save(self) -> bool:
        """Whether nothing is assumed or under way, as `save` needs it."""
        cluster = self.cluster
        is_settled = not cluster.assumed_pods() and cluster.claims.is_settled
        is_settled = is_settled and all(each.is_settled for each in self.frameworks.values())
        return (
            not self.binding and is_settled and cluster.volumes.is_settled and self.queue.may_save
        )

    def save(self) -> Saved:
        """Everything that another engine needs to decide as this one does; only if `may_save`."""
        listed = [obj for kind in self._listed() for obj in self.cluster.listers.all(kind)]
        nodes = [info.node for info in self.cluster.infos.values() if info.node is not None]
        return Saved(
            [*listed, *nodes, *self.observed_pods.values()],
            self.queue.save(),
            self.nominator.nominations(),
            self.parts.search_start.position,
        )

    def load_saved(self, saved: Saved) -> None:
        """Go on where another engine was saved."""
        waiting = [obj for obj in saved.objects if isinstance(obj, Pod) and not obj.node_name]
        self.load(obj for obj in saved.objects if not isinstance(obj, Pod) or obj.node_name)
        for pod in waiting:
            self.observed_pods[pod.key] = pod
            self._handlers.note_member(pod)
        for node_name, metadata in saved.nominations:
            self.nominator.add(Pod(metadata=metadata), Nomination(node_name))
        self.parts.search_start.position = saved.search_start
        self.queue.load(saved.queue, self.observed_pods.get)

    def _listed(self) -> list[type[KubeObject]]:
        custom = (kind.struct for each in self.frameworks.values() for kind in each.kinds())
        return list(dict.fromkeys((*LISTED, *custom)))

    def _queue_as_before(self, pod: Pod, before: QueuedPodInfo | None) -> None:
        if pod.scheduler_name in self.frameworks:
            self.queue.add(pod, None if before is None else before.history)

    def _take_back(self, pod: Pod) -> None:
        """A binding that an earlier engine began has failed: the pod is for this engine to place."""
        if pod.uid in self.binding or not self.cluster.is_assumed(pod):
            return
        self.cluster.forget_pod(pod)
        self.queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        if self.parts.hand_over is not None:
            self.parts.hand_over(pod)
            return
        known = self.observed_pods.get(pod.key)
        if known is not None and known.uid == pod.uid and not known.node_name:
            self.queue.add(known)

    # What it knows

    def pod(self, key: str) -> Pod | None:
        """The pod of this `namespace/name`, as the API server last showed it."""
        return self.observed_pods.get(key)

    def pods(self) -> Collection[Pod]:
        """Every pod as the API server last showed it."""
        return self.observed_pods.values()

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """The pods that the node is held for."""
        return self.nominator.nominated_pods_for_node(node_name)

    def framework(self, pod: Pod) -> Framework:
        """The pod's profile. Raises NoProfileError, as do the questions below."""
        try:
            return self.frameworks[pod.scheduler_name]
        except KeyError:
            raise NoProfileError(pod) from None

    # Questions, which change nothing

    @contextmanager
    def trial(self) -> Iterator[None]:
        """For what-ifs: change `cluster` and ask; at the end, the cluster is as it was."""
        with self.parts.trial():
            yield

    def gate(self, pod: Pod) -> Status | None:
        """What the PreEnqueue plugin says that keeps the pod from being tried; None if none does."""
        self.framework(pod)
        return self.queue.gate(pod)

    def decide(self, pod: Pod, state: CycleState | None = None) -> Decision:
        """Look for a node, as an attempt would. Raises NoNodesError, PluginFailure, ExtenderError."""
        framework, snapshot = self.framework(pod), self.cluster.snapshot()
        search = self.searches[pod.scheduler_name].copy()
        return search.schedule_pod(framework, state or CycleState(), pod, snapshot)

    def place_copies(self, pod: Pod, most: int) -> PlacedCopies | None:
        """Where copies of the pod go, as if each were decided and placed in turn; nothing is placed.

        None if the places do not follow from single nodes: decide one at a time. Raises PluginFailure.
        """
        framework, snapshot = self.framework(pod), self.cluster.snapshot()
        return self.searches[pod.scheduler_name].place_copies(framework, pod, snapshot, most)

    def decide_in_full(self, pod: Pod, state: CycleState | None = None) -> Decision:
        """Look at every node, with every plugin, even if one is nominated; break ties by name.

        Raises NoNodesError, PluginFailure and ExtenderError.
        """
        framework, snapshot = self.framework(pod), self.cluster.snapshot()
        search = self.searches[pod.scheduler_name].in_full()
        return search.schedule_pod(framework, state or CycleState(), _unnominated(pod), snapshot)

    def fits(self, pod: Pod) -> bool:
        """Whether a node passes PreFilter and Filter. Raises PluginFailure and ExtenderError."""
        framework, snapshot = self.framework(pod), self.cluster.snapshot()
        if not len(snapshot):
            return False
        search = self.searches[pod.scheduler_name].in_full()
        decision = search.find_nodes_that_fit(framework, CycleState(), _unnominated(pod), snapshot)
        return bool(len(decision.feasible))

    # Attempts

    def schedule_one(self) -> bool:
        """Take the next pod and place it, or find out why not; whether there was one."""
        queued = self.queue.pop()
        if queued is None:
            return False
        self.try_pod(queued)
        return True

    def try_pod(self, queued: QueuedPodInfo) -> None:
        """Make an attempt at a pod that was popped, or at its whole group."""
        if self._group_cycle is not None and queued.pod.spec.scheduling_group is not None:
            self._group_cycle.run(queued)
        else:
            self._scheduling_cycle.run(queued)

    def tell_conditions(self) -> None:
        """Tell pods that another one was tried for why they wait; to be called every second."""
        self.parts.carry_out(Writes(tuple(self._conditions.tell_some())))

    def close(self) -> None:
        self.queue.close()
        for name, framework in self.frameworks.items():
            for problem in framework.close():
                _LOG.error("framework %s failed to close: %s", name, problem)

    def validate(self) -> None:
        """Raise InvariantError unless everything that is kept equals what a rebuild gives; for tests."""
        self.cluster.validate()
        if self.cluster.pod_groups is not None:
            known = (
                pod
                for pod in self.observed_pods.values()
                if pod.node_name or pod.scheduler_name in self.frameworks
            )
            self.cluster.pod_groups.validate(known, self.cluster.assumed_pods())
        self.queue.validate()
        snapshot = self.cluster.snapshot()
        for search in self.searches.values():
            if search.evaluations is not None and len(snapshot):
                search.evaluations.validate(snapshot)


def _unnominated(pod: Pod) -> Pod:
    """A node that is held for the pod would be tried first, and the others not be looked at."""
    return pod.with_status(nominated_node_name="") if pod.nominated_node_name else pod
