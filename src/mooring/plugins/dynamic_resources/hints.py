"""Which events may make a pod schedulable that DynamicResources refused."""

from __future__ import annotations

from mooring.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import ClaimProblem
from mooring.plugin import Action, EventWithHint, Hint, on_add_or_update, on_change
from mooring.plugin.devices import ClaimCache
from mooring.plugins.dynamic_resources.pod_claims import claims_of

_ADD_OR_UPDATE = Action.ADD | Action.UPDATE
_NODE_ACTIONS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
_CLAIMS_GENERATED = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM


class Hints:
    def __init__(self, cache: ClaimCache) -> None:
        self._cache = cache

    def events(self) -> tuple[EventWithHint, ...]:
        return (
            on_change(Node, _NODE_ACTIONS),
            on_add_or_update(ResourceClaim, _ADD_OR_UPDATE, self.after_claim_change),
            on_add_or_update(Pod, _CLAIMS_GENERATED, self.after_pod_change),
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
