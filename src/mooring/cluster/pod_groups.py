"""The pods of each pod group, and how far each has come.

                 begin                assume
    waiting ◀──────────▶ trying ◀──────────────▶ assumed ──▶ assigned
        ▲       end                   forget                    ▲
        └── add, without a node                                 └── add, with a node

A pod is waiting until the group's cycle takes it (`begin`), and again when the cycle lets it go
without a node (`end`). A group exists as long as it has a pod. The PodGroup object is in the listers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mooring.errors import MooringError, check_kept
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup


class PodGroupState:
    """The known pods of one group, by UID; each is in one of the four."""

    __slots__ = ("assigned", "assumed", "trying", "waiting")

    def __init__(self) -> None:
        #: Neither assumed nor assigned, and not in the group's cycle.
        self.waiting: dict[str, Pod] = {}
        #: In the group's cycle, without a node so far.
        self.trying: dict[str, Pod] = {}
        #: Counted on a node before the API server confirms it, with that node.
        self.assumed: dict[str, Pod] = {}
        self.assigned: dict[str, Pod] = {}

    @property
    def all_count(self) -> int:
        return len(self.waiting) + len(self.trying) + self.scheduled_count

    @property
    def scheduled_count(self) -> int:
        return len(self.assumed) + len(self.assigned)

    def scheduled(self) -> Iterator[Pod]:
        yield from self.assigned.values()
        yield from self.assumed.values()

    def drop(self, uid: str) -> None:
        for pods in (self.waiting, self.trying, self.assumed, self.assigned):
            pods.pop(uid, None)

    def copy(self) -> PodGroupState:
        other = PodGroupState()
        other.waiting, other.trying = self.waiting.copy(), self.trying.copy()
        other.assumed, other.assigned = self.assumed.copy(), self.assigned.copy()
        return other

    def uids(self) -> tuple[tuple[str, ...], ...]:
        """For comparisons."""
        parts = (self.waiting, self.trying, self.assumed, self.assigned)
        return tuple(tuple(sorted(part)) for part in parts)


class NoGroupError(MooringError):
    """No pod of a group is known."""

    def __init__(self, key: str) -> None:
        super().__init__(f"pod group state not found for pod group {key}")


class PodGroupStates:
    """Every group that has a pod, by `namespace/name`. All methods ignore pods without a group."""

    def __init__(self) -> None:
        self._groups: dict[str, PodGroupState] = {}
        #: In a trial: the groups that are copies by now. None outside of trials.
        self._copied: set[str] | None = None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """At the end, all groups are as they were."""
        groups, copied = self._groups, self._copied
        self._groups, self._copied = groups.copy(), set()
        try:
            yield
        finally:
            self._groups, self._copied = groups, copied

    def _changeable(self, key: str) -> PodGroupState | None:
        """A group, to be changed: in a trial, a copy. None if there is none."""
        state = self._groups.get(key)
        if self._copied is not None and state is not None and key not in self._copied:
            self._copied.add(key)
            state = self._groups[key] = state.copy()
        return state

    def __contains__(self, key: str) -> bool:
        return key in self._groups

    def get(self, key: str) -> PodGroupState:
        """Raises NoGroupError."""
        state = self._groups.get(key)
        if state is None:
            raise NoGroupError(key)
        return state

    def has_minimum(self, group: PodGroup) -> bool:
        """Whether enough pods of a gang are known; True for a group that is no gang."""
        if group.min_count is None:
            return True
        return self.get(group.key).all_count >= group.min_count

    def put(self, pod: Pod) -> None:
        """Add a pod, or replace it by a later version: as the API server shows it."""
        key = pod.group_key
        if not key:
            return
        state = self._changeable(key)
        if state is None:
            state = self._groups[key] = PodGroupState()
        uid = pod.uid
        if pod.node_name:
            state.drop(uid)
            state.assigned[uid] = pod
        elif uid in state.trying:
            state.trying[uid] = pod
        elif uid not in state.assumed:
            # What is assumed keeps its node.
            state.waiting[uid] = pod

    def remove(self, pod: Pod) -> None:
        state = self._changeable(pod.group_key)
        if state is not None:
            state.drop(pod.uid)
            if not state.all_count:
                del self._groups[pod.group_key]

    def begin(self, pods: Iterable[Pod]) -> None:
        """The cycle of the group takes these pods."""
        for pod in pods:
            state = self._changeable(pod.group_key)
            if state is not None and state.waiting.pop(pod.uid, None) is not None:
                state.trying[pod.uid] = pod

    def end(self, pod: Pod) -> None:
        """The cycle is done with this pod."""
        state = self._changeable(pod.group_key)
        known = state.trying.pop(pod.uid, None) if state is not None else None
        if state is not None and known is not None:
            state.waiting[pod.uid] = known

    def assume(self, pod: Pod) -> None:
        """A pod that was deleted meanwhile stays unknown."""
        key = pod.group_key
        state = self._changeable(key) if key else None
        if state is None:
            return
        uid = pod.uid
        if state.trying.pop(uid, None) is not None or state.waiting.pop(uid, None) is not None:
            state.assumed[uid] = pod

    def forget(self, pod: Pod, *, trying: bool = False) -> None:
        """Undo `assume`; `trying` says that the cycle of the group goes on with the pod."""
        key = pod.group_key
        state = self._changeable(key) if key else None
        if state is None:
            return
        uid = pod.uid
        assumed = state.assumed.pop(uid, None)
        if assumed is not None:
            (state.trying if trying else state.waiting)[uid] = assumed.placed_on("")

    def validate(self, pods: Iterable[Pod], assumed: Iterable[Pod]) -> None:
        """Raise InvariantError unless the groups follow from the pods; no cycle is under way."""
        rebuilt = PodGroupStates()
        for pod in pods:
            rebuilt.put(pod)
        for pod in assumed:
            rebuilt.assume(pod)
        kept = {key: state.uids() for key, state in self._groups.items()}
        expected = {key: state.uids() for key, state in rebuilt._groups.items()}
        check_kept("the pods of groups", kept, expected)
