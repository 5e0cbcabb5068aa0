"""Small sweeps for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mooring.sweep.grid import read_grid
from mooring.sweep.loading import LoadedGrid, load_grid

DATA = Path(__file__).parents[1] / "data"

MOST_ALLOCATED: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ]
        }
    ],
}


def small_grid(**fields: Any) -> dict[str, Any]:
    """A configuration, a trace and two seeds, unless told otherwise."""
    return {"inputs": [{"name": "trace", "trace": str(DATA / "trace")}], "seeds": 2, **fields}


def loaded_grid(**fields: Any) -> LoadedGrid:
    return load_grid(read_grid(small_grid(**fields)))
