"""mooring's own format of a trace: a table of nodes and a table of pods, in CSV or Parquet; docs/traces.md.

Quantities are written as in Kubernetes. A column with a `/` in its name is an extended resource.
"""

from __future__ import annotations

from mooring.objects.meta import ResourceList
from mooring.objects.node import Node
from mooring.objects.pod import PodSpec
from mooring.objects.quantity import parse_quantity
from mooring.objects.taints import Taint, Toleration
from mooring.objects.well_known import ZONE
from mooring.sim.traces.objects import NAMESPACE, PodMaker, make_node, make_spec
from mooring.sim.traces.table import Row, Table
from mooring.sim.traces.trace import TracePod

NODE_COLUMNS = ("name", "cpu", "memory")
POD_COLUMNS = ("name", "arrives_s", "cpu", "memory")

_KNOWN_NODE_COLUMNS = frozenset((*NODE_COLUMNS, "pods", "zone", "labels", "taints"))
_KNOWN_POD_COLUMNS = frozenset(
    (
        *POD_COLUMNS,
        "namespace",
        "runs_s",
        "leaves_s",
        "priority",
        "labels",
        "node_selector",
        "tolerations",
        "workload",
    )
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PODS_A_NODE = "110"


def read_nodes(table: Table, problems: list[str]) -> list[Node]:
    table.check_columns(NODE_COLUMNS)
    _check_unknown(table, _KNOWN_NODE_COLUMNS, problems)
    return [_node(row, table) for row in table.each(problems)]


def read_pods(table: Table, problems: list[str]) -> list[TracePod]:
    table.check_columns(POD_COLUMNS)
    _check_unknown(table, _KNOWN_POD_COLUMNS, problems)
    maker = PodMaker()
    return [_pod(row, table, maker) for row in table.each(problems)]


def _check_unknown(table: Table, known: frozenset[str], problems: list[str]) -> None:
    for name in table.columns:
        if name not in known and "/" not in name:
            problems.append(
                f"{table.path}: unknown column {name!r}; use one of {', '.join(sorted(known))}, or a"
                " resource with a '/' in its name"
            )


def _node(row: Row, table: Table) -> Node:
    allocatable = _resources(row, table, ("cpu", "memory", "pods"))
    allocatable.setdefault("pods", parse_quantity(_PODS_A_NODE))
    zone = row.text("zone")
    labels = {**({ZONE: zone} if zone else {}), **row.pairs("labels")}
    return make_node(row.name("name"), allocatable, labels, _taints(row))


def _pod(row: Row, table: Table, maker: PodMaker) -> TracePod:
    # The columns that the spec depends on.
    shape = tuple(
        (column, row.text(column))
        for column in table.columns
        if "/" in column or column in ("cpu", "memory", "priority", "node_selector", "tolerations")
    )
    workload = row.text("workload")
    labels = {**({"app": workload} if workload else {}), **row.pairs("labels")}
    pod = maker.make(
        row.name("name"),
        shape,
        lambda: _spec(row, table),
        namespace=row.text("namespace") or NAMESPACE,
        labels=labels,
        workload=workload,
    )
    return TracePod(
        pod,
        row.seconds("arrives_s") or 0.0,
        run_s=row.seconds("runs_s"),
        leaves_s=row.seconds("leaves_s"),
    )


def _spec(row: Row, table: Table) -> PodSpec:
    return make_spec(
        _resources(row, table, ("cpu", "memory")),
        priority=row.integer("priority"),
        node_selector=row.pairs("node_selector") or None,
        tolerations=[
            Toleration(key=key, operator="Exists")
            for key in filter(None, row.text("tolerations").split(";"))
        ],
    )


def _resources(row: Row, table: Table, named: tuple[str, ...]) -> ResourceList:
    columns = (column for column in table.columns if column in named or "/" in column)
    read = ((column, row.quantity(column)) for column in columns)
    return {column: quantity for column, quantity in read if quantity is not None}


def _taints(row: Row) -> list[Taint]:
    """Parse `key=value:Effect;…`."""
    taints = []
    for text in filter(None, row.text("taints").split(";")):
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        if not key or effect not in _EFFECTS:
            row.problem(
                "taints", f"{text!r} is not key=value:Effect with one of {', '.join(_EFFECTS)}"
            )
            continue
        taints.append(Taint(key=key, value=value, effect=effect))
    return taints
