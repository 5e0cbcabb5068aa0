"""A Kubernetes scheduler that you program in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mooring.library import Cluster as Cluster
    from mooring.sweep import run_sweep as run_sweep

__version__ = "0.1.0"

#: Public names → the module they live in. They are imported when they are used: NumPy takes longer to load
#: than `mooring --help` takes to print.
_PUBLIC = {"Cluster": "mooring.library", "run_sweep": "mooring.sweep"}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        import importlib

        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
