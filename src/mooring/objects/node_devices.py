"""The slices of one node, copied for another node that has the same devices."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.objects.devices import ResourceSlice


def slices_like(slices: Iterable[ResourceSlice], like: str, name: str) -> list[ResourceSlice]:
    """The slices that node `like` alone has, as the driver would publish them for node `name`."""
    return [_copy(each, like, name) for each in slices if each.spec.node_name == like]


def _copy(piece: ResourceSlice, like: str, name: str) -> ResourceSlice:
    named = _renamed(piece.name, like, name)
    pool = replace(piece.spec.pool, name=_renamed(piece.spec.pool.name, like, name))
    return replace(
        piece,
        metadata=replace(piece.metadata, name=named, uid=named, owner_references=[]),
        spec=replace(piece.spec, node_name=name, pool=pool),
    )


def _renamed(text: str, like: str, name: str) -> str:
    """Names of slices and pools contain the name of their node, or get it at their end."""
    return text.replace(like, name) if like in text else f"{text}-{name}"
