"""What if: derive the input of a new run from another run and the user's changes, and check it.

Texts are read like files, and configurations are built as for a run.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mooring.config import KubeSchedulerConfiguration, default_config, load_config, write_config
from mooring.errors import InputError
from mooring.explain.counterfactuals import Counterfactual
from mooring.explain.settled import unbound
from mooring.framework.changes import AddNodes, apply_changes
from mooring.objects.documents import STDIN, read_documents
from mooring.objects.findings import Findings
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import KubeObject, encode_hook
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.policies import ResourceQuota
from mooring.sim.simulation import SimOptions, Simulation
from mooring.web.run_spec import RunSpec

#: A typing error must not use up all memory.
MOST_NODES = 10_000
_MOST_SENTENCES = 20
#: The fields at the top of a manifest.
_FIRST = ("apiVersion", "kind", "metadata")


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object by its kind and key."""

    kind: str
    key: str


class NodesLike(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    like: str
    count: int = 1


class RequestedChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The requested changes; empty parts change nothing."""

    config: str = ""
    objects: str = ""
    remove: list[Named] = []
    add_nodes: list[NodesLike] = []


@dataclass(frozen=True, slots=True)
class Applied:
    """A counterfactual to apply: the pod and the changes."""

    pod: str
    answer: Counterfactual


@dataclass(frozen=True, slots=True)
class Outcome:
    """The new run, and its changes as sentences."""

    run_spec: RunSpec
    changes: tuple[str, ...]


def apply(run_spec: RunSpec, what_if: RequestedChanges, counterfactual: Applied | None) -> Outcome:
    """Raises InputError and ConfigError; the first word of a problem names the part."""
    sentences: list[str] = []
    objects: Sequence[KubeObject] = run_spec.objects
    if counterfactual is not None:
        _check_still_there(objects, counterfactual)
        objects = apply_changes(objects, counterfactual.pod, counterfactual.answer.changes)
        sentences.append(f"{counterfactual.answer.text} (for {counterfactual.pod})")
    for each in what_if.remove:
        objects = _without(objects, each)
        sentences.append(f"remove {each.kind.lower()} {each.key}")
    if what_if.objects.strip():
        found = read_beside(what_if.objects, objects)
        objects = list(_merged(objects, found))
        sentences += found_sentences(found, run_spec.objects)
    for wanted in what_if.add_nodes:
        added = _added(objects, wanted)
        sentences.append(AddNodes(wanted.like, wanted.count).text)
        objects = [*objects, *added]
    config = run_spec.config
    if what_if.config.strip():
        config = read_config(what_if.config)
        sentences.append("another configuration")
    changed = replace(run_spec, objects=tuple(objects), config=config)
    return Outcome(changed, _some(sentences))


def read_config(text: str) -> KubeSchedulerConfiguration:
    """Read the configuration and build it, because plugins check their own arguments. Raises ConfigError."""
    config = load_config(text)
    Simulation(SimOptions(config=config)).close()
    return config


def read_beside(text: str, objects: Sequence[KubeObject]) -> list[KubeObject]:
    """The objects in the text, which can refer to the cluster's classes and nodes. Raises InputError."""
    given = text.encode()
    documents = list(read_documents([STDIN], findings=Findings(), stdin=io.BytesIO(given)))
    makers = {each.kind for each in documents} - {"Pod", "Node"}
    # Only controllers and quotas need the existing pods, and there can be many.
    needed = makers or any(isinstance(obj, ResourceQuota) for obj in objects)
    around = objects if needed else [obj for obj in objects if not isinstance(obj, Pod)]
    found = read_manifests([STDIN], stdin=io.BytesIO(given), among=around)
    if found.refused:
        raise InputError(found.refusals)
    if not found.objects:
        kinds = ", ".join(sorted(found.skipped))
        what = f"only kinds that mooring does not read: {kinds}" if kinds else "no objects"
        raise InputError([f"the text contains {what}"])
    return found.objects


def found_sentences(found: Sequence[KubeObject], objects: Sequence[KubeObject]) -> list[str]:
    """`replace pod shop/web-0`, `add node n9`."""
    known = {_identity(obj) for obj in objects}
    return [
        f"{'replace' if _identity(obj) in known else 'add'} {obj.kind.lower()} {obj.key}"
        for obj in found
    ]


def config_text(run_spec: RunSpec) -> str:
    return _yaml(write_config(run_spec.config or default_config()))


def object_text(run_spec: RunSpec, named: Named) -> str | None:
    """The object as YAML; None if there is no such object."""
    for obj in run_spec.objects:
        if obj.kind == named.kind and obj.key == named.key:
            data = msgspec.to_builtins(obj, enc_hook=encode_hook, str_keys=True)
            first = {field: data[field] for field in _FIRST if field in data}
            return _yaml(first | data)
    return None


def _yaml(data: Any) -> str:
    import yaml

    text: str = yaml.dump(
        data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


def _identity(obj: KubeObject) -> tuple[type[KubeObject], str]:
    return type(obj), obj.key


def _check_still_there(objects: Sequence[KubeObject], counterfactual: Applied) -> None:
    """Check that the nodes of the changes exist."""
    nodes = {obj.name for obj in objects if isinstance(obj, Node)}
    for change in counterfactual.answer.changes:
        wanted = change.like if isinstance(change, AddNodes) else change.node_name
        if wanted and wanted not in nodes:
            raise InputError([f"there is no node {wanted!r} in this run"])


def _without(objects: Sequence[KubeObject], named: Named) -> list[KubeObject]:
    if not any(obj.kind == named.kind and obj.key == named.key for obj in objects):
        raise InputError([f"there is no {named.kind} {named.key!r} in this run"])
    if named.kind != "Node":
        return [obj for obj in objects if obj.kind != named.kind or obj.key != named.key]
    return list(_without_node(objects, named.key))


def _without_node(objects: Sequence[KubeObject], name: str) -> Iterator[KubeObject]:
    """Remove the node; its pods become pending, as if their controllers recreated them."""
    for obj in objects:
        if isinstance(obj, Pod) and obj.node_name == name:
            if not obj.belongs_to_node:
                yield obj if obj.finished else unbound(obj)
        elif obj.kind not in ("Node", "CSINode") or obj.name != name:
            yield obj


def _merged(objects: Sequence[KubeObject], found: Sequence[KubeObject]) -> Iterator[KubeObject]:
    """Replace objects in place, so that the order stays; then append the new ones."""
    instead = {_identity(obj): obj for obj in found}
    for obj in objects:
        yield instead.pop(_identity(obj), obj)
    yield from instead.values()


def _added(objects: Sequence[KubeObject], wanted: NodesLike) -> list[KubeObject]:
    nodes = {obj.name: obj for obj in objects if isinstance(obj, Node)}
    if wanted.like not in nodes:
        raise InputError([f"there is no node {wanted.like!r} in this run to copy"])
    if not 1 <= wanted.count <= MOST_NODES:
        raise InputError([f"{wanted.count} nodes: write a number from 1 to {MOST_NODES:,}"])
    pods = [obj for obj in objects if isinstance(obj, Pod) and obj.node_name == wanted.like]
    return AddNodes(wanted.like, wanted.count).added(nodes, {wanted.like: pods})


def _some(sentences: Sequence[str]) -> tuple[str, ...]:
    if len(sentences) <= _MOST_SENTENCES:
        return tuple(sentences)
    more = len(sentences) - _MOST_SENTENCES
    return (*sentences[:_MOST_SENTENCES], f"and {more:,} more")
