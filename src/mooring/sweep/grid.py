"""A grid: configurations × inputs × seeds × loads, read from a YAML file or from a mapping.

    apiVersion: mooring.dev/v1
    kind: Sweep
    configs: [default, most-allocated.yaml]
    inputs:
    - {name: openb, trace: openb/, endless: true}
    seeds: 10
    loads: [1.3]

One combination is a cell. `docs/sweep.md` describes each field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mooring.errors import InputError
from mooring.objects.yaml_text import YamlError, parse_yaml
from mooring.sim.scenarios.fields import (
    FieldError,
    Fields,
    Source,
    described,
    seconds,
    text,
    true_or_false,
    whole_number,
)
from mooring.sim.scenarios.fields import Path as Position
from mooring.sim.traces.openb import Sharing
from mooring.sweep.measure_names import measure_problem

API_VERSION = "mooring.dev/v1"
KIND = "Sweep"
#: The configuration that has neither a file nor a content.
DEFAULT = "default"
#: More cells than this are taken for a mistake.
MOST_CELLS = 1_000_000

_POSITION = re.compile(r"line (\d+), column \d+: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A configuration of the grid; without a file and a content, it is the default one."""

    name: str
    #: Where it stands in the grid, for messages.
    at: Position
    path: Path | None = None
    content: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class InputEntry:
    """A trace to replay, or a cluster to simulate."""

    name: str
    at: Position
    #: A file with pods, or a folder; None for a cluster.
    trace: Path | None = None
    #: Files and folders with manifests; empty for a trace.
    cluster: tuple[Path, ...] = ()
    #: Nodes to add to a cluster, or to use instead of those of a trace: `3xm5.xlarge`, or a file with nodes.
    nodes: tuple[str, ...] = ()
    until_s: float | None = None
    #: Whether the pods of a trace never end.
    endless: bool = False
    sharing: Sharing = Sharing.POOL
    priorities: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination."""

    config: str
    input: str
    seed: int
    #: None takes the pods as they are.
    load: float | None = None

    def __str__(self) -> str:
        load = "" if self.load is None else f" load {self.load:g}"
        return f"{self.config} × {self.input} × seed {self.seed}{load}"


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid that has been read. Its files have not."""

    #: The name of the file, for messages and for the names of results.
    name: str
    #: The folder that file names are relative to.
    folder: Path
    source: Source
    configs: tuple[ConfigEntry, ...]
    inputs: tuple[InputEntry, ...]
    seeds: tuple[int, ...]
    loads: tuple[float | None, ...]
    #: The measures to show; empty for the usual ones.
    measures: tuple[str, ...] = ()

    def cells(self) -> Iterator[Cell]:
        """The seeds change slowest: a sweep that is cut short has some seeds of every configuration."""
        for seed, load, each, config in product(self.seeds, self.loads, self.inputs, self.configs):
            yield Cell(config.name, each.name, seed, load)

    def __len__(self) -> int:
        return len(self.configs) * len(self.inputs) * len(self.seeds) * len(self.loads)


def read_grid(source: Path | Mapping[str, Any]) -> Grid:
    """Raises InputError with a line for each problem."""
    if isinstance(source, Mapping):
        given = {"apiVersion": API_VERSION, "kind": KIND, **source}
        return _read(Source("", b"", 1), given, name="sweep", folder=Path())
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError([f"{source}: cannot be read: {error.strerror or error}"]) from error
    try:
        documents = list(parse_yaml(content))
    except YamlError as error:
        found = _POSITION.fullmatch(str(error))
        where = f"{source}:{found[1]}: {found[2]}" if found else f"{source}: {error}"
        raise InputError([where]) from error
    if len(documents) != 1:
        raise InputError([f"{source}: must hold one document, and holds {len(documents)}"])
    named = Source(str(source), content, 1)
    return _read(named, documents[0], name=source.name, folder=source.parent)


def _read(source: Source, value: object, *, name: str, folder: Path) -> Grid:
    fields = Fields(source, (), value)
    for field_name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if fields.read(field_name, text, "") != wanted:
            fields.wrong(f"must be {wanted}", field_name)
    configs = tuple(_config(source, at, each, folder) for at, each in fields.items("configs"))
    inputs = tuple(_input(source, at, each, folder) for at, each in fields.items("inputs"))
    grid = Grid(
        name=name,
        folder=folder,
        source=source,
        configs=configs or (ConfigEntry(DEFAULT, ("configs",)),),
        inputs=inputs,
        seeds=fields.read("seeds", _seeds, (0,)),
        loads=fields.read("loads", _loads, (None,)),
        measures=fields.read("measures", _measures, ()),
    )
    fields.finish()
    _check(grid, fields)
    if not source.faultless:
        raise InputError(source.problems())
    return grid


def _check(grid: Grid, fields: Fields) -> None:
    if not grid.inputs and "inputs" not in fields.given:
        fields.wrong("needs inputs: at least one trace or cluster")
    for what, entries in (("configs", grid.configs), ("inputs", grid.inputs)):
        if what in fields.given and not entries:
            fields.wrong("must not be empty", what)
        seen: set[str] = set()
        for entry in entries:
            if entry.name and entry.name in seen:
                problem = f"the name {entry.name!r} is taken; give this entry another name"
                grid.source.wrong(entry.at, problem)
            seen.add(entry.name)
    if grid.loads != (None,):
        for each in grid.inputs:
            if each.trace is None and each.cluster:
                grid.source.wrong(each.at, "is a cluster; loads are only for traces")
    if len(grid) > MOST_CELLS:
        fields.wrong(f"has {len(grid):,} cells; the most are {MOST_CELLS:,}")


def _config(source: Source, at: Position, value: object, folder: Path) -> ConfigEntry:
    if isinstance(value, str):
        return _named_config(at, value, folder)
    fields = Fields(source, at, value)
    path = fields.read("file", text, "")
    content = fields.read("config", _mapping, None)
    name = fields.read("name", text, "") or (Path(path).stem if path else "")
    fields.finish()
    if path and content is not None:
        fields.wrong("has a file and a config; write one of them")
    if not name and isinstance(value, Mapping):
        fields.wrong("needs a name")
    return ConfigEntry(name, at, folder / path if path else None, content)


def _named_config(at: Position, value: str, folder: Path) -> ConfigEntry:
    if value == DEFAULT:
        return ConfigEntry(DEFAULT, at)
    return ConfigEntry(Path(value).stem, at, folder / value)


def _input(source: Source, at: Position, value: object, folder: Path) -> InputEntry:
    fields = Fields(source, at, value)
    trace = fields.read("trace", text, "")
    none: tuple[str, ...] = ()
    cluster = fields.read("cluster", _texts, none)
    entry = InputEntry(
        name=fields.read("name", text, "") or Path(trace or "".join(cluster[:1])).stem,
        at=at,
        trace=folder / trace if trace else None,
        cluster=tuple(folder / each for each in cluster),
        nodes=fields.read("nodes", _texts, ()),
        until_s=fields.read("until", seconds, None),
        endless=fields.read("endless", true_or_false, False),
        sharing=fields.read("gpuSharing", _sharing, Sharing.POOL),
        priorities=fields.read("priorities", _priorities, None),
    )
    fields.finish()
    if bool(trace) == bool(cluster) and isinstance(value, Mapping):
        fields.wrong("needs either a trace or a cluster")
    elif not entry.name and isinstance(value, Mapping):
        fields.wrong("needs a name")
    if cluster:
        for name in ("endless", "gpuSharing", "priorities"):
            if name in fields.given:
                fields.wrong("is only for traces", name)
    if trace and len(entry.nodes) > 1:
        fields.wrong("a trace has one file or description of nodes", "nodes")
    return entry


# Readers of single values


def _mapping(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping) and value:
        return value
    raise FieldError(f"must be a KubeSchedulerConfiguration, not {described(value)}")


def _texts(value: object) -> tuple[str, ...]:
    """One text, or a list of them."""
    return tuple(text(each) for each in (value if isinstance(value, list) else [value]))


def _measures(value: object) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        if problem := measure_problem(name):
            raise FieldError(problem)
    return names


def _seeds(value: object) -> tuple[int, ...]:
    """A number of seeds, from 0 on, or a list of seeds."""
    if not isinstance(value, list):
        count = whole_number(value)
        if not count:
            raise FieldError("must be at least 1, or a list of seeds")
        if count > MOST_CELLS:
            raise FieldError(f"must be at most {MOST_CELLS:,}, or a list of seeds")
        return tuple(range(count))
    return _each_once(tuple(whole_number(each) for each in value))


def _loads(value: object) -> tuple[float | None, ...]:
    return _each_once(tuple(map(_load, value if isinstance(value, list) else [value])))


def _load(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1000:
        return float(value)
    raise FieldError(f"must be a number above 0, such as 1.3, not {described(value)}")


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise FieldError("must not be empty")
    if len(set(values)) < len(values):
        raise FieldError("has a value twice")
    return values


def _sharing(value: object) -> Sharing:
    try:
        return Sharing(text(value))
    except ValueError:
        choices = " or ".join(Sharing)
        raise FieldError(f"must be {choices}, not {described(value)}") from None


def _priorities(value: object) -> Mapping[str, int] | None:
    if not isinstance(value, Mapping):
        raise FieldError(f"must be a mapping such as {{LS: 1000}}, not {described(value)}")
    for priority in value.values():
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise FieldError(f"must have whole numbers, not {described(priority)}")
    return {str(qos): priority for qos, priority in value.items()}
