"""Changes that could make a pod fit, as values: changes of the pod, of a node, of the cluster.

A change has a text, a size (to rank answers), and methods that apply it to objects. Sizes are a matter of
judgement; `docs/explain.md` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from mooring.objects.devices import ResourceClaim, ResourceClaimTemplate
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import (
    Pod,
)
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.objects.selectors import SelectorRequirement
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.taints import Taint

_BINARY = (("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


@dataclass(frozen=True, slots=True)
class Change:
    """One change. The base class changes nothing."""

    #: A word for programs.
    kind: ClassVar[str] = ""

    @property
    def size(self) -> float:
        """How large the change is; smaller is better."""
        return 1.0

    @property
    def text(self) -> str:
        """What to do; it continues "would fit if you …"."""
        return ""

    @property
    def node_name(self) -> str:
        """The node that it changes; "" if none."""
        return ""

    @property
    def removed_pods(self) -> tuple[str, ...]:
        """The pods that leave, as `namespace/name`."""
        return ()

    def on_pod(self, pod: Pod) -> Pod:
        return pod

    def on_node(self, node: Node) -> Node:
        """For the node that it names."""
        return node

    @property
    def changed_claims(self) -> tuple[str, ...]:
        """The claims that it changes, as `namespace/name`."""
        return ()

    def on_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return claim

    @property
    def resource_claims(self) -> tuple[str, ...]:
        """The claims for devices that it changes, as `namespace/name`."""
        return ()

    def on_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return claim

    def on_claim_template(self, template: ResourceClaimTemplate) -> ResourceClaimTemplate:
        return template

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        """The objects to add. `pods` has the pods of each node, by its name."""
        return []

    def to_data(self) -> dict[str, Any]:
        details = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"kind": self.kind, "text": self.text, "size": round(self.size, 4), **details}


def spelled(resource: str, amount: int) -> str:
    """The amount as people write it in YAML, exactly: 350m and 9.35 of cpu, 3Gi of memory."""
    if resource == CPU:
        cores, milli = divmod(amount, 1000)
        if not cores:
            return f"{milli}m" if milli else "0"
        return f"{cores}.{milli:03}".rstrip("0").rstrip(".")
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, bits in _BINARY:
            if amount and amount % 2**bits == 0:
                return f"{amount >> bits}{suffix}"
    return str(amount)


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def requirement_text(line: SelectorRequirement) -> str:
    """A line of a selector, for people."""
    values = f" ({', '.join(line.values)})" if line.values else ""
    return f"{line.key} {line.operator}{values}"


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
