"""The metadata of Kubernetes objects, and the base classes of mooring's typed objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

import msgspec

from mooring.objects.cached_property import cached_property
from mooring.objects.empties import NO_ITEMS, NO_KEYS
from mooring.objects.quantity import ZERO, Quantity, parse_quantity

#: A resource list: resource name → quantity.
ResourceList = dict[str, Quantity]


class Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """A part of an object, with the fields that mooring reads. Decoding skips the others."""


class OwnerReference(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Part, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    labels: dict[str, str] = NO_KEYS
    annotations: dict[str, str] = NO_KEYS
    owner_references: list[OwnerReference] = NO_ITEMS
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""
    generation: int = 0
    finalizers: list[str] = NO_ITEMS

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class KubeObject(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, dict=True
):
    """A whole object. It never changes, so derived values are cached on it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @cached_property
    def key(self) -> str:
        """`namespace/name`, or the name alone for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    def stored_as(self, resource_version: str) -> Self:
        """This object as the API server returns it after a write."""
        metadata = msgspec.structs.replace(self.metadata, resource_version=resource_version)
        stored = msgspec.structs.replace(self, metadata=metadata)
        # No derived value depends on the resource version.
        stored.__dict__.update(self.__dict__)
        return stored

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


def decode_hook(kind: type, value: object) -> Any:
    """Tell msgspec how to read types that JSON does not have."""
    if kind is Quantity:
        return parse_quantity(value.strip()) if isinstance(value, str) else _quantity(value)
    raise NotImplementedError(f"no decoder for {kind.__name__}")


def encode_hook(value: object) -> Any:
    """Tell msgspec how to write these types."""
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"no encoder for {type(value).__name__}")


def canonical_hook(value: object) -> Any:
    """Like `encode_hook`, with quantities as the API server writes them: `1Gi` stays `1Gi`."""
    return value.canonical if isinstance(value, Quantity) else encode_hook(value)


def _quantity(value: object) -> Quantity:
    if isinstance(value, bool):
        raise ValueError(f"a quantity is a number or a string, not {str(value).lower()}")
    if isinstance(value, int | float):
        return parse_quantity(repr(value))
    if value is None:
        return ZERO
    raise ValueError(f"a quantity is a number or a string, not {type(value).__name__}")
