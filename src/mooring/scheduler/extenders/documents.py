"""What is said to an extender and what it says back, as JSON.

Field names are Go's, capitalised, and in answers their case does not matter. A field that is null or missing
counts as empty, and one that nobody asked for is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from mooring.cluster.node_info import NodeInfo
from mooring.framework.interface import Victims
from mooring.objects.meta import encode_hook
from mooring.objects.node import Node
from mooring.objects.pod import Pod

_JSON = msgspec.json.Encoder(enc_hook=encode_hook)


# Questions


class _Document(msgspec.Struct, frozen=True, rename="pascal"):
    """An absent part is written as null, as the reference does."""


class NodeList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]
    metadata: dict[str, str] = {}


class Args(_Document, frozen=True):
    """Asked of filter and of prioritize: nodes for an extender that knows none, else their names."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class BindingArgs(_Document, frozen=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class FullVictims(_Document, frozen=True):
    pods: list[Pod]
    violations: int = msgspec.field(name="NumPDBViolations")


class MetaPod(_Document, frozen=True):
    uid: str = msgspec.field(name="UID")


class MetaVictims(_Document, frozen=True):
    pods: list[MetaPod]
    violations: int = msgspec.field(name="NumPDBViolations")


class PreemptionArgs(_Document, frozen=True):
    """Victims by node name: whole pods for an extender that knows none, else their UIDs."""

    pod: Pod
    node_name_to_victims: dict[str, FullVictims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


def encode(document: Args | BindingArgs | PreemptionArgs) -> bytes:
    return _JSON.encode(document)


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, uids: bool) -> PreemptionArgs:
    if uids:
        meta = {
            name: MetaVictims([MetaPod(pod.uid) for pod in on_node.pods], on_node.violations)
            for name, on_node in victims.items()
        }
        return PreemptionArgs(pod, node_name_to_meta_victims=meta)
    full = {
        name: FullVictims(list(on_node.pods), on_node.violations)
        for name, on_node in victims.items()
    }
    return PreemptionArgs(pod, node_name_to_victims=full)


class NodeTexts:
    """Nodes as JSON, each written once: a node changes far less often than it is asked about."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[Node, msgspec.Raw]] = {}

    def of(self, nodes: Sequence[NodeInfo]) -> NodeList:
        if len(self._texts) > 2 * len(nodes):
            # Many of them may have left the cluster.
            self._texts.clear()
        return NodeList([self._text(node) for node in nodes])

    def _text(self, info: NodeInfo) -> msgspec.Raw:
        node = info.node
        assert node is not None, "only nodes that exist are asked about"
        known = self._texts.get(info.name)
        if known is None or known[0] is not node:
            known = self._texts[info.name] = (node, msgspec.Raw(_JSON.encode(node)))
        return known[1]


# Answers


@dataclass(frozen=True, slots=True)
class FilterResult:
    #: The names of the nodes that stay, as whole nodes or as names; None if not given in that form.
    nodes: list[str] | None = None
    node_names: list[str] | None = None
    #: Node name → why not there; and why not there whichever pods are evicted.
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class MetaVictimsResult:
    uids: tuple[str, ...] = ()
    violations: int = 0


def filter_result(text: bytes) -> FilterResult:
    """Raises ValueError or RecursionError, as all of these do."""
    given = _fields(text)
    nodes, names = given.get("nodes"), given.get("nodenames")
    return FilterResult(
        nodes=None if nodes is None else _names(_NODES.decode(nodes)),
        node_names=None if names is None else [name or "" for name in _STRINGS.decode(names)],
        failed=_texts(given.get("failednodes")),
        failed_and_unresolvable=_texts(given.get("failedandunresolvablenodes")),
        error=_text(given.get("error")),
    )


def host_scores(text: bytes) -> dict[str, int]:
    """Host → score; a host that is named more than once gets the sum."""
    scores: dict[str, int] = {}
    for entry in _RAWS.decode(text) or ():
        given = _fields(entry)
        host = _text(given.get("host"))
        scores[host] = scores.get(host, 0) + _number(given.get("score"))
    return scores


def binding_error(text: bytes) -> str:
    return _text(_fields(text).get("error"))


def victims_result(text: bytes) -> dict[str, MetaVictimsResult]:
    given = _fields(text).get("nodenametometavictims")
    entries = {} if given is None else _RAW_MAP.decode(given) or {}
    return {name: _meta_victims(entry) for name, entry in entries.items()}


def _meta_victims(text: msgspec.Raw) -> MetaVictimsResult:
    given = _fields(text)
    pods = given.get("pods")
    return MetaVictimsResult(
        uids=tuple(
            _text(_fields(pod).get("uid")) for pod in (() if pods is None else _RAWS.decode(pods))
        ),
        violations=_number(given.get("numpdbviolations")),
    )


class _Meta(msgspec.Struct):
    name: str | None = None


class _NodeItem(msgspec.Struct):
    metadata: _Meta | None = None


class _Nodes(msgspec.Struct):
    items: list[_NodeItem | None] | None = None


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_RAW_MAP = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw] | None)
_NODES = msgspec.json.Decoder(_Nodes)
_STRINGS = msgspec.json.Decoder(list[str | None])
_STRING_MAP = msgspec.json.Decoder(dict[str, str | None])
_STRING = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(_Int64)
_NULL = msgspec.Raw(b"null")


def _fields(text: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The fields of an object by lower-case name, without those that are null."""
    given = _RAW_MAP.decode(text) or {}
    return {name.lower(): value for name, value in given.items() if value != _NULL}


def _names(nodes: _Nodes) -> list[str]:
    metas = (item.metadata if item is not None else None for item in nodes.items or ())
    return [(meta.name if meta is not None else None) or "" for meta in metas]


def _texts(text: msgspec.Raw | None) -> Mapping[str, str]:
    if text is None:
        return {}
    return {name: message or "" for name, message in _STRING_MAP.decode(text).items()}


def _text(text: msgspec.Raw | None) -> str:
    return "" if text is None else _STRING.decode(text)


def _number(text: msgspec.Raw | None) -> int:
    return 0 if text is None else _NUMBER.decode(text)
