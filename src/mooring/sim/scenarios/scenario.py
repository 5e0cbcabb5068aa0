"""Read scenarios: files with YAML documents of the kind Scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.errors import InputError
from mooring.objects.device_groups import DeviceGroup, parse_device_group
from mooring.objects.documents import Document, yaml_chunks
from mooring.objects.yaml_text import YamlError, parse_yaml
from mooring.sim.scenarios.expectation_fields import read_checks
from mooring.sim.scenarios.expectations import Check
from mooring.sim.scenarios.fields import FieldError, Fields, Source, described, text, whole_number
from mooring.sim.scenarios.steps import Step, read_objects, read_step

API_VERSION = "mooring.dev/v1"
KIND = "Scenario"
SUFFIX = ".scenario.yaml"

_POSITION = re.compile(r"line (\d+), column \d+: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One document."""

    source: Source
    name: str
    description: str
    #: The folder that file names are relative to.
    folder: Path
    #: Files and folders of the cluster, and objects in the scenario itself.
    cluster: tuple[str, ...]
    objects: tuple[Document, ...]
    #: Devices for the nodes of the cluster, as in `--devices`.
    devices: tuple[DeviceGroup, ...]
    #: The name of a file, or the configuration itself; None is the default configuration.
    config: str | Mapping[str, Any] | None
    seed: int | None
    steps: tuple[Step, ...]
    #: After the last step.
    expect: tuple[Check, ...]

    @property
    def line(self) -> int:
        """Its first line in the file."""
        return self.source.first_line


def read_scenarios(path: Path) -> list[Scenario]:
    """Every scenario of a file. Raises InputError with a line for each problem."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    problems: list[str] = []
    scenarios: list[Scenario] = []
    line = 1
    for start, end in yaml_chunks(content):
        chunk = content[start:end]
        source = Source(str(path), chunk, line)
        try:
            for value in parse_yaml(chunk, first_line=line):
                scenarios.append(_read(source, path, value, number=len(scenarios) + 1))
            problems += source.problems()
        except YamlError as error:
            problems.append(_placed(path, error))
        line += chunk.count(b"\n")
    if not scenarios and not problems:
        problems.append(f"{path}: contains no scenario")
    if problems:
        raise InputError(problems)
    return scenarios


def _read(source: Source, path: Path, value: Any, *, number: int) -> Scenario:
    fields = Fields(source, (), value)
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if fields.read(name, text, "") != wanted:
            fields.wrong(f"must be {wanted}", name)
    stem = path.name.removesuffix(SUFFIX)
    paths, in_cluster = read_objects(fields, "cluster")
    _, documents = read_objects(fields, "objects")
    steps = [
        step
        for at, each in fields.items("steps")
        if (step := read_step(source, at, each)) is not None
    ]
    scenario = Scenario(
        source=source,
        name=fields.read("name", text, stem if number == 1 else f"{stem}-{number}"),
        description=fields.read("description", text, ""),
        folder=path.parent,
        cluster=tuple(paths),
        objects=(*in_cluster, *documents),
        devices=tuple(_device_groups(fields)),
        config=fields.read("config", _config, None),
        seed=fields.read("seed", whole_number, None),
        steps=tuple(steps),
        expect=read_checks(fields),
    )
    fields.finish()
    checks = bool(scenario.expect) or any(step.expect or step.needed for step in steps)
    if source.faultless and not checks:
        fields.wrong("expects nothing, so it cannot fail; add expect")
    return scenario


def _device_groups(fields: Fields) -> Iterator[DeviceGroup]:
    for at, value in fields.items("devices"):
        try:
            yield parse_device_group(text(value))
        except ValueError as error:
            fields.source.wrong(at, str(error))


def _config(value: object) -> str | Mapping[str, Any]:
    if isinstance(value, str | Mapping) and value:
        return value
    raise FieldError(f"must be a file's name or a configuration, not {described(value)}")


def _placed(path: Path, error: YamlError) -> str:
    found = _POSITION.fullmatch(str(error))
    return f"{path}:{found[1]}: {found[2]}" if found else f"{path}: {error}"
