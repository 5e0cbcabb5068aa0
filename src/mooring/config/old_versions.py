"""Read v1beta2 and v1beta3 as v1, and say what changed.

What v1 lacks is left out with a note; the score weights of v1beta2 are kept (`default_plugins`). v1beta1
cannot be read: most of what it could say has another form in v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.config.document import Document
from mooring.config.field_errors import child
from mooring.config.removed_plugins import REPLACED_BY
from mooring.config.types import API_VERSION, GROUP

V1, V1BETA2, V1BETA3 = "v1", "v1beta2", "v1beta3"

#: Default plugins of v1beta2 and v1beta3 that NodeVolumeLimits covers.
_FOLDED = frozenset(("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"))
_GONE_FIELDS = ("healthzBindAddress", "metricsBindAddress")

_V1BETA1 = (
    f"apiVersion: {GROUP}/v1beta1 was removed in Kubernetes 1.23 and cannot be read; write {API_VERSION}."
    " In it, NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio are"
    " NodeResourcesFit with a scoringStrategy in its args, and the score weights of NodeAffinity (2),"
    " InterPodAffinity (2) and TaintToleration (3) are higher"
)


def to_v1(document: Document, *, notes: list[str], problems: list[str]) -> str:
    """Change a document of an older version to v1, in place. Returns the version that it had."""
    given = document.get("apiVersion")
    version = str(given).removeprefix(f"{GROUP}/") if isinstance(given, str) else ""
    if version == "v1beta1":
        problems.append(_V1BETA1)
        document["apiVersion"] = API_VERSION
        _rename_args(document, version)
        return V1
    if version not in (V1BETA2, V1BETA3):
        return V1
    document["apiVersion"] = API_VERSION
    notes.append(_note(version))
    _rename_args(document, version)
    _drop_gone_fields(document, version, notes)
    _check_profiles(document, version, notes, problems)
    return version


def _note(version: str) -> str:
    same = f"write {API_VERSION}; `mooring config view FILE -o yaml` converts it"
    if version == V1BETA3:
        return (
            f"apiVersion: {version} was removed in Kubernetes 1.29; it is read as v1, with the same"
            f" defaults; {same}"
        )
    return (
        f"apiVersion: {version} was removed in Kubernetes 1.28; its score weights are kept: 1 for"
        f" TaintToleration, NodeAffinity and InterPodAffinity, where v1 has 3, 2 and 2; {same}"
    )


def _rename_args(document: Document, version: str) -> None:
    for profile in _mappings(document.get("profiles")):
        for entry in _mappings(profile.get("pluginConfig")):
            args = entry.get("args")
            if isinstance(args, dict) and args.get("apiVersion") == f"{GROUP}/{version}":
                args["apiVersion"] = API_VERSION


def _drop_gone_fields(document: Document, version: str, notes: list[str]) -> None:
    if version == V1BETA2:
        for name in _GONE_FIELDS:
            if document.pop(name, None) is not None:
                notes.append(
                    f"{name}: v1 does not have it; left out, it does not affect scheduling"
                )


def _check_profiles(
    document: Document, version: str, notes: list[str], problems: list[str]
) -> None:
    folded: set[str] = set()
    for i, profile in enumerate(_all(document.get("profiles"))):
        path = f"profiles[{i}]"
        if profile.pop("percentageOfNodesToScore", None) is not None:
            problems.append(
                f"{child(path, 'percentageOfNodesToScore')}: unknown field in {version}; v1 has it"
            )
        plugins = profile.get("plugins")
        if isinstance(plugins, dict):
            if version == V1BETA2 and plugins.pop("multiPoint", None) is not None:
                notes.append(
                    f"{path}.plugins.multiPoint: kube-scheduler ignores it in {version}, so it is left out;"
                    f" write {API_VERSION} to use it"
                )
            folded |= _without_folded(plugins)
        configured = profile.get("pluginConfig")
        if isinstance(configured, list):
            profile["pluginConfig"] = [each for each in configured if _name(each) not in _FOLDED]
    notes += [f"{name}: left out; v1 has {REPLACED_BY[name]}" for name in sorted(folded)]


def _without_folded(plugins: dict[str, Any]) -> set[str]:
    """Remove the plugins that v1 folds into NodeVolumeLimits from every set; return the enabled ones."""
    found: set[str] = set()
    for plugin_set in plugins.values():
        if not isinstance(plugin_set, dict):
            continue
        for key in ("enabled", "disabled"):
            entries = plugin_set.get(key)
            if isinstance(entries, list):
                found |= {_name(each) for each in entries if key == "enabled"} & _FOLDED
                plugin_set[key] = [each for each in entries if _name(each) not in _FOLDED]
    return found


def _name(entry: object) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""


def _all(value: object) -> Iterator[dict[str, Any]]:
    """Every item, so that positions are right; what is not a mapping counts as an empty one."""
    if isinstance(value, list):
        yield from (each if isinstance(each, dict) else {} for each in value)


def _mappings(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in _all(value) if each)
