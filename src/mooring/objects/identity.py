"""The namespace, name and UID of objects that do not say them."""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from mooring.objects.decoding import group_of
from mooring.objects.generated_names import NameMaker, generated_uid
from mooring.objects.kinds import CLUSTER_SCOPED
from mooring.objects.meta import KubeObject


def in_namespace(
    obj: KubeObject, default: str, cluster_scoped: Container[str] = CLUSTER_SCOPED
) -> KubeObject:
    """Put a namespaced object without a namespace into the default one."""
    namespace = "" if obj.kind in cluster_scoped else obj.namespace or default
    if namespace == obj.namespace:
        return obj
    return replace(obj, metadata=replace(obj.metadata, namespace=namespace))


def with_identity(obj: KubeObject, names: NameMaker) -> KubeObject:
    """Set a name, if it uses `generateName`, and a UID: the same on every run."""
    metadata = obj.metadata
    name = metadata.name or names.name(type(obj), metadata.namespace, metadata.generate_name)
    group = group_of(obj.api_version)
    uid = metadata.uid or generated_uid(group, obj.kind, metadata.namespace, name)
    if name == metadata.name and uid == metadata.uid:
        return obj
    return replace(obj, metadata=replace(metadata, name=name, uid=uid))
