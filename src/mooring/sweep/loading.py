"""Read the configurations and inputs of a grid, and give each cell a fingerprint.

A fingerprint says what a result depends on: the configuration and the source of its plugins, the input, seed
and load, and the version of mooring. A result is used again only for a cell with the same fingerprint.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

import mooring
from mooring.config import KubeSchedulerConfiguration, load_config, write_config
from mooring.errors import ConfigError, InputError
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import encode_hook
from mooring.objects.node_groups import NodeGroup, node_documents, parse_node_group
from mooring.plugins.registry import default_registry
from mooring.runtime.build import plugin_problems
from mooring.runtime.plugin_folder import find_plugins_beside
from mooring.runtime.registry import installed_plugins
from mooring.sim.scenarios.fields import spelled
from mooring.sim.traces.reading import TraceOptions, read_trace
from mooring.sim.traces.trace import Trace
from mooring.sweep.grid import Cell, ConfigEntry, Grid, InputEntry
from mooring.sweep.work import SweepConfig, SweepInput, Work, pack

#: Part of each fingerprint; raise it when measures change their meaning.
_MEASURES_VERSION = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """A configuration or an input, ready to be sent."""

    content: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class LoadedGrid:
    """A grid with everything that it names."""

    grid: Grid
    configs: Mapping[str, Packed]
    inputs: Mapping[str, Packed]
    #: What the readers of manifests and configurations want users to know.
    notes: tuple[str, ...] = field(default=())

    def fingerprint(self, cell: Cell) -> str:
        parts = (
            _MEASURES_VERSION,
            mooring.__version__,
            self.configs[cell.config].digest,
            self.inputs[cell.input].digest,
            cell.seed,
            cell.load,
        )
        return _digest(repr(parts).encode())

    def work(self, cell: Cell) -> Work:
        config, given = self.configs[cell.config], self.inputs[cell.input]
        return Work(cell, mooring.__version__, config.content, given.content)


def load_grid(grid: Grid) -> LoadedGrid:
    """Raises InputError with every problem of every file."""
    problems: list[str] = []
    notes: list[str] = []
    configs: dict[str, Packed] = {}
    inputs: dict[str, Packed] = {}
    for config in grid.configs:
        try:
            configs[config.name] = _load_config(config, notes)
        except (ConfigError, InputError) as error:
            where = _where(grid, config) if config.path is None else str(config.path)
            problems += (f"{where}: {line}" for line in error.problems)
    for each in grid.inputs:
        try:
            inputs[each.name] = _load_input(each, grid.folder, notes)
        except InputError as error:
            problems += (f"{_where(grid, each)}: {line}" for line in error.problems)
    if problems:
        raise InputError(problems)
    return LoadedGrid(grid, configs, inputs, tuple(notes))


def _where(grid: Grid, entry: ConfigEntry | InputEntry) -> str:
    """`sweep.yaml:7: inputs[1]`; without the file if there is none."""
    return grid.source.where(entry.at) if grid.source.text else spelled(entry.at).removesuffix(": ")


def _digest(*parts: bytes) -> str:
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


# Configurations


def _load_config(entry: ConfigEntry, notes: list[str]) -> Packed:
    """Raises ConfigError and InputError."""
    source: bytes | Mapping[str, Any] | None = entry.content
    if entry.path is not None:
        source = _content(entry.path)
        find_plugins_beside(entry.path)
    if source is None:
        return Packed(pack(SweepConfig()), "default")
    told: list[str] = []
    registry = default_registry()
    config = load_config(source, notes=told, also=lambda config: plugin_problems(config, registry))
    notes += (f"{entry.name}: {note}" for note in told)
    beside: tuple[tuple[str, bytes], ...] = ()
    if entry.path is not None:
        folder = entry.path.resolve().parent
        _check_modules(config, folder)
        beside = tuple(_modules_beside(config, folder))
    sources = [path.read_bytes() for path in _plugin_files(config)]
    written = msgspec.json.encode(write_config(config), order="sorted")
    return Packed(pack(SweepConfig(config, beside)), _digest(written, *sources))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError([f"cannot be read: {error.strerror or error}"]) from error


def _plugin_files(config: KubeSchedulerConfiguration) -> Iterator[Path]:
    """The source of plugins that are not mooring's own, with all modules of their packages."""
    installed = installed_plugins()
    for name in sorted(_enabled(config)):
        target = installed[name].value if name in installed else name
        if name in installed or ":" in name:
            yield from _files_of(target.partition(":")[0])


def _modules_beside(
    config: KubeSchedulerConfiguration, folder: Path
) -> Iterator[tuple[str, bytes]]:
    for name in sorted(_enabled(config)):
        for path in _files_of(name.partition(":")[0]) if ":" in name else ():
            if path.resolve().is_relative_to(folder):
                yield str(path.resolve().relative_to(folder)), path.read_bytes()


def _check_modules(config: KubeSchedulerConfiguration, folder: Path) -> None:
    """Raises InputError if a module beside the configuration is hidden by another of the same name."""
    for name in sorted(each.partition(":")[0] for each in _enabled(config) if ":" in each):
        top = name.partition(".")[0]
        beside = [path for path in (folder / f"{top}.py", folder / top) if path.exists()]
        found = list(_files_of(name))
        if beside and not any(path.resolve().is_relative_to(folder) for path in found):
            where = f" from {found[0]}" if found else ""
            raise InputError(
                [f"{beside[0]} is hidden: Python imports {top}{where}; rename one of the modules"]
            )


def _enabled(config: KubeSchedulerConfiguration) -> set[str]:
    return {name for profile in config.profiles for name in profile.plugins.enabled_names}


def _files_of(module: str) -> Iterable[Path]:
    """All source files of the module's top package, or of the module alone."""
    found = importlib.util.find_spec(module.partition(".")[0])
    if found is None or found.origin is None:
        return []
    origin = Path(found.origin)
    return sorted(origin.parent.rglob("*.py")) if found.submodule_search_locations else [origin]


# Inputs


def _load_input(entry: InputEntry, folder: Path, notes: list[str]) -> Packed:
    """Raises InputError."""
    if entry.trace is not None:
        loaded = SweepInput(
            _trace(entry, entry.trace, folder), (), not entry.endless, entry.until_s
        )
    else:
        manifests = read_manifests(
            [str(path) for path in entry.cluster],
            documents=node_documents([_group(text) for text in entry.nodes]),
        )
        notes += (f"{entry.name}: {line}" for line in (*manifests.warnings, *manifests.refusals))
        loaded = SweepInput(None, tuple(manifests.objects), until_s=entry.until_s)
        if not manifests.nodes or not manifests.pods:
            missing = "pods" if manifests.nodes else "nodes"
            raise InputError([f"the cluster has no {missing}"])
    content = _input_content(loaded)
    return Packed(pack(loaded), _digest(content))


def _trace(entry: InputEntry, path: Path, folder: Path) -> Trace:
    """Raises InputError."""
    options = TraceOptions(entry.sharing, entry.priorities or {})
    if not entry.nodes:
        return _with_nodes(read_trace(path, options=options))
    nodes = entry.nodes[0]
    if (folder / nodes).exists() or "/" in nodes:
        return _with_nodes(read_trace(path, nodes_path=folder / nodes, options=options))
    described = read_manifests([], documents=node_documents([_group(nodes)])).nodes
    return replace(read_trace(path, options=options), nodes=described)


def _with_nodes(trace: Trace) -> Trace:
    if not trace.nodes or not trace.pods:
        raise InputError([f"{trace.name}: the trace has no {'pods' if trace.nodes else 'nodes'}"])
    return trace


def _group(text: str) -> NodeGroup:
    try:
        return parse_node_group(text)
    except ValueError as error:
        raise InputError(
            [f"nodes: {text!r} is not a file, and describes no nodes: {error}"]
        ) from error


def _input_content(loaded: SweepInput) -> bytes:
    """All that a run depends on, the same on every machine."""
    trace = loaded.trace
    times = [] if trace is None else [(e.arrives_s, e.run_s, e.leaves_s) for e in trace.pods]
    objects = loaded.objects if trace is None else trace.objects()
    described = (objects, times, loaded.pods_end, loaded.until_s)
    return msgspec.json.encode(described, enc_hook=encode_hook, order="sorted")
