"""A list of changes as a file: what the page exports and `--what-if` reads.

changes:
- drain: node-1
- scale: {workload: Deployment shop/web, replicas: 9}
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mooring.errors import InputError
from mooring.web.requested_changes import RequestedChanges


class ChangesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    changes: list[RequestedChanges]


def read_changes(path: Path) -> list[RequestedChanges]:
    """Raises InputError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError([f"{path}: cannot be read: {why}"]) from error
    try:
        found = msgspec.convert(yaml.load(text, Loader=yaml.CSafeLoader), ChangesFile)
    except yaml.YAMLError as error:
        raise InputError([f"{path}: is not YAML: {' '.join(str(error).split())}"]) from error
    except msgspec.ValidationError as error:
        raise InputError([f"{path}: {error}"]) from error
    if not found.changes:
        raise InputError([f"{path}: contains no changes"])
    return found.changes


def changes_text(changes: Iterable[RequestedChanges]) -> str:
    data = {"changes": [msgspec.to_builtins(each) for each in changes]}
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Dumper(yaml.SafeDumper):
    """Manifests and configurations in the file stay readable: texts of several lines are blocks."""

    def represent_str(self, data: str) -> Any:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
