"""Which pods there are of each group, and which of them have a node."""

from __future__ import annotations

from collections.abc import Collection

from mooring.objects.pod import Pod
from mooring.plugin import ObservedPods
from mooring_policies.coscheduling.objects import group_key


class Members:
    """The pods of groups, kept up to date with what the API server shows."""

    def __init__(self, pods: ObservedPods) -> None:
        #: Group → its pods by key, with or without a node.
        self._pods: dict[str, dict[str, Pod]] = {}
        #: Group → the names of its pods that have a node, or are about to get one.
        self._assigned: dict[str, set[str]] = {}
        pods.follow(self._changed)

    def of(self, group: str) -> Collection[Pod]:
        return self._pods.get(group, {}).values()

    def assigned(self, group: str) -> int:
        return len(self._assigned.get(group, ()))

    def assign(self, pod: Pod) -> None:
        self._assigned.setdefault(group_key(pod), set()).add(pod.name)

    def release(self, pod: Pod) -> None:
        group = group_key(pod)
        names = self._assigned.get(group)
        if names is not None:
            names.discard(pod.name)
            if not names:
                del self._assigned[group]

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (group := group_key(old)):
            pods = self._pods[group]
            del pods[old.key]
            if not pods:
                del self._pods[group]
            if new is None and old.node_name:
                self.release(old)
        if new is not None and (group := group_key(new)):
            self._pods.setdefault(group, {})[new.key] = new
            if new.node_name:
                self.assign(new)
