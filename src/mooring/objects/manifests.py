"""Read a cluster from files and folders of YAML or JSON.

Documents are decoded and checked one by one, then together. Then controllers create their pods, and
the defaults of the API server are applied. All problems are collected, one line each, so that a
user sees them at once:

    web.yaml: document 2 (Pod shop/web-0): spec.containers[0].resources.requests.cpu: -1 is negative; …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from mooring.errors import InputError
from mooring.garbage import seldom_collecting
from mooring.objects.controllers import made_by_controllers
from mooring.objects.decoding import (
    convert,
    decode_json,
    group_of,
    identified,
    kind_of,
    type_problems,
    without_nulls,
)
from mooring.objects.decoding import decode_object as decode_object
from mooring.objects.defaults import Defaults
from mooring.objects.documents import Document, Progress, read_documents
from mooring.objects.generated_names import NameMaker, generated_uid
from mooring.objects.kinds import CLUSTER_SCOPED
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.priority_classes import PriorityClasses
from mooring.objects.shared_parts import SharedParts
from mooring.objects.validation import metadata_problems, problems_of

DEFAULT_NAMESPACE = "default"

_LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that the API server would not create, or that cannot exist in this cluster."""

    object: KubeObject
    #: As the API server would put it: `no PriorityClass with name high was found`.
    reason: str


@dataclass(frozen=True, slots=True)
class Manifests:
    """A cluster as read: complete objects, each followed by what controllers create for it."""

    #: In the order of the files.
    objects: list[KubeObject]
    #: How many objects were skipped, by kind (`Ingress.networking.k8s.io`): mooring does not read
    #: these kinds.
    skipped: dict[str, int] = field(default_factory=dict)
    #: Warnings about input that is usable but probably not intended.
    warnings: list[str] = field(default_factory=list)
    #: Objects that are left out of `objects`: the API server would refuse them.
    refused: list[Refused] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.objects if isinstance(obj, Node)]

    @property
    def pods(self) -> list[Pod]:
        return [obj for obj in self.objects if isinstance(obj, Pod)]


def read_manifests(
    paths: Sequence[str | Path],
    *,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    documents: Iterable[Document] = (),
    among: Sequence[KubeObject] = (),
) -> Manifests:
    """Read files, folders (searched for .yaml, .yml and .json) and standard input (`-`).

    Raises InputError with a line for each problem. `progress` is called with the bytes read and the
    total. `documents` are read after the files. `among` is an existing cluster: the objects may
    refer to it, and it is not part of the result.
    """
    reading = _Reading(among)
    with seldom_collecting():
        for document in read_documents(
            paths, problems=reading.problems, stdin=stdin, progress=progress
        ):
            reading.add(document)
        for document in documents:
            reading.add(document)
        return reading.finished()


def read_as_written(
    paths: Sequence[str | Path],
    *,
    documents: Iterable[Document] = (),
    among: Sequence[KubeObject] = (),
) -> Manifests:
    """As `read_manifests`, without controllers: for a cluster that runs controllers itself."""
    reading = _Reading(among)
    for document in read_documents(paths, problems=reading.problems):
        reading.add(document)
    for document in documents:
        reading.add(document)
    return reading.as_written()


@dataclass(slots=True)
class _Entry:
    where: str
    obj: KubeObject


class _Reading:
    def __init__(self, among: Sequence[KubeObject] = ()) -> None:
        self._among = among
        self.problems: list[str] = []
        self._skipped: Counter[str] = Counter()
        self._entries: list[_Entry] = []
        self._shared_parts = SharedParts()
        #: Kind and name of unusable objects, so that references to them are not reported too.
        self._broken: set[tuple[str, str]] = set()

    def add(self, document: Document) -> None:
        kind = kind_of(document.api_version, document.kind)
        if kind is None:
            group = group_of(document.api_version)
            self._skipped[_one_line(f"{document.kind}.{group}" if group else document.kind)] += 1
            return
        obj = self._decoded(document, kind)
        if obj is None:
            return
        obj = _in_namespace(identified(obj, document.api_version, document.kind))
        shares_with = None
        if isinstance(obj, Pod):
            obj, shares_with = self._shared_parts.join(obj)
        # Pods that share their parts are validated once.
        found = list(problems_of(obj) if shares_with is None else metadata_problems(obj.metadata))
        for path, problem in found:
            self._problem(document.where, obj, f"{path}: {problem}")
        if found:
            self._broken.add((obj.kind, obj.name))
        else:
            self._entries.append(_Entry(document.where, obj))

    def _decoded(self, document: Document, kind: type[KubeObject]) -> KubeObject | None:
        body = document.body
        try:
            if not isinstance(body, dict):
                return decode_json(body, kind)
            return convert(body, kind)
        except msgspec.ValidationError:
            pass
        if not isinstance(body, dict):
            # Often the problem is only a null: Go writes many of them.
            body = without_nulls(msgspec.json.decode(body))
        found = list(type_problems(body, kind))
        if not found:
            return convert(body, kind)
        title = _raw_title(document.kind, body)
        for path, problem in found:
            line = f"{path}: {problem}" if path else problem
            self.problems.append(f"{document.where} ({title}): {line}")
        self._broken.add((document.kind, _raw_text(body, "name")))
        return None

    def finished(self) -> Manifests:
        made, defaults = self._checked()
        return self._complete(
            defaults.of(each)
            for entry, more in zip(self._entries, made, strict=True)
            for each in (entry.obj, *more)
        )

    def as_written(self) -> Manifests:
        _, defaults = self._checked()
        return self._complete(defaults.of(entry.obj) for entry in self._entries)

    def _checked(self) -> tuple[Sequence[Sequence[KubeObject]], Defaults]:
        """What controllers create for each entry, and the defaults. Raises InputError."""
        self._name_all()
        self._check_duplicates()
        self._check_nodes()
        objects = [*(entry.obj for entry in self._entries), *self._among]
        defaults = Defaults(objects)
        made = made_by_controllers(objects, admit=defaults.spec)[: len(self._entries)]
        self._check_priority_classes(made, defaults.priority_classes)
        if self.problems:
            raise InputError([_one_line(problem) for problem in self.problems])
        return made, defaults

    def _complete(self, objects: Iterable[KubeObject]) -> Manifests:
        complete = list(objects)
        return Manifests(complete, dict(self._skipped), list(self._warnings(complete)))

    def _name_all(self) -> None:
        names = NameMaker((*(entry.obj for entry in self._entries), *self._among))
        for entry in self._entries:
            entry.obj = _identified(entry.obj, names)

    def _check_duplicates(self) -> None:
        seen: dict[tuple[type[KubeObject], str], _Entry] = {}
        uids: dict[str, _Entry] = {}
        unique = []
        for entry in self._entries:
            first = seen.setdefault((type(entry.obj), entry.obj.key), entry)
            if first is not entry:
                line = f"metadata.name: taken by {first.where}; rename or remove one of the two"
                self._problem(entry.where, entry.obj, line)
                continue
            unique.append(entry)
            if isinstance(entry.obj, Pod):
                first = uids.setdefault(entry.obj.uid, entry)
                if first is not entry:
                    line = f"metadata.uid: taken by {first.where}; leave it out to have one made"
                    self._problem(entry.where, entry.obj, line)
        self._entries = unique

    def _check_nodes(self) -> None:
        nodes = {entry.obj.name for entry in self._entries if isinstance(entry.obj, Node)}
        nodes |= {obj.name for obj in self._among if isinstance(obj, Node)}
        nodes |= {name for kind, name in self._broken if kind == "Node"}
        if "" in nodes:
            return
        lost = [entry for entry in self._entries if _is_bound_elsewhere(entry.obj, nodes)]
        if lost and not nodes:
            line = (
                "spec.nodeName: pods are on nodes, but no Node was read; "
                "add what `kubectl get nodes -o yaml` prints"
            )
            self._problem(lost[0].where, lost[0].obj, line)
            return
        for entry in lost:
            assert isinstance(entry.obj, Pod)
            line = f"spec.nodeName: there is no Node {entry.obj.node_name!r}; add it, or leave this out"
            self._problem(entry.where, entry.obj, line)

    def _check_priority_classes(
        self, made: Sequence[Sequence[KubeObject]], classes: PriorityClasses
    ) -> None:
        broken = {name for kind, name in self._broken if kind == "PriorityClass"}
        for entry, more in zip(self._entries, made, strict=True):
            pods = [pod for pod in (entry.obj, *more) if isinstance(pod, Pod)]
            # The pods of a template have the same priority class.
            for pod in pods[:1]:
                name = pod.spec.priority_class_name
                if name not in broken and classes.unknown_to(pod.spec):
                    line = (
                        f"{_spec_path(entry.obj)}.priorityClassName: there is no PriorityClass "
                        f"{name!r}; add it, or use one of {', '.join(classes.names)}"
                    )
                    self._problem(entry.where, entry.obj, line)

    def _warnings(self, objects: Sequence[KubeObject]) -> Iterator[str]:
        where = {
            entry.obj.key: entry.where for entry in self._entries if isinstance(entry.obj, Node)
        }
        for node in objects:
            if isinstance(node, Node) and "pods" not in node.status.allocatable:
                yield (
                    f"{where[node.key]} ({_title(node)}): status.allocatable.pods: is missing, so no "
                    "pod fits; add it, as pods: 110"
                )

    def _problem(self, where: str, obj: KubeObject, line: str) -> None:
        self.problems.append(f"{where} ({_title(obj)}): {line}")


def _in_namespace(obj: KubeObject) -> KubeObject:
    """Put a namespaced object without a namespace into `default`."""
    namespace = "" if obj.kind in CLUSTER_SCOPED else obj.namespace or DEFAULT_NAMESPACE
    if namespace == obj.namespace:
        return obj
    return replace(obj, metadata=replace(obj.metadata, namespace=namespace))


def _identified(obj: KubeObject, names: NameMaker) -> KubeObject:
    """Set a name, if it uses `generateName`, and a UID: the same on every run."""
    metadata = obj.metadata
    name = metadata.name or names.name(type(obj), metadata.namespace, metadata.generate_name)
    group = group_of(obj.api_version)
    uid = metadata.uid or generated_uid(group, obj.kind, metadata.namespace, name)
    if name == metadata.name and uid == metadata.uid:
        return obj
    return replace(obj, metadata=replace(metadata, name=name, uid=uid))


def _is_bound_elsewhere(obj: KubeObject, nodes: set[str]) -> bool:
    """Whether the pod is on an unknown node; finished and terminating pods may be."""
    return (
        isinstance(obj, Pod)
        and bool(obj.node_name)
        and obj.node_name not in nodes
        and not obj.finished
        and not obj.terminating
    )


def _spec_path(obj: KubeObject) -> str:
    if isinstance(obj, Pod):
        return "spec"
    return "spec.jobTemplate.spec.template.spec" if obj.kind == "CronJob" else "spec.template.spec"


def _one_line(text: str) -> str:
    """Names and keys may hold any text of any length: make it one short line."""
    line = "".join(
        each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST_LINE]
    )
    return line if len(text) <= _LONGEST_LINE else f"{line}…"


def _title(obj: KubeObject) -> str:
    key = obj.key if obj.name else obj.metadata.generate_name
    return f"{obj.kind} {key}" if key else obj.kind


def _raw_title(kind: str, body: dict[str, Any]) -> str:
    name = _raw_text(body, "name") or _raw_text(body, "generateName")
    if not name:
        return kind
    if kind in CLUSTER_SCOPED:
        return f"{kind} {name}"
    return f"{kind} {_raw_text(body, 'namespace') or DEFAULT_NAMESPACE}/{name}"


def _raw_text(body: dict[str, Any], name: str) -> str:
    metadata = body.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""
