"""Rules about one PersistentVolumeClaim, PersistentVolume or StorageClass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.objects.pod import Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.selectors import compile_requirement, compile_selector
from mooring.objects.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    Volume,
)

#: Annotations with which the PV controller, provisioners and schedulers communicate.
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
#: The provisioner of classes whose volumes are created by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_STORAGE = "storage"
_FILESYSTEM = "Filesystem"


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """The reference to a claim that its volume holds."""
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )


# The messages of the reference's listers and assume caches if an object is not found.


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def no_binding_mode(class_name: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{class_name}"'


# A pod's volumes


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim of a pod's volume: one that the volume names, or one created for the volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def named_claims(pod: Pod) -> Iterator[str]:
    """The claims that the pod names, without those of ephemeral volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def names_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    return pod.namespace == claim.namespace and claim.name in named_claims(pod)


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """As `names_claim`, including the claims of ephemeral volumes."""
    return pod.namespace == claim.namespace and any(
        claim_name(pod, volume) == claim.name for volume in pod.spec.volumes
    )


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why this claim cannot be that of an ephemeral volume of the pod."""
    owner = claim.metadata.controller
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


# Claims


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The class in the annotation, even if it is empty; otherwise that in the spec."""
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the PV controller has completed the binding, whatever the claim's phase."""
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """The storage that the claim requests; 0 if it does not say."""
    return claim.spec.resources.requests.get(_STORAGE, ZERO)


def requests_storage(claim: PersistentVolumeClaim) -> bool:
    return _STORAGE in claim.spec.resources.requests


# Volumes


def class_of_volume(volume: PersistentVolume) -> str:
    annotated = volume.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def storage_capacity(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get(_STORAGE, ZERO)


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume refers to the claim; the reference may leave out the UID."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and ref.name == claim.name
        and ref.namespace == claim.namespace
        and ref.uid in ("", claim.uid)
    )


def is_accessible_from(volume: PersistentVolume, node_labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels can use the volume.

    Terms are matched against a node without a name, so requirements on the name are skipped.
    """
    terms = volume.node_terms
    return terms is None or any(term.matches(node_labels, "") for term in terms)


def offers_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume has every access mode that the claim requests."""
    return all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)


def same_volume_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_mode or _FILESYSTEM) == (claim.spec.volume_mode or _FILESYSTEM)


def same_attributes_class(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_attributes_class_name or "") == (
        claim.spec.volume_attributes_class_name or ""
    )


def selects_volume(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the claim's selector, if it has one, picks the volume; a malformed one picks none."""
    if claim.spec.selector is None:
        return True
    try:
        return compile_selector(claim.spec.selector).matches(volume.labels)
    except ValueError:
        return False


def misfit(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """What keeps the PV controller from giving the claim this volume, whatever their classes; or ""."""
    if volume.terminating:
        return "it is being deleted"
    if requested_storage(claim).exceeds(storage_capacity(volume)):
        return "it is smaller than the claim requests"
    if not same_attributes_class(volume, claim):
        return "it is of another volume attributes class"
    if not same_volume_mode(volume, claim):
        return "it has another volume mode"
    if not offers_modes(volume, claim):
        return "it does not have every access mode of the claim"
    return ""


def misfit_by_name(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """As `misfit`, for the volume that the claim's volumeName is.

    If the volume names the claim, too, nothing else is asked, as in the PV controller.
    """
    if bound_to(volume, claim):
        return ""
    if volume.spec.claim_ref is not None:
        return "it is reserved for another claim"
    if class_of_volume(volume) != class_of_claim(claim):
        return "it is of another storage class"
    return misfit(volume, claim)


# Classes


def waits_for_consumer(storage_class: StorageClass) -> bool:
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def provisions(storage_class: StorageClass) -> bool:
    """Whether the class has a provisioner."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def allows_topology(storage_class: StorageClass, node_labels: Mapping[str, str]) -> bool:
    """Whether the class allows volumes for a node with these labels; without terms, it does."""
    terms = storage_class.allowed_topologies
    return not terms or any(_topology_matches(term, node_labels) for term in terms)


def _topology_matches(term: TopologySelectorTerm, labels: Mapping[str, str]) -> bool:
    """A term that is empty or malformed matches nothing."""
    lines = term.match_label_expressions
    try:
        requirements = [compile_requirement(line.key, "In", tuple(line.values)) for line in lines]
    except ValueError:
        return False
    return bool(requirements) and all(each.matches(labels) for each in requirements)
