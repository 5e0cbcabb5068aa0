"""A real cluster written down for a simulation: everything that decisions depend on, and nothing else.

What is written are mooring's own types, which hold the fields that a scheduler reads: so environment,
commands, image pull secrets and whatever else a pod carries never get there. Secrets and ConfigMaps are not
even asked for. Annotations are left out but for the few that rules read.

Controllers are there for the selectors that spreading is deduced from. How many pods they want is set to the
number that exist, or a simulation would make the missing ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.errors import Forbidden, NotFound
from mooring.live.client import ApiClient
from mooring.live.connection import Connection
from mooring.live.decoding import decode_object, decode_page
from mooring.objects.kinds import (
    KINDS,
    Kind,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.objects.meta import KubeObject, ObjectMeta, encode_hook
from mooring.objects.node import Node
from mooring.objects.pod import Pod

_PAGE_SIZE = 500

#: Everything that a simulation looks at. Not Deployments, DaemonSets and Jobs: their pods are there.
#: Admission's kinds are for pods that files add.
NEEDED = tuple(kind for kind in KINDS if kind.listed or kind.always_watched or kind.admits)

#: The annotations that rules read.
_NEEDED_ANNOTATION = re.compile(
    r"(mooring\.dev/|pv\.kubernetes\.io/|volume\.(beta\.)?kubernetes\.io/|storageclass\."
    r"|scheduler\.alpha\.kubernetes\.io/|batch\.kubernetes\.io/job-completion-index)"
    r"|storage\.alpha\.kubernetes\.io/migrated-plugins"
)

#: They make pods for as long as there are fewer than they want.
_REPLICATED = (ReplicaSet, ReplicationController, StatefulSet)


async def read_from(
    connect: Callable[[], Awaitable[Connection]], kinds: Iterable[Kind] = ()
) -> tuple[list[KubeObject], list[str]]:
    """As `read_cluster`, over a connection that is made for it."""
    async with ApiClient(await connect()) as client:
        return await read_cluster(client, kinds)


async def read_cluster(
    client: ApiClient, kinds: Iterable[Kind] = ()
) -> tuple[list[KubeObject], list[str]]:
    """Every object, and a line for each kind that could not be had. Raises ApiError.

    `kinds` are those that plugins declare.
    """
    objects: list[KubeObject] = []
    left_out: list[str] = []
    for kind in (*NEEDED, *kinds):
        try:
            objects += [obj async for obj in _listed(client, kind)]
        except NotFound:
            if kind.gate:
                # Few clusters have it, and this one does not use it.
                continue
            left_out.append(f"{kind.plural} are not included: this API server does not serve them")
        except Forbidden as error:
            if kind.struct in (Node, Pod):
                raise
            left_out.append(f"{kind.plural} are not included: cannot read them: {error}")
    return stripped(objects), left_out


async def _listed(client: ApiClient, kind: Kind) -> AsyncIterator[KubeObject]:
    params = {"limit": str(_PAGE_SIZE)}
    if kind.field_selector:
        params["fieldSelector"] = kind.field_selector
    while True:
        page = decode_page(await client.request("GET", kind.path, params=params))
        for text in page.items or ():
            yield decode_object(text, kind)
        if not page.metadata.next_page:
            return
        params["continue"] = page.metadata.next_page


def stripped(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects without private data; controllers want as many pods as exist."""
    known = list(objects)
    owned = Counter(
        owner.uid
        for obj in known
        if isinstance(obj, Pod) and (owner := obj.metadata.controller) is not None
    )
    return [_stripped(obj, owned) for obj in known]


def to_data(objects: Iterable[KubeObject]) -> dict[str, Any]:
    """A List, as kubectl writes one."""
    items = [msgspec.to_builtins(obj, enc_hook=encode_hook, str_keys=True) for obj in objects]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _stripped(obj: KubeObject, owned: Mapping[str, int]) -> KubeObject:
    obj = replace(obj, metadata=_metadata(obj.metadata))
    if isinstance(obj, _REPLICATED):
        wanted = owned.get(obj.uid, 0)
        return replace(
            obj, spec=replace(obj.spec, replicas=wanted, template=_template(obj.spec.template))
        )
    if isinstance(obj, Pod):
        return _pod(obj)
    return obj


def _metadata(metadata: ObjectMeta) -> ObjectMeta:
    needed = {k: v for k, v in metadata.annotations.items() if _NEEDED_ANNOTATION.match(k)}
    return replace(metadata, annotations=needed, resource_version="")


def _template(template: PodTemplate | None) -> PodTemplate | None:
    """Makes no pods here, but a controller without one is not valid."""
    if template is None:
        return None
    return replace(template, metadata=_metadata(template.metadata))


def _pod(pod: Pod) -> Pod:
    """Messages of conditions may quote anything; rules read none of them."""
    conditions = [replace(known, message="") for known in pod.status.conditions]
    return replace(pod, status=replace(pod.status, conditions=conditions))


def counts(objects: Iterable[KubeObject]) -> dict[str, int]:
    return dict(Counter(type(obj).__name__ for obj in objects))
