"""Changes that somebody asks for, as the page and files write them."""

from __future__ import annotations

import msgspec


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object by its kind and key."""

    kind: str
    key: str


class NodesLike(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    like: str
    count: int = 1


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: `Deployment shop/web`.
    workload: str
    replicas: int


class RequestedChanges(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """One entry of the list of changes; empty parts change nothing."""

    config: str = ""
    objects: str = ""
    remove: list[Named] = []
    add_nodes: list[NodesLike] = []
    #: Nodes of a machine type, as `--nodes` has them: `3xm5.xlarge,zones=3`.
    nodes: str = ""
    #: Names of nodes, separated by commas: they take no more pods, and their pods look for other nodes.
    drain: str = ""
    #: A zone, or LABEL=VALUE: its nodes are gone, and their pods look for other nodes.
    lose: str = ""
    scale: Scale | None = None
