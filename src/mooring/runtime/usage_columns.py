"""Plugins that see the pods of a node only through the columns of requests and pod counts.

Such a plugin cannot tell a node from a row in which these columns were changed. So what it would say of nodes
with pods added or taken away can be asked for many nodes at once. A plugin says so of itself with
`reads_usage_columns = True`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mooring.cluster.columns import Columns
from mooring.framework.interface import Depends
from mooring.objects.pod import Pod
from mooring.runtime.plugin_calls import Calls


def ignores_pods(call: Calls, pod: Pod) -> bool:
    """Whether a filter looks at nodes alone, all rows at once."""
    return call.filter_rows is not None and call.depends(pod) in (Depends.NODE, Depends.NODES)


def reads_usage_columns(call: Calls) -> bool:
    return call.filter_rows is not None and sees_usage_columns_only(call)


def sees_usage_columns_only(call: Calls) -> bool:
    """Whether the forms for rows, Filter and Score, see a node's pods only through these columns."""
    return bool(getattr(call.plugin, "reads_usage_columns", False))


def changeable(columns: Columns) -> Columns:
    """The same columns, with requests and pod counts of their own."""
    other = copy.copy(columns)
    other.requested = columns.requested.copy()
    other.pod_count = columns.pod_count.copy()
    return other


@contextmanager
def pods_added(columns: Columns, pods_by_row: Mapping[int, Sequence[Pod]]) -> Iterator[None]:
    """The pods count in these columns while the block runs. This costs less than a copy of all rows."""
    rows = list(pods_by_row)
    requested, pod_count = columns.requested[:, rows], columns.pod_count[rows]
    add_pods(columns, pods_by_row)
    try:
        yield
    finally:
        columns.requested[:, rows] = requested
        columns.pod_count[rows] = pod_count


def add_pods(columns: Columns, pods_by_row: Mapping[int, Sequence[Pod]]) -> None:
    for row, pods in pods_by_row.items():
        columns.pod_count[row] += len(pods)
        for name, index in columns.resources.items():
            columns.requested[index, row] += sum(pod.held.get(name, 0) for pod in pods)
