"""The objects of kinds that mooring has no type for: make pods of them, or say what is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.objects.decoding import group_of, without_nulls
from mooring.objects.documents import Document
from mooring.objects.duplicates import Entry, resolved
from mooring.objects.findings import SUSPENDED, Findings, listed
from mooring.objects.generated_names import letters_of
from mooring.objects.kinds import Deployment, ReplicaSet, StatefulSet
from mooring.objects.meta import KubeObject, ObjectMeta, encode_hook
from mooring.objects.skipped_kinds import Effect, effect_of
from mooring.objects.template_marks import mark_in_object
from mooring.objects.titles import DEFAULT_NAMESPACE, one_line
from mooring.objects.validation import metadata_problems
from mooring.objects.workload_kinds.descriptions import Descriptions
from mooring.objects.workload_kinds.expansion import Expansion, Outcome, Resource
from mooring.objects.workload_kinds.world import World


@dataclass(frozen=True, slots=True)
class MadeObject:
    """An object that the controller of a custom resource would create."""

    #: The position of the custom resource among all documents.
    order: int
    #: Where the custom resource was read, and its title.
    where: str
    title: str
    body: dict[str, Any]


@dataclass(slots=True)
class CustomResources:
    """Collects custom resources, then expands them."""

    descriptions: Descriptions
    #: Kind (`Ingress.networking.k8s.io`) → the number of skipped objects.
    skipped: Counter[str] = field(default_factory=Counter)
    #: The same kinds → what skipping them means for the answer.
    effects: dict[str, Effect] = field(default_factory=dict)
    #: The workloads of which nothing is made, though they are not suspended.
    idle: list[str] = field(default_factory=list)
    _found: list[tuple[int, Document, Entry[dict[str, Any]]]] = field(default_factory=list)

    def add(self, document: Document, order: int) -> None:
        body = document.body
        if not isinstance(body, dict):
            body = without_nulls(msgspec.json.decode(body))
        title = _resource(document, body)
        name = f"{title.namespace}/{title.name}" if title.name else ""
        entry = Entry.of(document, body, f"{document.kind} {name}".rstrip())
        self._found.append((order, document, entry))

    def made(self, objects: Iterable[KubeObject], findings: Findings) -> Iterator[MadeObject]:
        """What the resources become. The others are counted as skipped."""
        objects = list(objects)
        orders = {id(entry): (order, document) for order, document, entry in self._found}
        entries = self._counting(findings)
        if not entries:
            return
        expansion = Expansion(
            self.descriptions, self._world(entries, objects), self._owned(objects)
        )
        notes: dict[str, str] = {}
        suspended: list[str] = []
        for entry in entries:
            order, document = orders[id(entry)]
            resource = _resource(document, entry.obj)
            outcome = expansion.of(resource)
            notes |= outcome.notes
            mark = _mark(entry.obj, outcome)
            if mark:
                findings.add_template(entry.file or entry.where, mark)
                continue
            problems = list(metadata_problems(ObjectMeta(name=resource.name)))
            if outcome.made and problems:
                findings.problems += [
                    f"{entry.where} ({entry.title}): {path}: {problem}"
                    for path, problem in problems
                ]
                continue
            findings.warnings += [f"{entry.where}: {line}" for line in outcome.warnings]
            if not outcome.is_known:
                self._skip(resource)
            elif not outcome.made and not outcome.is_in_input:
                (suspended if outcome.is_suspended else self.idle).append(entry.title)
            for body in outcome.made:
                yield MadeObject(order, entry.where, entry.title, body)
        findings.notes += [f"{kind}: {note}" for kind, note in notes.items()]
        if suspended:
            findings.notes.append(f"{SUSPENDED}: {listed(suspended)}")
        if self.idle:
            findings.notes.append(f"no pods are made of {listed(self.idle)}")

    def _counting(self, findings: Findings) -> list[Entry[dict[str, Any]]]:
        """Each resource once. Of kinds that make no pods, it does not matter which one counts."""
        unique = []
        for order, document, entry in self._found:
            resource = _resource(document, entry.obj)
            is_workload = (resource.group, resource.kind) in self.descriptions
            key = (resource.group, resource.kind, resource.namespace, resource.name)
            unique.append((key if is_workload and resource.name else order, entry))
        return resolved(unique, findings)

    def _skip(self, resource: Resource) -> None:
        kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        kind = one_line(kind)
        effect = effect_of(resource.group, resource.kind, resource.body)
        if (resource.group, resource.kind) in self.descriptions:
            effect = Effect.MAKES_PODS
        self.skipped[kind] += 1
        # Among the objects of one kind, the most important one decides.
        if self.effects.get(kind, Effect.NONE) is Effect.NONE or effect is Effect.MAKES_PODS:
            self.effects[kind] = effect

    def _world(
        self, entries: Iterable[Entry[dict[str, Any]]], objects: Iterable[KubeObject]
    ) -> World:
        world = World()
        for obj in objects:
            if isinstance(obj, Deployment | StatefulSet | ReplicaSet):
                world.add("apps", obj.kind, msgspec.to_builtins(obj, enc_hook=encode_hook))
        for entry in entries:
            group = group_of(str(entry.obj.get("apiVersion", "")))
            world.add(group, str(entry.obj.get("kind", "")), entry.obj)
        return world

    def _owned(self, objects: Iterable[KubeObject]) -> set[tuple[str, str, str]]:
        owned = set()
        for obj in objects:
            owner = obj.metadata.controller
            if owner is not None:
                owned.add((obj.namespace, owner.kind, owner.name))
        for _, document, entry in self._found:
            metadata = entry.obj.get("metadata")
            references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
            for each in references if isinstance(references, list) else ():
                if isinstance(each, dict) and each.get("controller"):
                    namespace = _resource(document, entry.obj).namespace
                    owned.add((namespace, str(each.get("kind")), str(each.get("name"))))
        return owned


def _mark(resource: dict[str, Any], outcome: Outcome) -> str:
    """What a template has yet to fill in; much text of custom resources is for other programs."""
    if not mark_in_object(resource) or not (outcome.made or outcome.warnings):
        return ""
    return mark_in_object([resource.get("metadata"), outcome.made, outcome.warnings])


def _resource(document: Document, body: dict[str, Any]) -> Resource:
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name")
    if not name and metadata.get("generateName"):
        name = f"{metadata['generateName']}{letters_of(document.where)[:5]}"
    return Resource(
        group_of(document.api_version),
        document.kind,
        str(metadata.get("namespace") or DEFAULT_NAMESPACE),
        str(name or ""),
        body if "apiVersion" in body else {**body, "apiVersion": document.api_version},
    )
