"""What is sent to a worker, which may be another machine: everything that a cell needs but mooring itself.

Traces and manifests are read once, before the first cell, and sent as objects: no cell sees an input that has
changed since the sweep began. Plugins that lie beside a configuration are sent as source; another machine
imports them from there (`sent_modules`).
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass
from functools import lru_cache

from mooring.config import KubeSchedulerConfiguration
from mooring.objects.meta import KubeObject
from mooring.sim.traces.trace import Trace
from mooring.sweep.grid import Cell

#: A worker keeps this many inputs and configurations between cells.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class SweepInput:
    """A trace or the objects of a cluster, as a worker needs them."""

    trace: Trace | None = None
    objects: tuple[KubeObject, ...] = ()
    #: Whether the pods of a trace end.
    pods_end: bool = True
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """A configuration, as a worker needs it."""

    config: KubeSchedulerConfiguration | None = None
    #: The modules of plugins beside its file: relative path → content.
    modules: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """One cell with what it needs."""

    cell: Cell
    #: The version of mooring that made it.
    version: str
    #: A packed SweepConfig and a packed SweepInput.
    config: bytes
    input: bytes


def pack(value: SweepConfig | SweepInput) -> bytes:
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


@lru_cache(maxsize=_KEPT)
def unpack_config(packed: bytes) -> SweepConfig:
    found: SweepConfig = pickle.loads(zlib.decompress(packed))
    return found


@lru_cache(maxsize=_KEPT)
def unpack_input(packed: bytes) -> SweepInput:
    found: SweepInput = pickle.loads(zlib.decompress(packed))
    return found
