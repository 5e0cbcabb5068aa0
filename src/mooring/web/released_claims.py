"""Claims whose devices were given back during a run: the page shows the time before, too."""

from __future__ import annotations

from mooring.objects.devices import ResourceClaim
from mooring.objects.meta import KubeObject


class ReleasedClaims:
    """A watcher that keeps such claims as they were the last time that a pod had their devices."""

    def __init__(self) -> None:
        #: By claim and pod: a claim may be allocated several times before its pod is bound.
        self._claims: dict[tuple[str, str], ResourceClaim] = {}

    @property
    def claims(self) -> list[ResourceClaim]:
        return list(self._claims.values())

    def added(self, obj: KubeObject) -> None:
        pass

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, ResourceClaim) and isinstance(new, ResourceClaim):
            before, after = old.status, new.status
            if before.reserved_for[:1] != after.reserved_for[:1] or (
                before.allocation != after.allocation
            ):
                self._keep(old)

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, ResourceClaim):
            self._keep(obj)

    def _keep(self, claim: ResourceClaim) -> None:
        if claim.status.allocation is not None and claim.status.reserved_for:
            self._claims[claim.key, claim.status.reserved_for[0].name] = claim
