"""A case: what happens in a small cluster, and the pods that the plugin is asked about after each event.

Objects are manifests, so that a case can be printed, pasted into a file and made smaller field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mooring.errors import InputError
from mooring.objects.decoding import decode_object
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """An object comes or changes; or it goes."""

    manifest: Manifest
    gone: bool = False

    @property
    def title(self) -> str:
        name = f"{self.manifest['kind']} {self.manifest['metadata']['name']}"
        return f"{name} goes" if self.gone else f"{name} comes or changes"


@dataclass(frozen=True, slots=True)
class Case:
    """Events in order, and pods without a node."""

    events: tuple[Event, ...]
    pods: tuple[Manifest, ...]
    #: The seed that it was drawn from.
    seed: int = 0

    def to_yaml(self) -> str:
        """The case as documents; a comment says where an object goes, and which pods are asked about."""
        parts = []
        for event in self.events:
            note = f"# {event.title}\n" if event.gone else ""
            parts.append(note + dump(event.manifest))
        parts += [f"# a pod without a node\n{dump(pod)}" for pod in self.pods]
        return "---\n".join(parts)


@dataclass(frozen=True, slots=True)
class Pool:
    """Objects of the user that cases are drawn from, beside those that the kit makes up."""

    nodes: Sequence[Manifest] = ()
    pods: Sequence[Manifest] = ()
    #: Objects of other kinds, which are there from the start.
    others: Sequence[Manifest] = ()


def read_pool(file: Path) -> Pool:
    """The objects of a YAML or JSON file. Raises InputError."""
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError([f"{file}: cannot be read: {error.strerror or error}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise InputError([f"{file}: is not YAML: {problem}"]) from error
    return pool_of([each for each in documents if each is not None], where=str(file))


def pool_of(manifests: Sequence[Manifest], *, where: str = "objects") -> Pool:
    """Raises InputError if a manifest is not an object that mooring reads."""
    problems = []
    for number, manifest in enumerate(manifests, 1):
        try:
            _check_object(manifest)
        except ValueError as error:
            problems.append(f"{where}, document {number}: {error}")
    if problems:
        raise InputError(problems)
    return Pool(
        [each for each in manifests if each["kind"] == "Node"],
        [each for each in manifests if each["kind"] == "Pod"],
        [each for each in manifests if each["kind"] not in ("Node", "Pod")],
    )


def _check_object(manifest: object) -> None:
    """Raises ValueError."""
    metadata = manifest.get("metadata") if isinstance(manifest, Mapping) else None
    if not isinstance(manifest, Mapping) or not isinstance(metadata, Mapping):
        raise ValueError("this is no Kubernetes object: metadata is missing")
    if "name" not in metadata:
        raise ValueError("metadata.name: missing")
    decode_object(manifest)


def dump(manifest: Manifest) -> str:
    text: str = yaml.safe_dump(
        _filled(dict(manifest)),
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=100,
    )
    return text


def _filled(value: Any) -> Any:
    """Without empty fields, which say nothing."""
    if isinstance(value, dict):
        filled = {key: _filled(inner) for key, inner in value.items()}
        return {key: inner for key, inner in filled.items() if inner not in ({}, [], None)}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def decoded(manifest: Manifest) -> KubeObject:
    """Raises ValueError."""
    return decode_object(manifest)


def decoded_pod(manifest: Manifest) -> Pod:
    pod = decode_object(manifest)
    assert isinstance(pod, Pod)
    return pod
