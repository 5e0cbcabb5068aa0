"""Write a configuration as plain data, for YAML or JSON.

kube-scheduler can read the result, and reading it back gives the same configuration. Defaults are
written, except where v1 itself omits empty values. Feature gates are written if any is set, which
kube-scheduler cannot read.
"""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import msgspec

from mooring.config.args import PluginArgs
from mooring.config.durations import Duration
from mooring.config.types import API_VERSION, KIND, KubeSchedulerConfiguration


def write_config(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, **_fields(config)}


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return {
        field.encode_name: _plain(getattr(struct, field.name))
        for field in msgspec.structs.fields(struct)
        if not _omitted(struct, field)
    }


def _omitted(struct: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    """Whether to omit a field: None, and an empty default.

    An empty list is written if it is not the default, because it then differs from a missing one.
    """
    value = getattr(struct, field.name)
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if value is None or value != default:
        return value is None
    return struct.__struct_config__.omit_defaults or value in ((), {})


def _plain(value: Any) -> Any:
    match value:
        case PluginArgs():
            return {"apiVersion": API_VERSION, "kind": type(value).__name__, **_fields(value)}
        case msgspec.Struct():
            return _fields(value)
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return deepcopy(value)
        case Duration():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    return value
