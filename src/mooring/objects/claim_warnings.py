"""Claims that nothing will ever give a volume: no such class, claim or volume, or no node for the class.

The pods that use them stay pending, and the scheduler's message does not say what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.objects.claims import (
    CLASS_ANNOTATION,
    allows_topology,
    bound_to,
    class_of_claim,
    class_of_volume,
    fully_bound,
    misfit,
    misfit_by_name,
    named_claims,
    selects_volume,
)
from mooring.objects.defaults import Defaults
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

_MOST_NAMES = 5


def lacks_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim names no class, not even "", and so waits for a default class."""
    return (
        claim.spec.storage_class_name is None and CLASS_ANNOTATION not in claim.metadata.annotations
    )


def needs_volume(claim: PersistentVolumeClaim) -> bool:
    return not (fully_bound(claim) or claim.spec.volume_name or claim.terminating)


def claim_warnings(
    objects: Sequence[KubeObject], *, around: Iterable[KubeObject] = ()
) -> Iterator[str]:
    """A line for each thing that is missing. `around` is the rest of the cluster."""
    cluster = [*objects, *around]
    claims = [obj for obj in objects if isinstance(obj, PersistentVolumeClaim)]
    volumes: dict[str, list[PersistentVolume]] = {}
    for obj in cluster:
        if isinstance(obj, PersistentVolume):
            volumes.setdefault(class_of_volume(obj), []).append(obj)
    open_claims = []
    for claim in filter(needs_volume, claims):
        of_class = volumes.get(class_of_claim(claim), [])
        volume = next((each for each in of_class if _could_bind(each, claim)), None)
        if volume is None:
            open_claims.append(claim)
        else:
            # A volume is for one claim.
            of_class.remove(volume)
    yield from _without_their_volume(claims, cluster)
    yield from _without_class(open_claims, cluster)
    yield from _without_their_class(open_claims, cluster)
    yield from _without_nodes(open_claims, cluster)
    yield from _missing(objects, cluster)


def _without_their_volume(
    claims: Sequence[PersistentVolumeClaim], cluster: Sequence[KubeObject]
) -> Iterator[str]:
    named = [each for each in claims if each.spec.volume_name]
    unbound = [each for each in named if not (fully_bound(each) or each.terminating)]
    if not unbound:
        return
    volumes = {obj.name: obj for obj in cluster if isinstance(obj, PersistentVolume)}
    for claim in unbound:
        name = claim.spec.volume_name
        names = f"claim {claim.key} names the PersistentVolume {name!r}, which"
        volume = volumes.get(name)
        if volume is None:
            yield f"{names} does not exist; add it"
        elif problem := misfit_by_name(volume, claim):
            yield f"{names} it cannot get: {problem}"


def _without_class(
    claims: Sequence[PersistentVolumeClaim], cluster: Sequence[KubeObject]
) -> Iterator[str]:
    names = [claim.key for claim in claims if lacks_class(claim)]
    if names and Defaults(cluster).storage_class is None:
        verb = "has" if len(names) == 1 else "have"
        yield f"{_claims(names)} {verb} no class and there is no default StorageClass; add one"


def _without_their_class(
    claims: Sequence[PersistentVolumeClaim], cluster: Sequence[KubeObject]
) -> Iterator[str]:
    known = {obj.name for obj in cluster if isinstance(obj, StorageClass)}
    by_class: dict[str, list[str]] = {}
    for claim in claims:
        name = class_of_claim(claim)
        if name and name not in known:
            by_class.setdefault(name, []).append(claim.key)
    for name, keys in by_class.items():
        verb = "names" if len(keys) == 1 else "name"
        yield f"{_claims(keys)} {verb} the StorageClass {name!r}, which does not exist; add it"


def _without_nodes(
    claims: Sequence[PersistentVolumeClaim], cluster: Sequence[KubeObject]
) -> Iterator[str]:
    """Classes that allow none of the nodes: for another zone, or by a label that a CSI driver sets."""
    nodes = [obj for obj in cluster if isinstance(obj, Node)]
    if not nodes:
        return
    used = {class_of_claim(claim) for claim in claims}
    for obj in cluster:
        if not isinstance(obj, StorageClass) or obj.name not in used:
            continue
        if not any(allows_topology(obj, node.labels) for node in nodes):
            yield (
                f"StorageClass {obj.name} allows only nodes with the label {_topologies(obj)}, and no "
                "node has it; add it to the nodes, or change allowedTopologies"
            )


def _topologies(storage_class: StorageClass) -> str:
    """`topology.kubernetes.io/zone=a|b`."""
    return " or ".join(
        " and ".join(f"{each.key}={'|'.join(each.values)}" for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _missing(objects: Sequence[KubeObject], cluster: Sequence[KubeObject]) -> Iterator[str]:
    existing = {obj.key for obj in cluster if isinstance(obj, PersistentVolumeClaim)}
    wanted = {
        f"{pod.namespace}/{name}": None
        for pod in objects
        if isinstance(pod, Pod) and not pod.node_name and not pod.finished
        for name in named_claims(pod)
    }
    names = [key for key in wanted if key not in existing]
    if names:
        one = len(names) == 1
        does, it = ("does", "it") if one else ("do", "them")
        yield f"{_claims(names)}, which pods name, {does} not exist; add {it}"


def _could_bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if bound_to(volume, claim):
        return not misfit(volume, claim)
    free = volume.spec.claim_ref is None
    return free and not misfit(volume, claim) and selects_volume(claim, volume)


def _claims(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
    return f"claim {shown}" if len(names) == 1 else f"claims {shown}"
