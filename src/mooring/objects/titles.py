"""How messages name objects."""

from __future__ import annotations

from typing import Any

from mooring.objects.kinds import CLUSTER_SCOPED
from mooring.objects.meta import KubeObject

DEFAULT_NAMESPACE = "default"

_LONGEST_LINE = 1000


def title(obj: KubeObject) -> str:
    """`Pod shop/web-0`."""
    key = obj.key if obj.name else obj.metadata.generate_name
    return f"{obj.kind} {key}" if key else obj.kind


def raw_title(kind: str, body: dict[str, Any]) -> str:
    """As `title`, of an object that is not decoded."""
    name = raw_text(body, "name") or raw_text(body, "generateName")
    if not name:
        return kind
    if kind in CLUSTER_SCOPED:
        return f"{kind} {name}"
    return f"{kind} {raw_text(body, 'namespace') or DEFAULT_NAMESPACE}/{name}"


def raw_text(body: dict[str, Any], name: str) -> str:
    """A field of the metadata; empty if it is no text."""
    metadata = body.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def one_line(text: str) -> str:
    """Names and keys may hold any text of any length: make it one short line."""
    line = "".join(
        each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST_LINE]
    )
    return line if len(text) <= _LONGEST_LINE else f"{line}…"
