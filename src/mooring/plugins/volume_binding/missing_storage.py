"""What a pod's claims lack, by name: a default class, a class, or the claim itself.

The scheduler says only that a claim is unbound or not found. Here the missing objects are found, and
added as one change: each of them is necessary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from mooring.objects.claim_warnings import lacks_class, needs_volume
from mooring.objects.claims import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    named_claims,
    reference_to,
)
from mooring.objects.defaults import DEFAULT_CLASS_ANNOTATIONS, Defaults
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import Quantity
from mooring.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from mooring.plugin import Listers
from mooring.plugin.changes import Change

#: The name and the provisioner of the classes that are added.
_DEFAULT_CLASS = "mooring-default"
_PROVISIONER = "mooring.dev/any-provisioner"
_SIZE = {"storage": Quantity(2**30)}


@dataclass(frozen=True, slots=True)
class AddStorage(Change):
    """Add the storage objects that a pod's claims lack."""

    kind: ClassVar[str] = "add-storage"
    #: Claims without a class, as `namespace/name`: there is no default class.
    classless: tuple[str, ...] = ()
    #: (class, claim) for the claims whose class does not exist.
    classes: tuple[tuple[str, str], ...] = ()
    #: Claims that do not exist, as `namespace/name`.
    claims: tuple[str, ...] = ()
    #: Whether there is a default class, which added claims would get.
    has_default: bool = False

    @property
    def size(self) -> float:
        return 0.5 * (bool(self.classless) + len(dict(self.classes)) + len(self.claims))

    @property
    def text(self) -> str:
        parts = []
        if self.classless:
            verb = "has" if len(self.classless) == 1 else "have"
            parts.append(
                f"add a default StorageClass: {_claims(self.classless)} {verb} no class and there is"
                " no default StorageClass"
            )
        for name in dict(self.classes):
            of_class = [claim for each, claim in self.classes if each == name]
            verb = "names" if len(of_class) == 1 else "name"
            parts.append(f"add the StorageClass {name}, which {_claims(of_class)} {verb}")
        if self.claims:
            beside = (
                "" if self.has_default else " with a class, as there is no default StorageClass"
            )
            parts.append(f"add the {_claims(self.claims)}{beside}")
        return ", and ".join(parts)

    def on_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A new default class is given to the claims that have none."""
        if claim.key not in self.classless:
            return claim
        return replace(claim, spec=replace(claim.spec, storage_class_name=_DEFAULT_CLASS))

    @property
    def changed_claims(self) -> tuple[str, ...]:
        return self.classless

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        """The classes wait for their pods. The claims have volumes that every node can use."""
        objects: list[KubeObject] = [_storage_class(name) for name in dict(self.classes)]
        if self.classless:
            default = _storage_class(_DEFAULT_CLASS)
            marked = {DEFAULT_CLASS_ANNOTATIONS[0]: "true"}
            objects.append(replace(default, metadata=replace(default.metadata, annotations=marked)))
        for key in self.claims:
            objects += _bound_claim(key)
        return objects


def missing_storage(listers: Listers, pod: Pod) -> AddStorage | None:
    """What the pod's claims lack; None if every claim exists and has a class or a volume."""
    classless: list[str] = []
    classes: list[tuple[str, str]] = []
    claims: list[str] = []
    has_default = Defaults(listers.all(StorageClass)).storage_class is not None
    for name in dict.fromkeys(named_claims(pod)):
        key = f"{pod.namespace}/{name}"
        claim = listers.get(PersistentVolumeClaim, key)
        if claim is None:
            claims.append(key)
        elif needs_volume(claim):
            class_name = class_of_claim(claim)
            if lacks_class(claim) and not has_default:
                classless.append(key)
            elif class_name and listers.get(StorageClass, class_name) is None:
                classes.append((class_name, key))
    if not (classless or classes or claims):
        return None
    return AddStorage(tuple(classless), tuple(classes), tuple(claims), has_default)


def _storage_class(name: str) -> StorageClass:
    return StorageClass(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        metadata=ObjectMeta(name=name),
        provisioner=_PROVISIONER,
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )


def _bound_claim(key: str) -> list[KubeObject]:
    namespace, _, name = key.partition("/")
    volume_name = f"pvc-{namespace}-{name}"
    claim = PersistentVolumeClaim(
        api_version="v1",
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=key, annotations={BIND_COMPLETED: "yes"}
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], volume_name=volume_name, volume_mode="Filesystem"
        ),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )
    volume = PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=volume_name, uid=volume_name),
        spec=PersistentVolumeSpec(
            capacity=_SIZE,
            access_modes=["ReadWriteOnce"],
            claim_ref=reference_to(claim),
            volume_mode="Filesystem",
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )
    return [volume, claim]


def _claims(names: Sequence[str]) -> str:
    return f"claim {names[0]}" if len(names) == 1 else f"claims {', '.join(names)}"
