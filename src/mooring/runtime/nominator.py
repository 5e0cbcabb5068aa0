"""Which pods have a node held for them while preemption makes room there.

The nominator remembers what the scheduler decided, which may be ahead of what the API server
shows in `status.nominatedNodeName`. It knows pods by UID, and keeps for each node the order in
which they were nominated. It holds no pods: callers get them as the queue has them at that
moment, found by `namespace/name`, so a pod re-created under a name speaks for the one before it,
as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mooring.cluster.changes import ChangeLog
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

    def counting_at(self, priority: int) -> tuple[Pod, ...]:
        """Those of no lower priority; the same tuple if these are all."""
        if priority <= self.lowest_priority:
            return self.pods
        return tuple(other for other in self.pods if other.priority >= priority)

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
        self._queued_pod = queued_pod
        #: Whether `moved` is called for each pod that enters or leaves the queue.
        self._is_told = False
        #: Node name → UID → the pod that was nominated, in order of nomination. No empty values.
        self._pods: dict[str, dict[str, Pod]] = {}
        #: UID → node name; says the same as `_pods`.
        self._node_of: dict[str, str] = {}
        #: UID → `namespace/name`, for all that are nominated.
        self._keys: dict[str, str] = {}
        #: `namespace/name` → the UIDs of pods that are nominated under this name.
        self._uids: dict[str, set[str]] = {}
        #: UID → the pod that the queue had when it was last asked.
        self._queued: dict[str, Pod | None] = {}
        #: The names of nominated pods that entered or left the queue since then.
        self._moved: set[str] = set()
        #: Node name → its pods as they were then, and the nodes of which this no longer holds.
        self._held: dict[str, HeldFor] = {}
        self._changed: set[str] = set()
        #: The nodes that other pods than before are nominated to, one after another.
        self.changes: ChangeLog[str] = ChangeLog()

    @property
    def queued_pod(self) -> PodLookup:
        return self._queued_pod

    @queued_pod.setter
    def queued_pod(self, lookup: PodLookup) -> None:
        """It is asked for every nominated pod, each time."""
        self._queued_pod, self._is_told = lookup, False

    def follow(self, lookup: PodLookup) -> None:
        """It is asked again for pods that `moved`."""
        self._queued_pod, self._is_told = lookup, True
        self._moved.update(self._uids)

    def moved(self, key: str) -> None:
        """A pod of this name entered or left the queue."""
        if key in self._uids:
            self._moved.add(key)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """At the end, all nominations are as they were."""
        self._refresh()
        before = self._pods, self._node_of, self._keys, self._uids, self._queued, self._held
        self._pods = {name: nominated.copy() for name, nominated in self._pods.items()}
        self._node_of, self._keys = self._node_of.copy(), self._keys.copy()
        self._uids = {key: uids.copy() for key, uids in self._uids.items()}
        self._queued, self._held = self._queued.copy(), self._held.copy()
        try:
            yield
        finally:
            names = {*self._pods, *self._held, *self._changed}
            self._pods, self._node_of, self._keys, self._uids, self._queued, self._held = before
            names |= self._held.keys()
            # The trial may have changed any of these, and pods may have moved meanwhile.
            self._changed |= names
            self._moved.update(self._uids)

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
        self._refresh()
        return ((name, self._held[name]) for name in self._pods)

    def held_nodes(self) -> Mapping[str, HeldFor]:
        """The same by name, in any order. It follows the nominations when it is asked for again."""
        self._refresh()
        return self._held

    def _refresh(self) -> None:
        known, changed, keys = self._queued, self._changed, self._keys
        uids: Iterable[str] = keys
        if self._is_told:
            uids = [uid for key in self._moved for uid in self._uids.get(key, ())]
        for uid in uids:
            queued = self._queued_pod(keys[uid])
            if known.get(uid, _NEVER_ASKED) is not queued:
                known[uid] = queued
                changed.add(self._node_of[uid])
        self._moved.clear()
        for name in changed:
            if name in self._pods:
                self._held[name] = HeldFor.by(self.nominated_pods_for_node(name))
            else:
                self._held.pop(name, None)
            self.changes.note(name)
        changed.clear()

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
            self._uids.setdefault(pod.key, set()).add(pod.uid)
            self._moved.add(pod.key)
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
        key = self._keys.pop(pod.uid)
        self._uids[key].remove(pod.uid)
        if not self._uids[key]:
            del self._uids[key]
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
        by_uid = {uid: key for key, uids in self._uids.items() for uid in uids}
        check_kept("the nominated pods by name", by_uid, self._keys)
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
        queued = self._queued_pod(nominated.key)
        return queued if queued is not None else _bare(nominated)


def _bare(pod: Pod) -> Pod:
    """The reference remembers only this much, so a pod in flight asks for nothing at priority 0."""
    return Pod(metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid))
