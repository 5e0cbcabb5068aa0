"""Plugins that are sent to another machine as source, and imported there.

A worker lives longer than a sweep. If the source of a module has changed since it was imported, the module is
imported again.
"""

from __future__ import annotations

import atexit
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from mooring.sweep.cell import Measures, run_cell
from mooring.sweep.work import Work, unpack_config

#: Relative path → content.
Modules = tuple[tuple[str, bytes], ...]

#: Top module → the files that it was last imported from. Imported modules belong to the process, and so
#: does this.
_placed: dict[str, Modules] = {}


def run_sent_cell(work: Work) -> Measures:
    """As `run_cell`, on a machine that does not have the files of the sweep."""
    place_modules(unpack_config(work.config).modules)
    return run_cell(work)


def place_modules(modules: Modules) -> None:
    """Make the modules importable, in place of others of the same name."""
    by_name: dict[str, list[tuple[str, bytes]]] = {}
    for path, content in modules:
        by_name.setdefault(Path(path).parts[0].removesuffix(".py"), []).append((path, content))
    changed = {
        name: tuple(found) for name, found in by_name.items() if _placed.get(name) != tuple(found)
    }
    if not changed:
        return
    folder = Path(tempfile.mkdtemp(prefix="mooring-sweep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, files in changed.items():
        for path, content in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        _forget(name)
        _placed[name] = files
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def _forget(name: str) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[module]
