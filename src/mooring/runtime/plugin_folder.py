"""Plugins that lie beside the configuration that names them, as `module:Class`."""

from __future__ import annotations

import sys
from pathlib import Path


def find_plugins_beside(config_file: Path) -> None:
    """Behind everything else, so that no file there is taken for a module of another name."""
    folder = str(config_file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
