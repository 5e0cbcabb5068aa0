"""Rules about one ResourceClaim: whose it is, who uses it, and whether its devices are ready."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from msgspec.structs import replace

from mooring.objects.devices import (
    CLAIM_FINALIZER,
    AllocatedDeviceStatus,
    ConsumerReference,
    DeviceAllocationResult,
    DeviceCondition,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
)
from mooring.objects.pod import Pod, PodResourceClaim
from mooring.objects.pod_groups import PodGroup

#: On a claim that the claim controller created from a template: the pod's name for it.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
#: On a claim that the claim controller created from a template: the pod group's name for it.
POD_GROUP_CLAIM_NAME = "resource.kubernetes.io/podgroup-claim-name"
#: On a claim that the scheduler created for extended resources: "true".
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"

#: How many pods may use a claim at the same time.
MOST_RESERVATIONS = 256

_PODS = "pods"
_POD_GROUPS = "podgroups"
_SCHEDULING = "scheduling.k8s.io"


class ClaimProblem(ValueError):
    """Why a pod cannot use one of its claims. The text is the reference's; users read it."""


def claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim for an entry of `spec.resourceClaims`, and whether the pod must own it.

    None if the entry needs no claim. Raises ClaimProblem.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is not None:
        for status in pod.status.resource_claim_statuses:
            if status.name == entry.name:
                return status.resource_claim_name, True
        raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')
    raise ClaimProblem(
        f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
    )


def check_usable(
    pod: Pod, claim: ResourceClaim, *, must_own: bool, groups_own: bool = False
) -> None:
    """Raises ClaimProblem if the claim is being deleted, or was created for another pod.

    `groups_own` says that pod groups may have claims, too.
    """
    if claim.terminating:
        raise ClaimProblem(f'resourceclaim "{claim.name}" is being deleted')
    if not must_own or is_owned_by(claim, pod):
        return
    owner = "Pod is not owner"
    if groups_own and pod.group_key:
        if is_owned_by_group_of(claim, pod):
            return
        owner = f"neither Pod nor PodGroup {pod.group_name} is the owner"
    raise ClaimProblem(f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({owner})")


def not_found(key: str) -> str:
    """The text of the reference for a claim that is missing."""
    return f'could not find ResourceClaim "{key}"'


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.uid


def is_owned_by_group_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for the pod's group, which has the name that the pod knows."""
    owner = claim.metadata.controller
    return (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.partition("/")[0] == _SCHEDULING
        and owner.name == pod.group_name
    )


def is_claim_of_group(entry: PodResourceClaim, group: PodGroup | None) -> bool:
    """Whether a pod's entry is one of its group: same name, same claim or template."""
    return group is not None and entry in group.spec.resource_claims


def is_extended_resource_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the scheduler created the claim for extended resources of this pod."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and any(
        owner.controller and owner.name == pod.name and owner.uid == pod.uid
        for owner in claim.metadata.owner_references
    )


# Reservations


def reference_to(pod: Pod) -> ConsumerReference:
    return ConsumerReference(resource=_PODS, name=pod.name, uid=pod.uid)


def reference_to_group(group: PodGroup) -> ConsumerReference:
    return ConsumerReference(
        api_group=_SCHEDULING, resource=_POD_GROUPS, name=group.name, uid=group.uid
    )


def is_pod_group(user: ConsumerReference) -> bool:
    return user.api_group == _SCHEDULING and user.resource == _POD_GROUPS


def is_reserved_for(claim: ResourceClaim, user: Pod | ConsumerReference) -> bool:
    return any(known.uid == user.uid for known in claim.status.reserved_for)


def is_reserved_for_group_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether every pod of the pod's group may use the claim."""
    return any(
        is_pod_group(user) and user.name == pod.group_name for user in claim.status.reserved_for
    )


def is_used_by_nobody_but(claim: ResourceClaim, pod: Pod) -> bool:
    return all(user.uid == pod.uid for user in claim.status.reserved_for) and (
        len(claim.status.reserved_for) <= 1
    )


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    finalizers = claim.metadata.finalizers
    if CLAIM_FINALIZER in finalizers:
        return claim
    return with_finalizers(claim, [*finalizers, CLAIM_FINALIZER])


def with_finalizers(claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def without_finalizer(finalizers: list[str]) -> list[str]:
    return [each for each in finalizers if each != CLAIM_FINALIZER]


# Binding conditions: a driver says when a device is ready for the pod


class BindingConditionFailed(ValueError):
    """A driver says that a device cannot be made ready."""


def tolerates_taint(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
        )
    )


def has_binding_conditions(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(
        result.binding_conditions for result in allocation.devices.results
    )


def is_ready(claim: ResourceClaim) -> bool:
    """Whether every device has all of its binding conditions. Raises BindingConditionFailed."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        device = _status_of(claim, result)
        if device is None:
            return False
        for kind in result.binding_failure_conditions:
            condition = _condition(device, kind)
            if condition is not None and condition.status == "True":
                quoted = json.dumps(condition.message, ensure_ascii=False)
                raise BindingConditionFailed(
                    f"device binding failed: claim={claim.name}, reason={condition.reason},"
                    f" message={quoted}"
                )
        for kind in result.binding_conditions:
            condition = _condition(device, kind)
            if condition is None or condition.status != "True":
                return False
    return True


def has_timed_out(claim: ResourceClaim, now: datetime, timeout_s: float) -> bool:
    """Whether the devices have had their time to get ready."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return has_binding_conditions(claim) and (
        allocation.allocation_timestamp + timedelta(seconds=timeout_s) < now
    )


def _status_of(
    claim: ResourceClaim, result: DeviceAllocationResult
) -> AllocatedDeviceStatus | None:
    for device in claim.status.devices:
        if (device.driver, device.pool, device.device) == (
            result.driver,
            result.pool,
            result.device,
        ):
            return device
    return None


def _condition(device: AllocatedDeviceStatus, kind: str) -> DeviceCondition | None:
    return next((each for each in device.conditions if each.type == kind), None)
