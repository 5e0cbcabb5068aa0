"""Which events may make a pod schedulable that DynamicResources refused."""

from __future__ import annotations

from mooring.objects.devices import ResourceClaim
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import ClaimProblem
from mooring.plugin import Action, ClusterEvent, EventResource, EventWithHint, Hint
from mooring.plugin.devices import ClaimCache
from mooring.plugins.dynamic_resources.pod_claims import claims_of

_ADD_OR_UPDATE = Action.ADD | Action.UPDATE
_NODE_ACTIONS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
_POD_EVENT = ClusterEvent(EventResource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)


class Hints:
    def __init__(self, cache: ClaimCache) -> None:
        self._cache = cache

    def events(self) -> tuple[EventWithHint, ...]:
        claim_event = ClusterEvent(EventResource.RESOURCE_CLAIM, _ADD_OR_UPDATE)
        return (
            EventWithHint(ClusterEvent(EventResource.NODE, _NODE_ACTIONS)),
            EventWithHint(claim_event, self.after_claim_change),
            EventWithHint(_POD_EVENT, self.after_pod_change),
            EventWithHint(ClusterEvent(EventResource.DEVICE_CLASS, _ADD_OR_UPDATE)),
            EventWithHint(ClusterEvent(EventResource.RESOURCE_SLICE, _ADD_OR_UPDATE)),
        )

    def after_claim_change(self, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
        """Queue the pod if any claim was deallocated, or the status of one of its own changed."""
        assert isinstance(old, ResourceClaim | None)
        assert isinstance(new, ResourceClaim)
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

    def after_pod_change(self, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> Hint:
        """Queue the pod if all of its claims exist now."""
        assert isinstance(new, Pod)
        if pod.uid != new.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._cache)
        except ClaimProblem:
            return Hint.SKIP
        return Hint.QUEUE
