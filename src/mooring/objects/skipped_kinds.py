"""What the kinds that mooring does not read mean for its answer.

Some have no effect on scheduling; some shape pods, so the answer may be off; some make pods that are
missing from the answer. Well-known kinds are in `skipped_kinds.toml`. An unknown kind is judged by the
fields of its objects.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

CORE = "core"


class Effect(StrEnum):
    """The values are those of JSON output."""

    NONE = "none"
    SHAPES_PODS = "shapesPods"
    MAKES_PODS = "makesPods"


#: In the order of what users should know first.
MEANINGS = {
    Effect.MAKES_PODS: "make pods that are missing here",
    Effect.SHAPES_PODS: "shape pods, so the answer may be off",
    Effect.NONE: "no effect on scheduling",
}

_TABLES = {"none": Effect.NONE, "shapes": Effect.SHAPES_PODS, "makes": Effect.MAKES_PODS}

#: A custom resource with one of these fields runs something.
_FIELDS_OF_MAKERS = frozenset(
    {
        "affinity",
        "containers",
        "image",
        "imagePullSecrets",
        "instances",
        "nodeSelector",
        "podAnnotations",
        "podLabels",
        "podMetadata",
        "podSecurityContext",
        "podSpec",
        "podTemplate",
        "podTemplateSpec",
        "replicaCount",
        "replicas",
        "tolerations",
        "topologySpreadConstraints",
        "volumeClaimTemplate",
        "volumeClaimTemplates",
    }
)
_AMOUNTS = frozenset({"limits", "requests"})
_DEEPEST = 12
#: The body of an object of which nothing is known.
_UNKNOWN: Mapping[str, Any] = {"spec": {"replicas": 1}}


def effect_of(group: str, kind: str, body: Mapping[str, Any]) -> Effect:
    known = _known().get((group or CORE, kind)) or _known().get((group or CORE, "*"))
    if known is not None:
        return known
    return Effect.MAKES_PODS if has_fields_of_makers(body.get("spec")) else Effect.NONE


def has_no_effect(api_version: str, kind: str) -> bool:
    """Whether the kind is known to have no effect on scheduling."""
    group, slash, _ = api_version.rpartition("/")
    return effect_of(group if slash else "", kind, _UNKNOWN) is Effect.NONE


def has_fields_of_makers(value: Any, depth: int = 0) -> bool:
    """Whether there is a part of a pod, a count of replicas, or a rule about nodes, somewhere."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, list):
        return any(has_fields_of_makers(each, depth + 1) for each in value)
    if not isinstance(value, Mapping):
        return False
    return (
        not _FIELDS_OF_MAKERS.isdisjoint(value)
        or _has_amounts(value.get("resources"))
        or any(has_fields_of_makers(each, depth + 1) for each in value.values())
    )


def _has_amounts(resources: Any) -> bool:
    """Whether these are the resources of a container, or of a claim, and not a list of things."""
    return isinstance(resources, Mapping) and not _AMOUNTS.isdisjoint(resources)


@cache
def _known() -> dict[tuple[str, str], Effect]:
    text = (resources.files("mooring.objects") / "skipped_kinds.toml").read_text()
    return dict(_entries(tomllib.loads(text)))


def _entries(tables: dict[str, dict[str, list[str]]]) -> Iterator[tuple[tuple[str, str], Effect]]:
    for table, groups in tables.items():
        for group, kinds in groups.items():
            for kind in kinds:
                yield (group, kind), _TABLES[table]
