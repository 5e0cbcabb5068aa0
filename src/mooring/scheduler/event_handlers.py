"""What happens in the cluster, told to the cache and to the queue.

A driver calls these with objects as the API server shows them; nothing else changes the cache but the
scheduler's own assumptions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mooring.cluster.cache import CacheError
from mooring.framework.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, EventResource
from mooring.framework.object_changes import node_change_events, pod_change_events
from mooring.objects.devices import DeviceTaintRule, ResourceClaim
from mooring.objects.kinds import KINDS
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.scheduler.parts import Parts

_LOG = logging.getLogger("mooring.scheduler")

ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, Action.ADD)
UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, Action.ADD)
NODE_ADD = ClusterEvent(EventResource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, Action.DELETE)

#: The plugin that holds back the pods of a gang until there are enough.
_GANGS = "GangScheduling"

#: The kinds of `KINDS` whose events may make a pod schedulable.
_RESOURCES = {kind.struct: kind.event_resource for kind in KINDS if kind.events}

#: The cache of claims tells of these: what the scheduler assumes counts, too.
_TOLD_BY_CACHE = (ResourceClaim,)


class EventHandlers:
    """One method for each thing that can happen to an object."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self._queue = parts.queue
        #: The kinds whose events may make a pod schedulable, with those that plugins declare.
        self._resources: dict[type[KubeObject], str] = {
            **_RESOURCES,
            **{
                kind.struct: kind.event_resource
                for framework in parts.frameworks.values()
                for kind in framework.kinds()
            },
        }
        parts.cluster.claims.follow(self._claim_changed)
        #: The pod that completes a gang lets the others go.
        self._wakes_gangs = parts.gates.enabled("GangScheduling")

    def added(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                self._pod_added(obj)
            case Node():
                self._cluster.add_node(obj)
                self._queue.move_all(NODE_ADD, None, obj)
            case _:
                self._cluster.listers.put(obj)
                self._move(Action.ADD, None, obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        match old, new:
            case Pod(), Pod():
                self._pod_updated(old, new)
            case Node(), Node():
                self._cluster.update_node(new)
                for event in node_change_events(old, new):
                    self._queue.move_all(event, old, new)
            case _:
                self._cluster.listers.put(new)
                self._move(Action.UPDATE, old, new)

    def deleted(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                self._pod_deleted(obj)
            case Node():
                self._queue.move_all(NODE_DELETE, obj, None)
                self._guarded(lambda: self._cluster.remove_node(obj.name))
            case _:
                self._cluster.listers.drop(obj)
                self._move(Action.DELETE, obj, None)

    def _move(self, action: Action, old: KubeObject | None, new: KubeObject | None) -> None:
        changed = new or old
        if isinstance(changed, DeviceTaintRule):
            for before, after in self._cluster.device_pools.take_tainted():
                self._move(Action.UPDATE, before, after)
            return
        if isinstance(changed, _TOLD_BY_CACHE):
            return
        resource = self._resources.get(type(changed)) if changed is not None else None
        if resource is not None:
            self._queue.move_all(ClusterEvent(resource, action), old, new)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        self._queue.move_all(ClusterEvent(EventResource.RESOURCE_CLAIM, action), old, new)

    # Pods

    def _pod_added(self, pod: Pod) -> None:
        if pod.finished:
            return
        self._parts.observed_pods[pod.key] = pod
        if pod.node_name:
            self._guarded(lambda: self._cluster.add_pod(pod))
            self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
        elif self._handled(pod):
            self.note_member(pod)
            self._queue.add(pod)
            if self._wakes_gangs:
                self._wake_gang(pod)

    def _wake_gang(self, pod: Pod) -> None:
        """A pod without a node has come, which may be the last that its gang waited for.

        If it is not, no gang can pass PreEnqueue. To ask every pod of a gang each time that one comes
        would take as long as the square of their number.
        """
        groups, key = self._cluster.pod_groups, pod.group_key
        group = self._cluster.listers.get(PodGroup, key) if key else None
        opens = groups is not None and group is not None and groups.has_minimum(group)
        self._queue.move_all(UNSCHEDULED_POD_ADD, None, pod, closed_gate="" if opens else _GANGS)

    def note_member(self, pod: Pod) -> None:
        """Count a pod that has no node in its group."""
        groups = self._cluster.pod_groups
        if groups is not None and not pod.node_name and self._handled(pod):
            groups.put(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.finished:
            # The watch selects unfinished pods: one that finishes disappears from it.
            self._pod_deleted(new)
            return
        self._parts.observed_pods[new.key] = new
        if old.node_name:
            self._guarded(lambda: self._cluster.update_pod(new))
            for event in pod_change_events(old, new):
                self._queue.move_all(event, old, new)
        elif new.node_name:
            self._guarded(lambda: self._cluster.add_pod(new))
            self._queue.move_all(ASSIGNED_POD_ADD, None, new)
            if self._handled(old):
                self._queue.delete(old)
        elif self._handled(old):
            self._pending_updated(old, new)

    def _pending_updated(self, old: Pod, new: Pod) -> None:
        version = old.metadata.resource_version
        if version and version == new.metadata.resource_version:
            return
        self.note_member(new)
        if self._cluster.is_assumed(new):
            if new.terminating and not old.terminating:
                self._assumed_deleted(new)
            return
        self._queue.update(old, new)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            self._released(old, group_key=old.group_key)

    def _pod_deleted(self, pod: Pod) -> None:
        observed = self._parts.observed_pods
        known = observed.get(pod.key)
        if known is not None and known.uid == pod.uid:
            del observed[pod.key]
        elif pod.finished:
            return  # It left when it finished.
        if pod.node_name:
            self._guarded(lambda: self._cluster.remove_pod(pod))
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        elif self._handled(pod):
            self._queue.delete(pod)
            if self._cluster.pod_groups is not None:
                self._cluster.pod_groups.remove(pod)
            if self._cluster.is_assumed(pod):
                self._assumed_deleted(pod)
            elif pod.nominated_node_name:
                self._released(pod)

    def _assumed_deleted(self, pod: Pod) -> None:
        """A pod that waits for Permit or its binding goes away: its place is free again."""
        assumed = self._cluster.pods.get(pod.uid)
        if assumed is None:
            return
        if not self._parts.waiting_pods.reject(pod.uid):
            self._guarded(lambda: self._cluster.forget_pod(assumed))
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed, None)

    def _released(self, pod: Pod, *, group_key: str = "") -> None:
        """A node is no longer held for a pod: other pods may try for it.

        Pods of the group with this key do not: their own attempt exchanged its nominations, so that they
        would be tried without end.
        """

        def may_try(other: Pod) -> bool:
            return other.priority <= pod.priority and not (
                group_key and other.group_key == group_key
            )

        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, pre_check=may_try)

    def _handled(self, pod: Pod) -> bool:
        return pod.scheduler_name in self._parts.frameworks

    def _guarded(self, change: Callable[[], None]) -> None:
        """A change that the cache does not allow is logged: what the watch says next decides."""
        try:
            change()
        except CacheError as error:
            _LOG.error("%s", error)
