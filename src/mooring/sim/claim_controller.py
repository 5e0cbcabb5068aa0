"""The resource claim controller of a simulated cluster, and the garbage collector of its claims.

It creates claims from templates and names them in the status of their pod. When a pod that uses a claim
has finished or is gone, it takes back the reservation; when nobody uses the claim any more, the
allocation and the finalizer, too. Claims that were created for a pod go with the pod.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.errors import ApiError
from mooring.objects.devices import (
    CLAIM_FINALIZER,
    ConsumerReference,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from mooring.objects.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from mooring.objects.resource_claims import (
    POD_CLAIM_NAME,
    ClaimProblem,
    claim_name,
    is_owned_by,
    is_reserved_for,
    reference_to,
    with_finalizers,
    without_finalizer,
)
from mooring.sim.api import SimApi

#: The longest beginning of a generated name. Five characters follow.
_LONGEST_BASE = 57


@dataclass(slots=True)
class ClaimController:
    """Watches pods, claims and templates; register it with `SimApi.watch`."""

    api: SimApi
    #: UID of a pod → the keys of the claims that were created for it.
    _owned: dict[str, set[str]] = field(default_factory=dict)

    def added(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                self._pod_changed(obj)
            case ResourceClaim():
                self._note_owner(obj)
                self._claim_changed(obj.key)
            case ResourceClaimTemplate():
                for pod in self.api.all(Pod):
                    if pod.namespace == obj.namespace:
                        self._pod_changed(pod)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self.added(new)

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, ResourceClaim):
            for owner in obj.metadata.owner_references:
                self._owned.get(owner.uid, set()).discard(obj.key)
        elif isinstance(obj, Pod):
            self._release(obj)
            for key in sorted(self._owned.pop(obj.uid, ())):
                self._delete(key)

    # Pods

    def _pod_changed(self, pod: Pod) -> None:
        if not pod.spec.resource_claims and pod.uid not in self._owned:
            return
        current = self.api.get(Pod, pod.key)
        if current is None or current.uid != pod.uid:
            return
        if _is_done(current):
            self._release(current)
        elif not current.terminating:
            self._create_claims(current)

    def _create_claims(self, pod: Pod) -> None:
        made = {status.name: status for status in pod.status.resource_claim_statuses}
        before = dict(made)
        for entry in pod.spec.resource_claims:
            claim = self._claim_for(pod, entry)
            if claim is not None:
                made[entry.name] = PodResourceClaimStatus(
                    name=entry.name, resource_claim_name=claim.name
                )
        if made != before:
            pod = self.api.update(pod.with_status(resource_claim_statuses=list(made.values())))
        if pod.node_name:
            self._reserve(pod)

    def _claim_for(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        """The claim for an entry that names a template; None if there is nothing to do, or no template."""
        template_name = entry.resource_claim_template_name
        if template_name is None or entry.resource_claim_name is not None:
            return None
        with suppress(ClaimProblem):
            name, _ = claim_name(pod, entry)
            known = None if name is None else self._claim(f"{pod.namespace}/{name}")
            if name is None or (known is not None and is_owned_by(known, pod)):
                return None
        for key in sorted(self._owned.get(pod.uid, ())):
            known = self._claim(key)
            if known is not None and known.metadata.annotations.get(POD_CLAIM_NAME) == entry.name:
                return known
        template = self.api.get(ResourceClaimTemplate, f"{pod.namespace}/{template_name}")
        return None if template is None else self._create(pod, entry, template)

    def _create(
        self, pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate
    ) -> ResourceClaim:
        meta = template.spec.metadata
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
        )
        claim = ResourceClaim(
            api_version="resource.k8s.io/v1",
            kind="ResourceClaim",
            metadata=ObjectMeta(
                namespace=pod.namespace,
                generate_name=_base_name(pod.name, entry.name),
                labels=meta.labels,
                annotations={**meta.annotations, POD_CLAIM_NAME: entry.name},
                owner_references=[owner],
            ),
            spec=template.spec.spec,
        )
        created = self.api.create(self.api.with_generated_name(claim))
        self._note_owner(created)
        return created

    def _reserve(self, pod: Pod) -> None:
        """Reserve the allocated claims of a pod that did not come through a scheduler."""
        for claim in self._claims_of(pod):
            if claim.status.allocation is not None and not is_reserved_for(claim, pod):
                reserved_for = [*claim.status.reserved_for, reference_to(pod)]
                self._update_status(claim, replace(claim.status, reserved_for=reserved_for))

    def _release(self, pod: Pod) -> None:
        """A pod has finished, or is gone: look at its claims again."""
        for claim in self._claims_of(pod):
            self._claim_changed(claim.key)

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        keys = dict.fromkeys(sorted(self._owned.get(pod.uid, ())))
        for entry in pod.spec.resource_claims:
            with suppress(ClaimProblem):
                name, _ = claim_name(pod, entry)
                if name is not None:
                    keys[f"{pod.namespace}/{name}"] = None
        return [claim for key in keys if (claim := self._claim(key)) is not None]

    # Claims

    def _claim_changed(self, key: str) -> None:
        """Take back what nobody uses any more."""
        claim = self._claim(key)
        if claim is None:
            return
        status = claim.status
        users = [user for user in status.reserved_for if self._is_used_by(claim, user)]
        if len(users) < len(status.reserved_for):
            unused = not users and CLAIM_FINALIZER in claim.metadata.finalizers
            freed = ResourceClaimStatus() if unused else replace(status, reserved_for=users)
            claim = self._update_status(claim, freed)
            if unused:
                self._drop_finalizer(claim)
        elif claim.terminating and not users and CLAIM_FINALIZER in claim.metadata.finalizers:
            if status.allocation is not None:
                claim = self._update_status(claim, ResourceClaimStatus())
            self._drop_finalizer(claim)
        if not users:
            self._delete_if_owner_is_done(key)

    def _is_used_by(self, claim: ResourceClaim, user: ConsumerReference) -> bool:
        if user.resource != "pods" or user.api_group:
            return True
        pod = self.api.get(Pod, f"{claim.namespace}/{user.name}")
        return pod is not None and pod.uid == user.uid and not _is_done(pod)

    def _delete_if_owner_is_done(self, key: str) -> None:
        claim = self._claim(key)
        owner = None if claim is None else claim.metadata.controller
        if claim is None or owner is None or owner.kind != "Pod":
            return
        pod = self.api.get(Pod, f"{claim.namespace}/{owner.name}")
        if pod is None or pod.uid != owner.uid or _is_done(pod):
            self._delete(key)

    def _update_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        return self.api.update(replace(claim, status=status))

    def _drop_finalizer(self, claim: ResourceClaim) -> None:
        finalizers = without_finalizer(claim.metadata.finalizers)
        if claim.terminating and not finalizers:
            self.api.remove(claim)
        else:
            self.api.update(with_finalizers(claim, finalizers))

    def _delete(self, key: str) -> None:
        claim = self._claim(key)
        if claim is not None and not claim.terminating:
            with suppress(ApiError):
                self.api.delete(claim)

    def _claim(self, key: str) -> ResourceClaim | None:
        return self.api.get(ResourceClaim, key)

    def _note_owner(self, claim: ResourceClaim) -> None:
        owner = claim.metadata.controller
        if owner is not None and owner.kind == "Pod":
            self._owned.setdefault(owner.uid, set()).add(claim.key)


def _is_done(pod: Pod) -> bool:
    """Whether the pod will not run any more: it has finished, or was deleted before it had a node."""
    return pod.finished or (pod.terminating and not pod.node_name)


def _base_name(pod: str, entry: str) -> str:
    """`pod-entry-`, with both parts cut in proportion if that is too long."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST_BASE:
        return whole
    share = _LONGEST_BASE / len(whole)
    return f"{pod[: int(len(pod) * share)]}-{entry[: int(len(entry) * share)]}"
