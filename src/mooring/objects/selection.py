"""Choose objects by their labels."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.errors import InputError
from mooring.objects.documents import Document
from mooring.objects.kinds import CLUSTER_SCOPED
from mooring.objects.selector_text import parse_selector
from mooring.objects.selectors import Selector


def selector_of(text: str) -> Selector | None:
    """None without a text. Raises InputError."""
    try:
        return parse_selector(text) if text.strip() else None
    except ValueError as error:
        raise InputError([f"--selector: {error}"]) from error


def is_selected(document: Document, selector: Selector) -> bool:
    """Objects without a namespace, such as nodes, are always selected."""
    if document.kind in CLUSTER_SCOPED:
        return True
    try:
        if isinstance(document.body, dict):
            found = msgspec.convert(document.body, _Labelled)
        else:
            found = msgspec.json.decode(document.body, type=_Labelled)
    except msgspec.ValidationError:
        return True
    labels = (found.metadata.labels if found.metadata is not None else None) or {}
    return selector.matches({key: str(value) for key, value in labels.items()})


class _Metadata(msgspec.Struct):
    labels: dict[str, Any] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata | None = None
