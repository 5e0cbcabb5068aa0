"""CoolNodes: pods go to nodes with a low measured load, and to none above a limit.

The load comes from outside: here from a JSON file, in production from a metrics server. It is read beside the
scheduling cycle and fed to a column; the cycle only reads the column, so it never waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    FedColumn,
    Handle,
    Ints,
    NodeInfo,
    Rows,
    RowVerdicts,
    Status,
    by_mask,
    sleep,
    unschedulable,
)

COLUMN = "load_percent"
HOT = unschedulable("node(s) are too busy")


class CoolNodesArgs(msgspec.Struct, frozen=True, rename="camel"):
    """`pluginConfig` in the configuration."""

    #: A file with the load of each node: `{"node-1": 35}`. Empty: nothing is read.
    load_file: str = ""
    #: How often it is read; 0: once.
    every_seconds: float = 0.0
    #: Nodes with a higher load take no pods.
    most_percent: int = 80


def read_load(file: str) -> dict[str, int]:
    """A small file. A metrics server would be asked with an asynchronous client."""
    load: dict[str, int] = json.loads(Path(file).read_text(encoding="utf-8"))
    return load


class CoolNodes:
    name = "CoolNodes"
    Args = CoolNodesArgs
    own_columns = (FedColumn(COLUMN),)

    def __init__(self, args: CoolNodesArgs, handle: Handle) -> None:
        self._args = args
        self._clock = handle.clock
        self._load = handle.column(COLUMN)
        if args.load_file:
            handle.spawn(self._feed())

    async def _feed(self) -> None:
        while True:
            for node, load in read_load(self._args.load_file).items():
                self._load.set(node, load)
            if not self._args.every_seconds:
                return
            await sleep(self._clock, self._args.every_seconds)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if self._load.at(node) <= self._args.most_percent else HOT

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        return by_mask(columns.own(COLUMN)[rows] <= self._args.most_percent, HOT)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - int(self._load.at(node)))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores: Ints = np.maximum(0, 100 - columns.own(COLUMN)[rows])
        return scores

    def depends_on(self, pod: Pod) -> Depends:
        """What is fed to a node counts as its usage."""
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {}
