"""The resource claim controller of a simulated cluster, and the garbage collector of its claims.

It creates claims from templates and names them in the status of their pod. When a pod that uses a claim
has finished or is gone, it takes back the reservation; when nobody uses the claim any more, the
allocation and the finalizer, too. Claims that were created for a pod go with the pod.

If the gate DRAWorkloadResourceClaims is on, pod groups have claims, too. The pods of a group share them,
and they go with the group.
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
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource_claims import (
    POD_CLAIM_NAME,
    POD_GROUP_CLAIM_NAME,
    ClaimProblem,
    claim_name,
    is_claim_of_group,
    is_owned_by,
    is_owned_by_group_of,
    is_pod_group,
    is_reserved_for,
    is_reserved_for_group_of,
    reference_to,
    reference_to_group,
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
    #: The gate DRAWorkloadResourceClaims.
    groups_own_claims: bool = False
    #: UID of a pod or pod group → the keys of the claims that were created for it.
    _owned: dict[str, set[str]] = field(default_factory=dict)

    def added(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                self._pod_changed(obj)
            case ResourceClaim():
                self._note_owner(obj)
                self._claim_changed(obj.key)
            case ResourceClaimTemplate():
                for group in self.api.all(PodGroup):
                    if group.namespace == obj.namespace:
                        self._group_changed(group)
                for pod in self.api.all(Pod):
                    if pod.namespace == obj.namespace:
                        self._pod_changed(pod)
            case PodGroup():
                self._group_changed(obj)

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
        elif isinstance(obj, PodGroup):
            for claim in self._claims_of_group(obj):
                self._claim_changed(claim.key)
            for key in sorted(self._owned.pop(obj.uid, ())):
                self._delete(key)

    # Pod groups

    def _group_changed(self, group: PodGroup) -> None:
        """Create the claims of a group, and tell its pods of them."""
        current = self.api.get(PodGroup, group.key)
        if not self.groups_own_claims or current is None or not current.spec.resource_claims:
            return
        made = {status.name: status for status in current.status.resource_claim_statuses}
        for entry in current.spec.resource_claims:
            claim = self._claim_for_group(current, entry)
            if claim is not None:
                made[entry.name] = PodResourceClaimStatus(
                    name=entry.name, resource_claim_name=claim.name
                )
        statuses = list(made.values())
        if statuses == current.status.resource_claim_statuses:
            return
        status = replace(current.status, resource_claim_statuses=statuses)
        self.api.update(replace(current, status=status))
        for pod in self.api.all(Pod):
            if pod.group_key == current.key:
                self._pod_changed(pod)

    def _claim_for_group(self, group: PodGroup, entry: PodResourceClaim) -> ResourceClaim | None:
        """The claim for an entry that names a template; None if there is no template."""
        template_name = entry.resource_claim_template_name
        if template_name is None:
            return None
        for key in sorted(self._owned.get(group.uid, ())):
            known = self._claim(key)
            if (
                known is not None
                and known.metadata.annotations.get(POD_GROUP_CLAIM_NAME) == entry.name
            ):
                return known
        template = self.api.get(ResourceClaimTemplate, f"{group.namespace}/{template_name}")
        if template is None:
            return None
        owner = OwnerReference(
            api_version="scheduling.k8s.io/v1alpha2",
            kind="PodGroup",
            name=group.name,
            uid=group.uid,
            controller=True,
        )
        return self._create(owner, group.namespace, {POD_GROUP_CLAIM_NAME: entry.name}, template)

    def _claims_of_group(self, group: PodGroup) -> list[ResourceClaim]:
        keys = dict.fromkeys(sorted(self._owned.get(group.uid, ())))
        for entry in group.spec.resource_claims:
            if entry.resource_claim_name is not None:
                keys[f"{group.namespace}/{entry.resource_claim_name}"] = None
        return [claim for key in keys if (claim := self._claim(key)) is not None]

    def _sharing_group(self, pod: Pod, entry: PodResourceClaim) -> PodGroup | None:
        """The group whose claim this entry of its pod is."""
        if not self.groups_own_claims or not pod.group_key:
            return None
        group = self.api.get(PodGroup, pod.group_key)
        return group if is_claim_of_group(entry, group) else None

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
        if (
            self.groups_own_claims
            and pod.group_key
            and self.api.get(PodGroup, pod.group_key) is None
        ):
            return None  # The group may have the claim.
        group = self._sharing_group(pod, entry)
        with suppress(ClaimProblem):
            name, _ = claim_name(pod, entry)
            known = None if name is None else self._claim(f"{pod.namespace}/{name}")
            owned = known is not None and (
                is_owned_by(known, pod) if group is None else is_owned_by_group_of(known, pod)
            )
            if name is None or owned:
                return None
        if group is not None:
            return self._claim_for_group(group, entry)
        for key in sorted(self._owned.get(pod.uid, ())):
            known = self._claim(key)
            if known is not None and known.metadata.annotations.get(POD_CLAIM_NAME) == entry.name:
                return known
        template = self.api.get(ResourceClaimTemplate, f"{pod.namespace}/{template_name}")
        if template is None:
            return None
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
        )
        return self._create(owner, pod.namespace, {POD_CLAIM_NAME: entry.name}, template)

    def _create(
        self,
        owner: OwnerReference,
        namespace: str,
        annotations: dict[str, str],
        template: ResourceClaimTemplate,
    ) -> ResourceClaim:
        """`annotations` say which entry of the owner the claim is for."""
        meta = template.spec.metadata
        (entry,) = annotations.values()
        claim = ResourceClaim(
            api_version="resource.k8s.io/v1",
            kind="ResourceClaim",
            metadata=ObjectMeta(
                namespace=namespace,
                generate_name=_base_name(owner.name, entry),
                labels=meta.labels,
                annotations={**meta.annotations, **annotations},
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
            if claim.status.allocation is None or is_reserved_for(claim, pod):
                continue
            if not (self.groups_own_claims and is_reserved_for_group_of(claim, pod)):
                reserved_for = [*claim.status.reserved_for, self._user_of(pod, claim)]
                self._update_status(claim, replace(claim.status, reserved_for=reserved_for))

    def _user_of(self, pod: Pod, claim: ResourceClaim) -> ConsumerReference:
        """The consumer that the claim is reserved for: the pod, or the group that shares it."""
        for entry in pod.spec.resource_claims:
            with suppress(ClaimProblem):
                name, _ = claim_name(pod, entry)
                group = self._sharing_group(pod, entry)
                if name == claim.name and group is not None:
                    return reference_to_group(group)
        return reference_to(pod)

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
        if is_pod_group(user):
            group = self.api.get(PodGroup, f"{claim.namespace}/{user.name}")
            return group is not None and group.uid == user.uid
        if user.resource != "pods" or user.api_group:
            return True
        pod = self.api.get(Pod, f"{claim.namespace}/{user.name}")
        return pod is not None and pod.uid == user.uid and not _is_done(pod)

    def _delete_if_owner_is_done(self, key: str) -> None:
        claim = self._claim(key)
        owner = None if claim is None else claim.metadata.controller
        if claim is None or owner is None:
            return
        if owner.kind == "PodGroup":
            group = self.api.get(PodGroup, f"{claim.namespace}/{owner.name}")
            if group is None or group.uid != owner.uid:
                self._delete(key)
            return
        if owner.kind != "Pod":
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
        if owner is not None and owner.kind in ("Pod", "PodGroup"):
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
