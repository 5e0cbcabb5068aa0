"""From custom resources to the objects that their controllers would create.

    RayJob → RayCluster → Pod
    TrainJob → JobSet → Job
    Rollout → ReplicaSet

Kinds with a description follow it. Any other custom resource with `spec.replicas` and a pod template
in `spec.template` becomes so many pods. If the input has objects whose controller is the custom
resource, it is a dump of a cluster where the controller has done its work, and nothing is made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mooring.objects.decoding import group_of, kind_of
from mooring.objects.gangs import settings_in
from mooring.objects.generated_names import generated_uid, letters_of
from mooring.objects.workload_kinds import computed
from mooring.objects.workload_kinds.descriptions import Description, Descriptions, Made
from mooring.objects.workload_kinds.placeholders import ABSENT, DescriptionError, filled, is_set
from mooring.objects.workload_kinds.world import World

#: A workload that makes another one of its own kind would have no end.
_DEEPEST = 5
#: More than any workload has; a wrong number must not fill the memory.
_MOST = 100_000

_GENERIC = Description(
    group="",
    kind="",
    makes=[
        Made(
            count="${spec.replicas}",
            object={
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"$merge": "${spec.template.metadata}", "generateName": "${name}-"},
                "spec": "${spec.template.spec}",
            },
        )
    ],
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A custom resource as written."""

    group: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class Outcome:
    """What became of one custom resource."""

    #: Objects of the Kubernetes API.
    made: list[dict[str, Any]] = field(default_factory=list)
    #: Whether mooring knows what the resource makes, be it nothing.
    is_known: bool = True
    #: Whether what it makes is in the input already.
    is_in_input: bool = False
    is_suspended: bool = False
    #: What is missing or wrong, one line each.
    warnings: list[str] = field(default_factory=list)
    #: What to know about the pods of these kinds.
    notes: dict[str, str] = field(default_factory=dict)


class Expansion:
    """Expands the custom resources of one input.

    `owned` names every controller that some object has, by namespace, kind and name.
    """

    def __init__(
        self, descriptions: Descriptions, world: World, owned: set[tuple[str, str, str]]
    ) -> None:
        self._descriptions = descriptions
        self._world = world
        self._owned = owned

    def of(self, resource: Resource) -> Outcome:
        outcome = Outcome()
        self._expand(resource, outcome, depth=0)
        return outcome

    def _expand(self, resource: Resource, outcome: Outcome, *, depth: int) -> None:
        description = self._descriptions.get((resource.group, resource.kind))
        if description is None:
            if not _is_generic(resource.body):
                outcome.is_known = depth > 0
                return
            description = _GENERIC
        if (resource.namespace, resource.kind, resource.name) in self._owned:
            outcome.is_in_input = True
            return
        try:
            made = list(self._made(resource, description, outcome))
        except DescriptionError as error:
            outcome.warnings.append(f"{resource.title}: {error}")
            outcome.is_known = False
            return
        if made and description.note:
            outcome.notes[f"{resource.kind}.{resource.group}"] = description.note
        for body in made:
            api_version, kind = str(body.get("apiVersion", "")), body["kind"]
            if kind_of(api_version, kind) is not None:
                outcome.made.append(body)
            elif depth < _DEEPEST:
                name = str(body["metadata"].get("name", ""))
                inner = Resource(group_of(api_version), kind, resource.namespace, name, body)
                self._expand(inner, outcome, depth=depth + 1)

    def _made(
        self, resource: Resource, description: Description, outcome: Outcome
    ) -> Iterator[dict[str, Any]]:
        values = _values(resource)
        if description.suspended and is_set(filled(description.suspended, values)):
            outcome.is_suspended = True
            return
        if not self._find_needed(resource, description, values, outcome):
            return
        if description.computed:
            compute = computed.FUNCTIONS.get(description.computed)
            if compute is None:
                raise DescriptionError(f"nothing computes {description.computed!r}")
            values |= compute(values, self._world)
        for each in description.makes:
            for inside in _each(each, values):
                if not is_set(filled(each.when, inside)):
                    continue
                for index in range(_count(each, inside)):
                    yield _object(each, inside | {"index": index}, resource)

    def _find_needed(
        self,
        resource: Resource,
        description: Description,
        values: dict[str, Any],
        outcome: Outcome,
    ) -> bool:
        for name, needed in description.needs.items():
            kind, wanted = filled(needed.kind, values), filled(needed.name, values)
            if wanted is ABSENT:
                continue
            group = filled(needed.group, values)
            group = "" if group is ABSENT else group
            found = self._world.find(group, kind, resource.namespace, wanted)
            if found is not None:
                values[name] = found
            elif not needed.optional:
                outcome.warnings.append(
                    f"{resource.title}: it needs the {kind} {wanted}, which was not read; add it"
                )
                outcome.is_known = False
                return False
        return True


def _is_generic(body: Mapping[str, Any]) -> bool:
    spec = body.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    inner = template.get("spec") if isinstance(template, Mapping) else None
    return (
        isinstance(inner, Mapping)
        and isinstance(inner.get("containers"), list)
        and isinstance(spec, Mapping)
        and isinstance(spec.get("replicas"), int)
    )


def _values(resource: Resource) -> dict[str, Any]:
    text = json.dumps(resource.body.get("spec"), sort_keys=True, default=str)
    return {
        **resource.body,
        "name": resource.name,
        "namespace": resource.namespace,
        "uid": _uid(resource),
        "hash": letters_of(text),
        "suffix": letters_of(f"{resource.namespace}/{resource.name}")[:5],
    }


def _uid(resource: Resource) -> str:
    metadata = resource.body.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return str(
        uid or generated_uid(resource.group, resource.kind, resource.namespace, resource.name)
    )


def _each(made: Made, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not made.each:
        yield values
        return
    found = filled(made.each, values)
    if isinstance(found, Mapping):
        for key, item in found.items():
            yield values | {"key": key, "lowerKey": str(key).lower(), "item": item}
    elif isinstance(found, Sequence) and not isinstance(found, str):
        for position, item in enumerate(found):
            yield values | {"position": position, "item": item}


def _count(made: Made, values: Mapping[str, Any]) -> int:
    factors = made.count if isinstance(made.count, list) else [made.count]
    numbers = [_number(filled(each, values)) for each in factors]
    return max(0, min(math.prod(numbers), _MOST))


def _number(value: Any) -> int:
    """A count may be text: the value of an annotation."""
    if isinstance(value, str):
        if not value.strip().lstrip("-").isdecimal():
            raise DescriptionError(f"{value!r} is not a whole number")
        return int(value)
    return value if isinstance(value, int) else 0


def _object(made: Made, values: Mapping[str, Any], resource: Resource) -> dict[str, Any]:
    body = filled(made.object, values)
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise DescriptionError("its description makes something without a kind")
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    owner: dict[str, Any] = {
        "apiVersion": resource.body.get("apiVersion", ""),
        "kind": resource.kind,
        "name": resource.name,
        "uid": values["uid"],
        "controller": True,
    }
    if made.owner:
        owner |= {key: str(filled(text, values)) for key, text in made.owner.items()}
        group = group_of(owner["apiVersion"])
        owner["uid"] = generated_uid(group, owner["kind"], resource.namespace, owner["name"])
    if "name" in metadata and "generateName" not in metadata:
        metadata["name"] = str(metadata["name"]).lower()
    metadata = _with_gang(metadata, resource)
    body["metadata"] = {**metadata, "namespace": resource.namespace, "ownerReferences": [owner]}
    if "generateName" in metadata:
        body["metadata"].pop("name", None)
    return body


def _with_gang(metadata: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """What the resource asks for as a gang holds for what it makes, unless that says otherwise."""
    above = resource.body.get("metadata")
    asked = settings_in(_texts(above, "labels"), _texts(above, "annotations"))
    if not asked:
        return metadata
    own = settings_in(_texts(metadata, "labels"), _texts(metadata, "annotations"))
    return {**metadata, "annotations": _texts(metadata, "annotations") | asked | own}


def _texts(metadata: Any, name: str) -> dict[str, Any]:
    found = metadata.get(name) if isinstance(metadata, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}
