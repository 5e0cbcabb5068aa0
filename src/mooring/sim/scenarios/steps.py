"""The steps of a scenario: each changes the cluster, and then checks expectations.

After each step the cluster settles: pods are placed or rejected, and preempted and evicted pods terminate.
That takes as much virtual time as needed. It does not wait for pods to finish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mooring.errors import InputError
from mooring.objects.documents import Document
from mooring.sim.scenarios.expectation_fields import read_checks
from mooring.sim.scenarios.expectations import Check, Difference
from mooring.sim.scenarios.fields import (
    FieldError,
    Fields,
    Path,
    Source,
    described,
    seconds,
    text,
    whole_number,
)
from mooring.sim.scenarios.node_choice import NodeChoice, parse_nodes
from mooring.sim.scenarios.pod_conditions import length
from mooring.sim.scenarios.references import Reference, parse_reference
from mooring.sim.scenarios.scenario_cluster import Action, ScenarioCluster, waited_for
from mooring.sim.scenarios.selector_text import parse_selector
from mooring.sim.scenarios.view import Subject

#: The default timeout of `waitUntil`.
DEFAULT_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Step:
    """One action, and the expectations after it."""

    path: Path
    #: What it does, in short.
    title: str
    #: When, in virtual time since the start of the scenario; None means at once.
    at_s: float | None
    action: Action | None
    expect: tuple[Check, ...]
    #: Whether the scenario ends if this step fails.
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """The action of a step, and its title."""

    title: str
    action: Action


def read_step(source: Source, path: Path, value: Any) -> Step | None:
    """None if the step is invalid; the source has the problems."""
    fields = Fields(source, path, value)
    found = [name for name in fields.given if name in _ACTS]
    if len(found) > 1:
        fields.wrong(f"has several actions ({', '.join(found)}); write a step for each")
    fields.knows(*_ACTS)
    name = fields.read("name", text, "")
    at_s = fields.read("at", seconds, None)
    expect = read_checks(fields)
    act = _ACTS[found[0]](fields) if len(found) == 1 else None
    fields.finish()
    if not found and not fields.given:
        fields.wrong(f"is empty; add one of {', '.join(_ACTS)} or expect")
    if not found and not expect and at_s is None:
        return None
    title = name or (act.title if act is not None else "check")
    action = act.action if act is not None else None
    return Step(path, title, at_s, action, expect, needed="waitUntil" in found)


# Actions


def _apply(fields: Fields) -> Act | None:
    paths, documents = read_objects(fields, "apply")
    kinds = [f"{document.kind} {_name(document)}" for document in documents]
    return Act(
        f"apply {', '.join([*paths, *kinds])}", lambda cluster: _applied(cluster, paths, documents)
    )


def _applied(cluster: ScenarioCluster, paths: list[str], documents: list[Document]) -> None:
    cluster.apply(paths, documents)


def read_objects(fields: Fields, name: str) -> tuple[list[str], list[Document]]:
    """The names of files and folders, and the objects in the scenario itself."""
    paths: list[str] = []
    documents: list[Document] = []
    for path, value in fields.items(name):
        if isinstance(value, str) and value:
            paths.append(value)
        elif isinstance(value, dict) and {"apiVersion", "kind"} <= value.keys():
            where = fields.source.where(path)
            documents.append(Document(where, str(value["apiVersion"]), str(value["kind"]), value))
        else:
            problem = "the name of a file, or an object with apiVersion and kind"
            fields.source.wrong(path, f"must be {problem}, not {described(value)}")
    return paths, documents


def _name(document: Document) -> str:
    body = document.body
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _delete(fields: Fields) -> Act | None:
    references: list[Reference] = []
    subjects: list[Subject] = []
    for path, value in fields.items("delete"):
        if isinstance(value, dict):
            inner = Fields(fields.source, path, value)
            selector = inner.read("pods", parse_selector, None)
            subjects.append(Subject(selector, inner.read("namespace", text, "")))
            inner.finish()
            if selector is None and "pods" not in inner.given:
                inner.wrong("must have pods, with a label selector")
            continue
        try:
            references.append(parse_reference(value))
        except FieldError as error:
            fields.source.wrong(path, str(error))

    def act(cluster: ScenarioCluster) -> None:
        for reference in references:
            cluster.delete(reference.among(cluster.simulation.api))
        for subject in subjects:
            cluster.delete_pods(subject)

    what = [*map(str, references), *("pods" for _ in subjects)]
    return Act(f"delete {', '.join(what)}", act)


def _scale(fields: Fields) -> Act | None:
    inner = fields.inner("scale")
    reference = inner.read("workload", parse_reference, None)
    replicas = inner.read("replicas", whole_number, None)
    inner.finish()
    for name in ("workload", "replicas"):
        if name not in inner.given:
            inner.wrong("is missing", name)
    if reference is None or replicas is None:
        return None
    return Act(
        f"scale {reference} to {replicas}",
        lambda cluster: cluster.workloads.scale(reference.among(cluster.simulation.api), replicas),
    )


def _on_nodes(
    name: str, do: Callable[[ScenarioCluster, NodeChoice], None]
) -> Callable[[Fields], Act | None]:
    def read(fields: Fields) -> Act | None:
        choice = fields.read(name, parse_nodes, None)
        if choice is None:
            return None
        return Act(f"{name} {choice.text}", lambda cluster: do(cluster, choice))

    return read


def _wait(fields: Fields) -> Act | None:
    length_s = fields.read("wait", seconds, 0.0)
    return Act(f"wait {length(length_s)}", lambda cluster: cluster.wait(cluster.now_s + length_s))


def _wait_until(fields: Fields) -> Act | None:
    timeout_s = fields.read("timeout", seconds, DEFAULT_TIMEOUT_S)
    expectations = [check.expectation for check in read_checks(fields, "waitUntil")]

    def act(cluster: ScenarioCluster) -> Difference | None:
        for expectation in expectations:
            difference = cluster.wait_until(expectation, timeout_s)
            if difference is not None:
                return waited_for(timeout_s, difference)
        return None

    return Act(f"wait until {' and '.join(each.text for each in expectations)}", act)


_ACTS: dict[str, Callable[[Fields], Act | None]] = {
    "apply": _apply,
    "delete": _delete,
    "scale": _scale,
    "cordon": _on_nodes("cordon", ScenarioCluster.cordon),
    "uncordon": _on_nodes("uncordon", ScenarioCluster.uncordon),
    "drain": _on_nodes("drain", ScenarioCluster.drain),
    "fail": _on_nodes("fail", lambda cluster, choice: cluster.fail(cluster.chosen(choice))),
    "recover": _on_nodes("recover", ScenarioCluster.recover),
    "wait": _wait,
    "waitUntil": _wait_until,
}


def check_time(cluster: ScenarioCluster, at_s: float) -> None:
    """Raises InputError if that time has passed."""
    if at_s < cluster.now_s:
        raise InputError(
            [f"{length(at_s)} has passed: the time is already {length(cluster.now_s)}"]
        )
