"""What if: derive the input of a new run from another run and the user's changes, and check it.

Texts are read like files, and configurations are built as for a run.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mooring.config import KubeSchedulerConfiguration, default_config, load_config, write_config
from mooring.errors import InputError
from mooring.explain.counterfactuals import Counterfactual
from mooring.explain.drain import is_of_node, nodes_of_zone
from mooring.explain.settled import unbound
from mooring.framework.applied_changes import apply_changes
from mooring.framework.node_changes import AddNodes
from mooring.objects.daemon_pods import daemon_pods_for
from mooring.objects.daemons import home
from mooring.objects.documents import STDIN, read_documents
from mooring.objects.findings import Findings
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import KubeObject, encode_hook
from mooring.objects.node import Node
from mooring.objects.node_groups import node_documents, parse_node_group
from mooring.objects.pod import Pod
from mooring.objects.policies import ResourceQuota
from mooring.sim.scenarios.drain import cordoned
from mooring.sim.simulation import SimOptions, Simulation
from mooring.web.requested_changes import Named, NodesLike, RequestedChanges
from mooring.web.run_spec import RunSpec
from mooring.web.scaling import scaled

#: A typing error must not use up all memory.
MOST_NODES = 10_000
_MOST_SENTENCES = 20
#: The fields at the top of a manifest.
_FIRST = ("apiVersion", "kind", "metadata")


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


def apply(
    run_spec: RunSpec, changes: Sequence[RequestedChanges], counterfactual: Applied | None = None
) -> Outcome:
    """One change after the other. Raises InputError and ConfigError."""
    sentences: list[str] = []
    if counterfactual is not None:
        run_spec = _with_counterfactual(run_spec, counterfactual)
        sentences.append(f"{counterfactual.answer.text} (for {counterfactual.pod})")
    for change in changes:
        run_spec, more = _applied(run_spec, change)
        sentences += more
    return Outcome(run_spec, _some(sentences))


def _with_counterfactual(run_spec: RunSpec, counterfactual: Applied) -> RunSpec:
    before = run_spec.objects
    _check_still_there(before, counterfactual)
    after = apply_changes(before, counterfactual.pod, counterfactual.answer.changes)
    change = _difference(before, after)
    return replace(run_spec, objects=tuple(after), applied=(*run_spec.applied, change))


def _difference(before: Sequence[KubeObject], after: Sequence[KubeObject]) -> RequestedChanges:
    """The same as manifests, for those who want to repeat it."""
    old, kept = {_identity(obj): obj for obj in before}, {_identity(obj) for obj in after}
    others = [obj for obj in after if old.get(_identity(obj)) is not obj]
    gone = [Named(obj.kind, obj.key) for obj in before if _identity(obj) not in kept]
    return RequestedChanges(objects="---\n".join(map(_object_text, others)), remove=gone)


def _applied(run_spec: RunSpec, change: RequestedChanges) -> tuple[RunSpec, list[str]]:
    sentences: list[str] = []
    objects: Sequence[KubeObject] = run_spec.objects
    for each in change.remove:
        objects = _without(objects, each)
        sentences.append(f"remove {each.kind.lower()} {each.key}")
    if change.objects.strip():
        found = read_beside(change.objects, objects)
        sentences += found_sentences(found, run_spec.objects)
        known = {node.name for node in _nodes(objects)}
        joining = [node for node in _nodes(found) if node.name not in known]
        objects = [*_merged(objects, found), *daemon_pods_for(joining, objects)]
    for wanted in change.add_nodes:
        added = _added(objects, wanted)
        sentences.append(AddNodes(wanted.like, wanted.count).text)
        objects = [*objects, *added]
    if change.nodes:
        machines = _of_machine_type(objects, change.nodes)
        objects = [*objects, *machines, *daemon_pods_for(_nodes(machines), objects)]
        sentences.append(f"add {change.nodes}")
    if change.scale is not None:
        objects = scaled(objects, change.scale.workload, change.scale.replicas)
        sentences.append(f"scale {change.scale.workload} to {change.scale.replicas:,}")
    if change.drain:
        names = [name.strip() for name in change.drain.split(",") if name.strip()]
        objects = _drained(objects, names)
        sentences.append(f"drain {', '.join(names)}")
    if change.lose:
        going = nodes_of_zone(_nodes(objects), change.lose)
        objects = list(_without_nodes(objects, frozenset(going)))
        nodes = "1 node" if len(going) == 1 else f"{len(going):,} nodes"
        sentences.append(f"lose {change.lose} ({nodes})")
    config = run_spec.config
    if change.config.strip():
        config = read_config(change.config)
        sentences.append("another configuration")
    changed = replace(
        run_spec, objects=tuple(objects), config=config, applied=(*run_spec.applied, change)
    )
    return changed, sentences


def read_config(text: str) -> KubeSchedulerConfiguration:
    """Read the configuration and build it, because plugins check their own arguments. Raises ConfigError."""
    config = load_config(text)
    Simulation(SimOptions(config=config)).close()
    return config


def read_beside(text: str, objects: Sequence[KubeObject]) -> list[KubeObject]:
    """The objects in the text, which can refer to the cluster's classes and nodes. Raises InputError."""
    try:
        return _read_beside(text.encode(), objects)
    except InputError as error:
        # The readers know nothing but standard input that is no file.
        named = [each.replace("standard input", "manifests", 1) for each in error.problems]
        raise InputError(named) from error


def _read_beside(given: bytes, objects: Sequence[KubeObject]) -> list[KubeObject]:
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
            return _object_text(obj)
    return None


def _object_text(obj: KubeObject) -> str:
    data = msgspec.to_builtins(obj, enc_hook=encode_hook, str_keys=True)
    first = {field: data[field] for field in _FIRST if field in data}
    return _yaml(first | data)


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
    return list(_without_nodes(objects, {named.key}))


def _without_nodes(objects: Sequence[KubeObject], names: Collection[str]) -> Iterator[KubeObject]:
    """Remove the nodes; their pods become pending, as if their controllers recreated them."""
    for obj in objects:
        if isinstance(obj, Pod) and home(obj) in names:
            if not obj.belongs_to_node:
                yield obj if obj.finished else unbound(obj)
        elif not is_of_node(obj, names):
            yield obj


def _drained(objects: Sequence[KubeObject], names: Sequence[str]) -> list[KubeObject]:
    """Cordon the nodes; their pods become pending, except those that belong to a node."""
    known = {node.name for node in _nodes(objects)}
    problems = [f"there is no node {name!r} in this run" for name in names if name not in known]
    if problems or not names:
        raise InputError(problems or ["name a node to drain"])
    return [_drained_object(obj, names) for obj in objects]


def _drained_object(obj: KubeObject, names: Sequence[str]) -> KubeObject:
    if isinstance(obj, Node) and obj.name in names:
        return cordoned(obj)
    if isinstance(obj, Pod) and obj.node_name in names:
        stays = obj.belongs_to_node or obj.finished
        return obj if stays else unbound(obj)
    return obj


def _nodes(objects: Sequence[KubeObject]) -> list[Node]:
    return [obj for obj in objects if isinstance(obj, Node)]


def _of_machine_type(objects: Sequence[KubeObject], text: str) -> list[KubeObject]:
    try:
        group = parse_node_group(text)
    except ValueError as error:
        raise InputError([str(error)]) from error
    if group.count > MOST_NODES:
        raise InputError([f"{group.count} nodes: write a number from 1 to {MOST_NODES:,}"])
    taken = {node.name for node in _nodes(objects)}
    return list(read_manifests([], documents=node_documents([group], taken)).objects)


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
    pods = [obj for obj in objects if isinstance(obj, Pod) and home(obj) == wanted.like]
    return AddNodes(wanted.like, wanted.count).added(nodes, {wanted.like: pods})


def _some(sentences: Sequence[str]) -> tuple[str, ...]:
    if len(sentences) <= _MOST_SENTENCES:
        return tuple(sentences)
    more = len(sentences) - _MOST_SENTENCES
    return (*sentences[:_MOST_SENTENCES], f"and {more:,} more")
