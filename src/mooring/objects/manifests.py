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
from typing import IO

import msgspec

from mooring.errors import InputError
from mooring.garbage import seldom_collecting
from mooring.objects import device_versions, kubelet_labels, old_versions
from mooring.objects.admission import Admission
from mooring.objects.admission import Refused as Refused
from mooring.objects.api_fields import line_of, unknown_fields
from mooring.objects.autoscalers import Autoscalers
from mooring.objects.claim_warnings import claim_warnings
from mooring.objects.controllers import made_by_controllers
from mooring.objects.custom_resources import CustomResources, MadeObject
from mooring.objects.decoding import (
    convert,
    decode_json,
    group_of,
    identified,
    kind_meant,
    kind_of,
    type_problems,
    without_nulls,
)
from mooring.objects.decoding import decode_object as decode_object
from mooring.objects.documents import Document, Progress, read_documents
from mooring.objects.duplicates import Entry, resolved
from mooring.objects.findings import Findings
from mooring.objects.gangs import FOREIGN_GROUPS, foreign_pod_group
from mooring.objects.generated_names import NameMaker
from mooring.objects.identity import in_namespace, with_identity
from mooring.objects.kinds import CLUSTER_SCOPED, KIND_OF, Kind
from mooring.objects.lost_pods import find_lost_pods
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.priority_classes import PriorityClasses
from mooring.objects.selection import is_selected, selector_of
from mooring.objects.shared_parts import SharedParts
from mooring.objects.skipped_kinds import Effect
from mooring.objects.template_marks import mark_in_document
from mooring.objects.titles import DEFAULT_NAMESPACE as DEFAULT_NAMESPACE
from mooring.objects.titles import one_line, raw_text, raw_title
from mooring.objects.titles import title as title_of
from mooring.objects.validation import metadata_problems, problems_of
from mooring.objects.workload_kinds.descriptions import with_more


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a user can say about reading."""

    #: Globs of the files and folders to leave out.
    exclude: tuple[str, ...] = ()
    #: A label selector. Objects without a namespace, such as nodes, are read whatever their labels.
    selector: str = ""
    #: Files and folders with descriptions of more workload kinds.
    workload_kinds: tuple[str, ...] = ()
    #: Refuse fields that the API does not have.
    strict: bool = False
    #: The kinds that enabled plugins declare. They go before what mooring would make of them.
    kinds: tuple[Kind, ...] = ()


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
    #: What was done for the user, such as rendering a folder.
    notes: list[str] = field(default_factory=list)
    #: Skipped kind → what skipping it means for the answer.
    effects: dict[str, Effect] = field(default_factory=dict)
    #: Objects that are left out of `objects`: the API server would refuse them.
    refused: list[Refused] = field(default_factory=list)
    #: How many files without objects, and broken documents of kinds without effect, were left out.
    left_out: int = 0
    #: Whether some objects come from an API server.
    is_dump: bool = False
    #: The paths in which there was no object of any kind.
    empty_paths: tuple[str, ...] = ()
    #: How many objects the selector did not choose.
    unselected: int = 0
    #: Custom resources of which nothing is made, though they are not suspended.
    idle: list[str] = field(default_factory=list)

    @property
    def refusals(self) -> list[str]:
        """A line for each reason why objects are left out, with their number."""
        alike: dict[tuple[str, str], list[Refused]] = {}
        for each in self.refused:
            alike.setdefault((each.object.kind, each.reason), []).append(each)
        return [
            f"{refused[0].title}{_and_more(refused)} would not be created: {reason}"
            for (_, reason), refused in alike.items()
        ]

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.objects if isinstance(obj, Node)]

    @property
    def pods(self) -> list[Pod]:
        return [obj for obj in self.objects if isinstance(obj, Pod)]


def read_manifests(
    paths: Sequence[str | Path],
    *,
    options: ReadOptions | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    documents: Iterable[Document] = (),
    among: Sequence[KubeObject] = (),
    namespace: str = DEFAULT_NAMESPACE,
) -> Manifests:
    """Read files, folders (searched for .yaml, .yml and .json) and standard input (`-`).

    Raises InputError with a line for each problem. `progress` is called with the bytes read and the
    total. `documents` are read after the files. `among` is an existing cluster: the objects may
    refer to it, and it is not part of the result. `namespace` is that of objects that name none.
    """
    reading = _Reading(options or ReadOptions(), among, namespace)
    with seldom_collecting():
        reading.add_all(paths, stdin=stdin, progress=progress, documents=documents)
        return reading.finished()


def read_as_written(
    paths: Sequence[str | Path],
    *,
    options: ReadOptions | None = None,
    documents: Iterable[Document] = (),
    among: Sequence[KubeObject] = (),
) -> Manifests:
    """As `read_manifests`, without controllers: for a cluster that runs controllers itself.

    Objects that the API server would refuse are problems.
    """
    reading = _Reading(options or ReadOptions(), among)
    reading.add_all(paths, documents=documents)
    return reading.as_written()


class _Reading:
    """Reads the documents of one input one by one, then looks at the objects together."""

    def __init__(
        self,
        options: ReadOptions,
        among: Sequence[KubeObject] = (),
        namespace: str = DEFAULT_NAMESPACE,
    ) -> None:
        self._options = options
        self._among = among
        self._namespace = namespace
        self._selector = selector_of(options.selector)
        self._cluster_scoped = CLUSTER_SCOPED.union(
            kind.name for kind in options.kinds if not kind.namespaced
        )
        self._findings = Findings()
        self._custom = CustomResources(with_more(options.workload_kinds))
        self._old: Counter[tuple[str, str]] = Counter()
        self._number = 0
        #: Each with the number of its document.
        self._numbered: list[tuple[int, Entry[KubeObject]]] = []
        #: The entries (by `id`) that an API server has stored: they have been through admission.
        self._stored: set[int] = set()
        self._shared_parts = SharedParts()
        #: Kind and name of unusable objects, so that references to them are not reported too.
        self._broken: set[tuple[str, str]] = set()
        self._refused: list[tuple[str, Refused]] = []
        self._empty_paths: tuple[str, ...] = ()
        self._unselected = 0

    def add_all(
        self,
        paths: Sequence[str | Path],
        *,
        stdin: IO[bytes] | None = None,
        progress: Progress | None = None,
        documents: Iterable[Document] = (),
    ) -> None:
        read: set[int] = set()
        for document in read_documents(
            paths,
            findings=self._findings,
            exclude=self._options.exclude,
            stdin=stdin,
            progress=progress,
        ):
            assert document.source is not None
            read.add(document.source.argument)
            self.add(document)
        with_objects = {str(paths[argument]) for argument in read}
        self._empty_paths = tuple(
            p for p in dict.fromkeys(map(str, paths)) if p not in with_objects
        )
        for document in documents:
            self.add(document)

    def add(self, document: Document) -> None:
        self._number += 1
        if self._selector is not None and not is_selected(document, self._selector):
            self._unselected += 1
            return
        document = self._ours(document)
        current = old_versions.replaced_by(document.api_version, document.kind)
        kind = kind_of(current or document.api_version, document.kind, self._options.kinds)
        if kind is None:
            self._add_custom(document)
            return
        mark = mark_in_document(document.body)
        if mark:
            file = document.source.path if document.source is not None else document.where
            self._findings.add_template(file, mark)
            return
        obj = self._decoded(document, kind)
        if obj is None:
            return
        if current:
            self._old[document.api_version, document.kind] += 1
            obj = old_versions.with_old_defaults(obj)
        obj = identified(obj, document.api_version, document.kind)
        obj = in_namespace(obj, self._namespace, self._cluster_scoped)
        self._check_fields(document, obj)
        self._add(document, obj, self._number)

    def _add_custom(self, document: Document) -> None:
        meant = kind_meant(document.api_version, document.kind)
        if meant is None:
            self._custom.add(document, self._number)
            return
        self._findings.problems.append(
            f"{document.where}: there is no kind {document.kind!r} in {document.api_version!r}; "
            f"write apiVersion: {meant.api_version} and kind: {meant.name}"
        )

    def _add(self, document: Document, obj: KubeObject, number: int, title: str = "") -> None:
        shares_with = None
        if isinstance(obj, Pod):
            obj, shares_with = self._shared_parts.join(obj)
        title = title or title_of(obj)
        if shares_with is not None and (obj.kind, shares_with.name) not in self._broken:
            # Pods that share their parts are validated once, unless there is something to say of each.
            of_labels = obj.labels is not shares_with.labels
            found = list(metadata_problems(obj.metadata, of_labels=of_labels))
        else:
            found = list(problems_of(obj))
        for path, problem in found:
            self._findings.problems.append(f"{document.where} ({title}): {path}: {problem}")
        if found:
            self._broken.add((obj.kind, obj.name))
        else:
            entry = Entry.of(document, obj, title)
            self._numbered.append((number, entry))
            if _is_stored(obj):
                self._stored.add(id(entry))

    def _ours(self, document: Document) -> Document:
        """A pod group of another scheduler, as one of ours."""
        group = group_of(document.api_version)
        if document.kind != PodGroup.__name__ or group not in FOREIGN_GROUPS:
            return document
        if kind_of(document.api_version, document.kind, self._options.kinds) is not None:
            return document
        body = document.body
        plain = body if isinstance(body, dict) else without_nulls(msgspec.json.decode(body))
        gang = foreign_pod_group(group, plain)
        if gang is None:
            return document
        note = f"{document.where}: a PodGroup of {FOREIGN_GROUPS[group]} is read as a gang"
        self._findings.warnings.append(note)
        return Document(document.where, KIND_OF[PodGroup].api_version, document.kind, gang)

    def _decoded(
        self, document: Document, kind: type[KubeObject], title: str = ""
    ) -> KubeObject | None:
        body = document.body
        if device_versions.is_older(document.api_version):
            whole = body if isinstance(body, dict) else msgspec.json.decode(body)
            named = {"apiVersion": document.api_version, "kind": document.kind}
            body = device_versions.upgraded({**whole, **named})
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
        title = title or raw_title(document.kind, body)
        for path, problem in found:
            line = f"{path}: {problem}" if path else problem
            self._findings.problems.append(f"{document.where} ({title}): {line}")
        self._broken.add((document.kind, raw_text(body, "name")))
        return None

    def _check_fields(self, document: Document, obj: KubeObject) -> None:
        """Look for misspelt fields, unless the API server has stored the object."""
        if obj.uid:
            return
        for unknown in unknown_fields(document.api_version, document.kind, document.body):
            line = None
            if document.text is not None:
                steps = (*document.steps, *unknown.steps)
                line = line_of(document.text.chunk, document.text.first_line, steps)
            at = f", line {line}" if line is not None else ""
            text = f"{document.where}{at} ({title_of(obj)}): {unknown}"
            if self._options.strict:
                self._findings.problems.append(text)
            else:
                self._findings.warnings.append(one_line(text))

    # All objects together

    def finished(self) -> Manifests:
        entries, made, admission = self._together()
        self._raise_problems()
        return self._complete(entries, made, admission)

    def as_written(self) -> Manifests:
        entries, made, admission = self._together()
        for entry, more in zip(entries, made, strict=True):
            for each in (entry.obj, *more):
                self._has_priority(entry, each, admission.defaults.priority_classes)
        refused = (f"{where} ({each.title}): {each.reason}" for where, each in self._refused)
        self._findings.problems += dict.fromkeys(refused)
        self._raise_problems()
        return self._complete(entries, [()] * len(entries), admission)

    def _together(
        self,
    ) -> tuple[list[Entry[KubeObject]], Sequence[Sequence[KubeObject]], Admission]:
        """The objects that count, what controllers create for each, and the admission."""
        entries = self._entries()
        self._autoscale(entries)
        self._label_nodes(entries)
        objects = [*(entry.obj for entry in entries), *self._among]
        stored = {(type(obj), obj.key): obj for obj in self._among}
        stored |= {(type(e.obj), e.obj.key): e.obj for e in entries if id(e) in self._stored}
        admission = Admission(objects, stored=stored.values())
        made = made_by_controllers(objects, admit=admission.defaults.spec)[: len(entries)]
        return entries, made, admission

    def _entries(self) -> list[Entry[KubeObject]]:
        """The objects that count, with those of custom resources, in the order of the documents."""
        self._add_made()
        numbered = sorted(self._numbered, key=lambda each: each[0])
        names = NameMaker((*(entry.obj for _, entry in numbered), *self._among))
        existing = {(type(obj), obj.key) for obj in self._among}
        for _, entry in numbered:
            entry.obj = with_identity(entry.obj, names)
            if (type(entry.obj), entry.obj.key) in existing:
                # An update of an existing object is not created again.
                self._stored.add(id(entry))
        entries = resolved(
            (((type(entry.obj), entry.obj.key), entry) for _, entry in numbered), self._findings
        )
        self._check_uids(entries)
        return self._on_known_nodes(entries)

    def _add_made(self) -> None:
        read = [entry.obj for _, entry in self._numbered]
        existing = {(type(obj), obj.key) for obj in (*read, *self._among)}
        for made in self._custom.made([*read, *self._among], self._findings):
            self._add_one_made(made, existing)

    def _add_one_made(self, made: MadeObject, existing: set[tuple[type[KubeObject], str]]) -> None:
        api_version, kind = str(made.body["apiVersion"]), str(made.body["kind"])
        struct = kind_of(api_version, kind)
        assert struct is not None
        document = Document(made.where, api_version, kind, made.body)
        title = f"{made.title}, its {raw_title(kind, made.body)}"
        obj = self._decoded(document, struct, title)
        if obj is not None and (struct, obj.key) not in existing:
            self._add(document, in_namespace(obj, self._namespace), made.order, title)

    def _check_uids(self, entries: Iterable[Entry[KubeObject]]) -> None:
        uids: dict[str, Entry[KubeObject]] = {}
        for entry in entries:
            if isinstance(entry.obj, Pod):
                first = uids.setdefault(entry.obj.uid, entry)
                if first is not entry:
                    line = f"metadata.uid: taken by {first.where}; leave it out to have one made"
                    self._problem(entry, line)

    def _on_known_nodes(self, entries: list[Entry[KubeObject]]) -> list[Entry[KubeObject]]:
        """Without the pods on nodes that are gone."""
        broken = (name for kind, name in self._broken if kind == "Node")
        lost = find_lost_pods(entries, self._among, broken)
        if lost.no_nodes:
            line = (
                "spec.nodeName: pods are on nodes, but no Node was read; "
                "add what `kubectl get nodes -o yaml` prints"
            )
            self._problem(lost.entries[0], line)
            return entries
        self._findings.warnings += lost.warnings()
        self._refused += (
            (entry.where, Refused(entry.obj, one_line(why))) for entry, why in lost.refusals()
        )
        ids = {id(entry) for entry in lost.entries}
        return [entry for entry in entries if id(entry) not in ids]

    def _has_priority(
        self, entry: Entry[KubeObject], obj: KubeObject, classes: PriorityClasses
    ) -> bool:
        """Refuse a pod whose PriorityClass does not exist."""
        if not isinstance(obj, Pod) or not classes.unknown_to(obj.spec):
            return True
        name = obj.spec.priority_class_name
        reason = (
            f"spec.priorityClassName: there is no PriorityClass {name!r}; add it, or use one of "
            f"{', '.join(classes.names)}"
        )
        self._refused.append((entry.where, Refused(obj, one_line(reason))))
        return False

    def _raise_problems(self) -> None:
        problems = self._findings.all_problems()
        if self._options.strict:
            problems += self._findings.given_twice
        if problems:
            raise InputError([one_line(problem) for problem in problems])

    def _complete(
        self,
        entries: Sequence[Entry[KubeObject]],
        made: Sequence[Sequence[KubeObject]],
        admission: Admission,
    ) -> Manifests:
        classes = admission.defaults.priority_classes
        complete: list[KubeObject] = []
        for entry, more in zip(entries, made, strict=True):
            if self._has_priority(entry, entry.obj, classes):
                created = [each for each in more if self._has_priority(entry, each, classes)]
                is_stored = id(entry) in self._stored
                complete += admission.created(entry.obj, created, stored=is_stored)
        refused = [*(refused for _, refused in self._refused), *admission.refused]
        around = (*self._among, *(each.object for each in refused))
        warnings = [
            *map(one_line, self._findings.all_warnings()),
            *old_versions.notes(self._old),
            *_node_warnings(entries),
            *claim_warnings(complete, around=around),
        ]
        return Manifests(
            complete,
            dict(self._custom.skipped),
            warnings,
            [one_line(note) for note in self._findings.notes],
            dict(self._custom.effects),
            refused,
            len(self._findings.foreign) + len(self._findings.broken_without_effect),
            bool(self._stored or self._among),
            self._empty_paths,
            self._unselected,
            self._custom.idle,
        )

    def _label_nodes(self, entries: Iterable[Entry[KubeObject]]) -> None:
        nodes = [entry.obj for entry in entries if isinstance(entry.obj, Node)]
        if line := kubelet_labels.warning(nodes):
            self._findings.warnings.append(line)
        for entry in entries:
            if isinstance(entry.obj, Node):
                entry.obj = kubelet_labels.labelled(entry.obj)

    def _autoscale(self, entries: Sequence[Entry[KubeObject]]) -> None:
        autoscalers = Autoscalers((*(entry.obj for entry in entries), *self._among))
        if not autoscalers:
            return
        changed = []
        for entry in entries:
            written, entry.obj = entry.obj, autoscalers.scaled(entry.obj)
            if entry.obj is not written and _replicas(written) is not None:
                numbers = f"{_replicas(written)} → {_replicas(entry.obj)}"
                changed.append(f"{title_of(written)} {numbers}")
        if changed:
            line = f"autoscalers change the replicas: {', '.join(changed)}"
            self._findings.warnings.append(line)

    def _problem(self, entry: Entry[KubeObject], line: str) -> None:
        self._findings.problems.append(f"{entry.where} ({entry.title}): {line}")


def _node_warnings(entries: Iterable[Entry[KubeObject]]) -> Iterator[str]:
    lacking = [
        entry
        for entry in entries
        if isinstance(entry.obj, Node)
        and "pods" not in (entry.obj.status.allocatable or entry.obj.status.capacity)
    ]
    if lacking:
        yield (
            f"{lacking[0].where} ({lacking[0].title}){_and_more(lacking)}: "
            "status.allocatable.pods: is missing, so no pod fits; add it, as pods: 110"
        )


def _and_more(found: Sequence[object]) -> str:
    return "" if len(found) == 1 else f" and {len(found) - 1:,} more"


def _replicas(obj: KubeObject) -> int | None:
    return getattr(getattr(obj, "spec", None), "replicas", None)


def _is_stored(obj: KubeObject) -> bool:
    """Whether the object comes from an API server, as far as it tells."""
    metadata = obj.metadata
    if metadata.uid or metadata.resource_version or metadata.creation_timestamp is not None:
        return True
    return isinstance(obj, Pod) and bool(obj.node_name or obj.status.phase)
