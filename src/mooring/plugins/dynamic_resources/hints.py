"""Which events may make a pod schedulable that DynamicResources refused."""

from __future__ import annotations

from mooring.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import ClaimProblem
from mooring.plugin import (
    Action,
    ClusterView,
    EventWithHint,
    Hint,
    on_add_or_update,
    on_change,
    on_delete,
)
from mooring.plugins.dynamic_resources.extended_resources import requested
from mooring.plugins.dynamic_resources.pod_claims import claims_of

_ADD_OR_UPDATE = Action.ADD | Action.UPDATE
_NODE_ACTIONS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
_CLAIMS_GENERATED = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM


class Hints:
    def __init__(self, cluster: ClusterView) -> None:
        self._cache = cluster.claims
        self._classes = cluster.device_classes

    def events(self) -> tuple[EventWithHint, ...]:
        return (
            on_change(Node, _NODE_ACTIONS),
            on_add_or_update(ResourceClaim, _ADD_OR_UPDATE, self.after_claim_change),
            on_add_or_update(Pod, _CLAIMS_GENERATED, self.after_pod_change),
            on_delete(Pod, self.after_pod_delete),
            on_change(DeviceClass, _ADD_OR_UPDATE),
            on_change(ResourceSlice, _ADD_OR_UPDATE),
        )

    def after_claim_change(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim) -> Hint:
        """Queue the pod if any claim was deallocated, or the status of one of its own changed."""
        try:
            claims = claims_of(pod, self._cache)
        except ClaimProblem:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if not any(claim.uid == new.uid for claim in claims):
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        return Hint.SKIP if old.status == new.status else Hint.QUEUE

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        """Queue the pod if all of its claims exist now."""
        if pod.uid != new.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._cache)
        except ClaimProblem:
            return Hint.SKIP
        return Hint.QUEUE

    def after_pod_delete(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        """Queue the pod if another one gave up before its allocations were written.

        These were in flight, and no claim tells of their end. Written ones are given back by a change of
        their claim. The reference has no such hint: there, the pod waits for the flush. A pod that was only
        nominated had none.
        """
        if not old.node_name:
            return Hint.SKIP
        if old.spec.resource_claims:
            try:
                claims = claims_of(old, self._cache)
            except ClaimProblem:
                return Hint.SKIP
            if any(claim.status.allocation is None for claim in claims):
                return Hint.QUEUE
        served = any(name in self._classes for name in requested(old))
        if served and self._cache.extended_resource_claim_of(old) is None:
            return Hint.QUEUE
        return Hint.SKIP
