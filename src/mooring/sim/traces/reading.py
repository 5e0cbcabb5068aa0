"""Find the files of a trace, detect their format by their columns, and read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mooring.errors import InputError
from mooring.objects.node import Node
from mooring.sim.traces import openb, simple
from mooring.sim.traces.table import Table, read_table
from mooring.sim.traces.trace import Trace, TracePod

#: The files to look for in a folder; the first match is used.
_POD_FILES = ("pods.csv", "pods.parquet", "openb_pod_list_default.csv", "*pod_list*.csv")
_NODE_FILES = ("nodes.csv", "nodes.parquet", "openb_node_list_all_node.csv", "*node_list*.csv")
#: The most lines about duplicate names.
_MOST_LINES = 100


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Choices that the files do not make."""

    #: Only for OpenB.
    sharing: openb.Sharing = openb.Sharing.POOL
    #: Only for OpenB: quality of service → priority.
    priorities: Mapping[str, int] = field(default_factory=dict)


def read_trace(
    path: Path, *, nodes_path: Path | None = None, options: TraceOptions | None = None
) -> Trace:
    """Read a folder, or a file with pods. Without `nodes_path`, the nodes are in the same folder.

    Raises InputError with a line for each problem.
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
        raise InputError([f"{folder}: no such file or folder"])
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(each.name for each in found)
            raise InputError([f"{folder}: has several files with {what}; give one of {names}"])
    raise InputError(
        [f"{folder}: has no file with {what}; it needs {' or '.join(patterns)} (docs/traces.md)"]
    )


def _nodes(table: Table, problems: list[str]) -> list[Node]:
    if "sn" in table.columns:
        return openb.read_nodes(table, problems)
    return simple.read_nodes(table, problems)


def _pods(table: Table, problems: list[str], options: TraceOptions) -> list[TracePod]:
    if "cpu_milli" in table.columns:
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
    return [f"{table.path}: {name} is a duplicate; rename one" for name in [*twice][:_MOST_LINES]]


def _from_zero(pods: list[TracePod]) -> list[TracePod]:
    """Shift the times of the trace, so that the first pod arrives at 0."""
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
