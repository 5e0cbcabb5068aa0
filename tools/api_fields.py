"""Write `src/mooring/objects/api_fields.json`: the names of the fields of the Kubernetes API.

mooring's own types have only the fields that it reads, so they cannot tell a misspelt field from one
that does not matter. The list is taken from the OpenAPI description that Kubernetes publishes with
each release, in its repository at `api/openapi-spec/swagger.json`:

    python tools/api_fields.py swagger.json

Only names are kept: for each type its fields, and for each field the type of its value, empty for
plain values and for maps with keys of the user's. The kinds are those of `mooring.objects.kinds`, in
each version that the description has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mooring.objects.kinds import KINDS

OUT = Path(__file__).parent.parent / "src/mooring/objects/api_fields.json"

_REFERENCE = "#/definitions/"


def main(path: str) -> None:
    definitions = json.loads(Path(path).read_text())["definitions"]
    wanted = {(kind.group, kind.name) for kind in KINDS}
    kinds: dict[str, str] = {}
    for name, definition in definitions.items():
        for gvk in definition.get("x-kubernetes-group-version-kind", ()):
            if (gvk["group"], gvk["kind"]) in wanted:
                group = f"{gvk['group']}/" if gvk["group"] else ""
                kinds[f"{group}{gvk['version']}/{gvk['kind']}"] = name
    types: dict[str, dict[str, str]] = {}
    waiting = sorted(kinds.values())
    while waiting:
        name = waiting.pop()
        if name in types:
            continue
        types[name] = {
            field: _type_of(value, definitions)
            for field, value in definitions[name].get("properties", {}).items()
        }
        waiting += [each for each in types[name].values() if each]
    short = _short_names(list(types))
    data = {
        "kinds": {kind: short[name] for kind, name in sorted(kinds.items())},
        "types": {
            short[name]: {field: short.get(each, "") for field, each in sorted(fields.items())}
            for name, fields in sorted(types.items(), key=lambda item: short[item[0]])
        },
    }
    OUT.write_text(_written(data))
    print(f"{OUT.name}: {len(kinds)} kinds, {len(types)} types")


def _type_of(value: dict[str, Any], definitions: dict[str, Any]) -> str:
    reference = value.get("$ref") or value.get("items", {}).get("$ref", "")
    name: str = reference.removeprefix(_REFERENCE)
    return name if definitions.get(name, {}).get("properties") else ""


def _short_names(names: list[str]) -> dict[str, str]:
    """`PodSpec` for io.k8s.api.core.v1.PodSpec, or `v1beta1.DeviceClass` where two would be alike."""

    def short(name: str) -> str:
        parts = name.split(".")
        tails = (".".join(parts[-n:]) for n in range(1, len(parts) + 1))
        return next(t for t in tails if sum(f".{each}".endswith(f".{t}") for each in names) == 1)

    return {name: short(name) for name in names}


def _written(data: dict[str, dict[str, Any]]) -> str:
    """One line a type, so that a change of release is easy to read."""
    parts = []
    for part, entries in data.items():
        lines = (
            f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in entries.items()
        )
        parts.append(f"{json.dumps(part)}:{{\n" + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main(sys.argv[1])
