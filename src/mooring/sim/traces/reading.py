"""Finding a trace's files, telling their form by their columns, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mooring.errors import InputError
from mooring.objects.node import Node
from mooring.sim.traces import openb, simple
from mooring.sim.traces.table import Table, read_table
from mooring.sim.traces.trace import Trace, TracePod

#: In a folder, the first of these that is there.
_POD_FILES = ("pods.csv", "pods.parquet", "openb_pod_list_default.csv", "*pod_list*.csv")
_NODE_FILES = ("nodes.csv", "nodes.parquet", "openb_node_list_all_node.csv", "*node_list*.csv")
#: How many names that occur twice are worth a line each.
_MOST_LINES = 100


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What the files leave open."""

    #: Only for OpenB.
    sharing: openb.Sharing = openb.Sharing.POOL
    #: Only for OpenB: quality of service → priority.
    priorities: Mapping[str, int] = field(default_factory=dict)


def read_trace(
    path: Path, *, nodes_path: Path | None = None, options: TraceOptions | None = None
) -> Trace:
    """A folder, or the file of the pods; that of the nodes lies beside it unless it is named.

    Raises InputError with a line for each thing that is wrong.
    """
    options = options or TraceOptions()
    folder = path if path.is_dir() else path.parent
    pods_table = read_table(_find(path, _POD_FILES, "pods") if path.is_dir() else path)
    nodes_table = read_table(nodes_path or _find(folder, _NODE_FILES, "nodes"))
    problems: list[str] = []
    nodes = _nodes(nodes_table, problems)
    pods = _pods(pods_table, problems, options)
    problems += _twice(nodes_table, (node.name for node in nodes))
    problems += _twice(pods_table, (each.pod.key for each in pods))
    if problems:
        raise InputError(problems)
    is_openb = "sn" in nodes_table.columns
    return Trace(
        name=str(pods_table.path),
        nodes=nodes,
        pods=_from_zero(sorted(pods, key=lambda each: each.arrives_s)),
        notes=openb.NOTES if is_openb else (),
    )


def _find(folder: Path, patterns: Iterable[str], what: str) -> Path:
    if not folder.is_dir():
        raise InputError([f"{folder}: cannot be read: no such file or folder"])
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(each.name for each in found)
            raise InputError([f"{folder}: has several files of {what}; name one of {names}"])
    raise InputError(
        [f"{folder}: has no file of {what}; looked for {', '.join(patterns)} (docs/traces.md)"]
    )


def _nodes(table: Table, problems: list[str]) -> list[Node]:
    if "sn" in table.columns:
        return openb.read_nodes(table, problems)
    return simple.read_nodes(table, problems)


def _pods(table: Table, problems: list[str], options: TraceOptions) -> list[TracePod]:
    if "creation_time" in table.columns:
        return openb.read_pods(
            table, problems, sharing=options.sharing, priorities=options.priorities
        )
    return simple.read_pods(table, problems)


def _twice(table: Table, names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return [f"{table.path}: {name} is there twice; rename one" for name in [*twice][:_MOST_LINES]]


def _from_zero(pods: list[TracePod]) -> list[TracePod]:
    """Times of traces begin anywhere, even at the epoch; here the first pod arrives at 0."""
    start_s = pods[0].arrives_s if pods else 0.0
    if not start_s:
        return pods
    return [
        TracePod(
            each.pod,
            each.arrives_s - start_s,
            each.run_s,
            None if each.leaves_s is None else max(0.0, each.leaves_s - start_s),
        )
        for each in pods
    ]
