"""References to objects: `deployment/web`, or `deployment/shop/web` with a namespace."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.errors import InputError
from mooring.objects.kinds import KINDS
from mooring.objects.manifests import DEFAULT_NAMESPACE
from mooring.objects.meta import KubeObject
from mooring.sim.api import SimApi
from mooring.sim.scenarios.fields import FieldError, described, did_you_mean

#: Every name that kubectl accepts for a kind → the kind.
_BY_NAME = {
    spelling: kind
    for kind in KINDS
    for spelling in (kind.name.lower(), kind.plural, kind.short)
    if spelling
}


@dataclass(frozen=True, slots=True)
class Reference:
    """An object by its kind and name."""

    kind: type[KubeObject]
    key: str

    def __str__(self) -> str:
        return f"{self.kind.__name__.lower()}/{self.key}"

    def among(self, api: SimApi) -> KubeObject:
        """Raises InputError if there is no such object."""
        found = api.get(self.kind, self.key)
        if found is None:
            known = [obj.key for obj in api.all(self.kind)]
            raise InputError([f"there is no {self}{did_you_mean(self.key, known)}"])
        return found


def parse_reference(value: object) -> Reference:
    """Raises FieldError."""
    kind_name, *parts = value.split("/") if isinstance(value, str) else ("",)
    if not kind_name or not 1 <= len(parts) <= 2 or not all(parts):
        raise FieldError(
            "must be KIND/NAME or KIND/NAMESPACE/NAME, such as deployment/shop/web,"
            f" not {described(value)}"
        )
    kind = _BY_NAME.get(kind_name.lower())
    if kind is None:
        raise FieldError(f"unknown kind {kind_name!r}{did_you_mean(kind_name, _BY_NAME)}")
    if not kind.namespaced:
        if len(parts) == 2:
            raise FieldError(f"a {kind.name} has no namespace; write {kind_name}/{parts[1]}")
        return Reference(kind.struct, parts[0])
    return Reference(
        kind.struct, "/".join(parts if len(parts) == 2 else [DEFAULT_NAMESPACE, *parts])
    )


def pod_key(value: object) -> str:
    """`namespace/name` of a pod; the namespace is optional in the value. Raises FieldError."""
    if not isinstance(value, str) or not value or value.count("/") > 1 or " " in value:
        raise FieldError(f"must be a pod's name or NAMESPACE/NAME, not {described(value)}")
    return value if "/" in value else f"{DEFAULT_NAMESPACE}/{value}"
