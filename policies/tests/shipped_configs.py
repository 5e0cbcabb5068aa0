"""The configurations that come with the package, read with its plugins known."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

from mooring.config import load_config
from mooring.config.types import KubeSchedulerConfiguration
from mooring.plugins.registry import default_registry
from mooring.runtime.registry import Registry

FOLDER = Path(__file__).parents[1]
ENTRY_POINTS: dict[str, str] = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"][
    "entry-points"
]["mooring.plugins"]


def configuration(name: str) -> KubeSchedulerConfiguration:
    return load_config((FOLDER / "configs" / f"{name}.yaml").read_bytes())


def registry() -> Registry:
    """Also in an environment in which the package is not installed."""
    known = default_registry()
    for name, target in ENTRY_POINTS.items():
        if name not in known.names():
            module, _, attribute = target.partition(":")
            known.add(name, getattr(importlib.import_module(module), attribute))
    return known
