"""Which pods have a node held for them while preemption makes room there.

The nominator remembers what the scheduler decided, which may be ahead of what the API server
shows in `status.nominatedNodeName`. It knows pods by UID, and keeps for each node the order in
which they were nominated. It holds no pods: callers get them as the queue has them at that
moment, found by `namespace/name`, so a pod re-created under a name speaks for the one before it,
as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mooring.errors import InvariantError, check_kept
from mooring.framework.interface import NominatingInfo, Nomination
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod

#: Finds a pod by `namespace/name`; None if there is none.
PodLookup = Callable[[str], Pod | None]


#: Differs from every answer of the queue.
_NEVER_ASKED = object()


def _no_pod(_key: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class HeldFor:
    """The pods that a node is held for, as the queue has them, in order of nomination."""

    pods: tuple[Pod, ...]
    uids: frozenset[str]
    lowest_priority: int

    @classmethod
    def by(cls, pods: Sequence[Pod]) -> HeldFor:
        uids = frozenset(pod.uid for pod in pods)
        return cls(tuple(pods), uids, min(pod.priority for pod in pods))

    def counting_for(self, pod: Pod) -> tuple[Pod, ...]:
        """Those of no lower priority, without the pod itself; the same tuple if these are all."""
        if pod.priority <= self.lowest_priority and pod.uid not in self.uids:
            return self.pods
        return tuple(
            other for other in self.pods if other.priority >= pod.priority and other.uid != pod.uid
        )


class Nominator:
    """Nominations by pod and by node."""

    def __init__(
        self, live_pod: PodLookup | None = None, *, queued_pod: PodLookup = _no_pod
    ) -> None:
        #: The pod as the watch last showed it. Without this, every nomination is believed.
        self._live_pod = live_pod
        #: The pod as the scheduling queue has it; a queue that is handed this nominator sets it.
        self.queued_pod = queued_pod
        #: Node name → UID → the pod that was nominated, in order of nomination. No empty values.
        self._pods: dict[str, dict[str, Pod]] = {}
        #: UID → node name; says the same as `_pods`.
        self._node_of: dict[str, str] = {}
        #: UID → `namespace/name`, for all that are nominated.
        self._keys: dict[str, str] = {}
        #: UID → the pod that the queue had when it was last asked.
        self._queued: dict[str, Pod | None] = {}
        #: Node name → its pods as they were then, and the nodes of which this no longer holds.
        self._held: dict[str, HeldFor] = {}
        self._changed: set[str] = set()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """At the end, all nominations are as they were."""
        before = self._pods, self._node_of, self._keys, self._queued, self._held, self._changed
        self._pods = {name: nominated.copy() for name, nominated in self._pods.items()}
        self._node_of, self._keys = self._node_of.copy(), self._keys.copy()
        self._queued, self._held = self._queued.copy(), self._held.copy()
        self._changed = self._changed.copy()
        try:
            yield
        finally:
            self._pods, self._node_of, self._keys, self._queued, self._held, self._changed = before

    @property
    def has_any(self) -> bool:
        """Whether any node is held for any pod."""
        return bool(self._node_of)

    def nodes(self) -> KeysView[str]:
        """The names of the nodes that are held for a pod."""
        return self._pods.keys()

    def nominated_node(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def nominated_pods_for_node(self, name: str) -> list[Pod]:
        """In order of nomination; of a pod that is not in the queue, no more than its name."""
        return [self._resolve(pod) for pod in self._pods.get(name, {}).values()]

    def nominations(self) -> list[tuple[str, ObjectMeta]]:
        """The node of every nomination and its pod's names; `add`, in this order, makes the same."""
        return [
            (name, ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid))
            for name, pods in self._pods.items()
            for pod in pods.values()
        ]

    def held(self) -> Iterator[tuple[str, HeldFor]]:
        """Every node that is held, and for which pods: as `nominated_pods_for_node`, for all at once.

        A node has the same `HeldFor` until its pods change.
        """
        known, changed = self._queued, self._changed
        for uid, queued in zip(self._keys, map(self.queued_pod, self._keys.values()), strict=True):
            if known.get(uid, _NEVER_ASKED) is not queued:
                known[uid] = queued
                changed.add(self._node_of[uid])
        for name in changed:
            if name in self._pods:
                self._held[name] = HeldFor.by(self.nominated_pods_for_node(name))
            else:
                self._held.pop(name, None)
        changed.clear()
        return ((name, self._held[name]) for name in self._pods)

    def add(self, pod: Pod, nominating: NominatingInfo = None) -> None:
        """Replace what is known of this pod: by `nominating`, or by what its status says.

        An empty name takes the nomination back. The reference files it under the empty name
        instead, which no node has, so nobody can tell.
        """
        self.delete(pod)
        node_name = pod.nominated_node_name if nominating is None else nominating.node_name
        if node_name and self._is_waiting(pod):
            self._pods.setdefault(node_name, {})[pod.uid] = pod
            self._node_of[pod.uid] = node_name
            self._keys[pod.uid] = pod.key
            self._changed.add(node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow the pod's status, unless it never named a node: then it lags behind."""
        held = self._node_of.get(old.uid)
        unnamed = not old.nominated_node_name and not new.nominated_node_name
        self.delete(old)
        self.add(new, Nomination(held) if held and unnamed else None)

    def delete(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is None:
            return
        del self._keys[pod.uid]
        self._queued.pop(pod.uid, None)
        self._changed.add(node_name)
        pods = self._pods[node_name]
        del pods[pod.uid]
        if not pods:
            del self._pods[node_name]

    def validate(self) -> None:
        """Raise InvariantError unless both views of the nominations are the same."""
        by_pod = {uid: name for name, pods in self._pods.items() for uid in pods}
        if by_pod != self._node_of:
            raise InvariantError(f"nominations by node {by_pod}, by pod {self._node_of}")
        if not all(self._pods.values()):
            raise InvariantError("a node is held for no pod")
        check_kept(
            "the names of nominated pods",
            self._keys,
            {uid: pod.key for pods in self._pods.values() for uid, pod in pods.items()},
        )
        for name, held in self.held():
            check_kept(
                f"the pods nominated to {name}",
                held,
                HeldFor.by(self.nominated_pods_for_node(name)),
            )

    def _is_waiting(self, pod: Pod) -> bool:
        """Whether the pod still exists and has no node yet."""
        if self._live_pod is None:
            return True
        live = self._live_pod(pod.key)
        return live is not None and not live.node_name

    def _resolve(self, nominated: Pod) -> Pod:
        queued = self.queued_pod(nominated.key)
        return queued if queued is not None else _bare(nominated)


def _bare(pod: Pod) -> Pod:
    """The reference remembers only this much, so a pod in flight asks for nothing at priority 0."""
    return Pod(metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid))
