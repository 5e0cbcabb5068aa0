"""Read descriptions of workload kinds: mooring's own, and those of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from mooring.errors import InputError
from mooring.objects.yaml_text import YamlError, parse_yaml


class Needed(msgspec.Struct, forbid_unknown_fields=True):
    """Another object that a workload refers to."""

    kind: str
    name: str
    group: str = ""
    #: If true, nothing is said when the object is missing.
    optional: bool = False


class Made(msgspec.Struct, forbid_unknown_fields=True):
    """One kind of object that the controller of a workload creates."""

    object: dict[str, Any]
    #: A placeholder for a list or a mapping: one object, or `count`, for each `item`.
    each: str = ""
    #: How many; a list is multiplied.
    count: int | str | list[int | str] = 1
    #: Nothing is made unless this is set.
    when: str = msgspec.field(name="if", default="${true}")
    #: The controller of the object, if it is not the workload itself.
    owner: dict[str, str] = {}


class Description(msgspec.Struct, forbid_unknown_fields=True):
    """What becomes of the objects of one kind."""

    group: str
    kind: str
    makes: list[Made] = []
    #: Nothing is made while this is set.
    suspended: str = ""
    #: Name → an object that must be there; placeholders can use its fields.
    needs: dict[str, Needed] = {}
    #: The name of a function in `computed.py` that computes more values.
    computed: str = ""
    #: What users should know about the pods; said once.
    note: str = ""

    @property
    def id(self) -> tuple[str, str]:
        return self.group, self.kind


Descriptions = Mapping[tuple[str, str], Description]


@cache
def built_in() -> Descriptions:
    folder = resources.files(__package__) / "descriptions"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda f: f.name
    )
    found = (each for file in files for each in _parsed(file.name, file.read_bytes()))
    return {each.id: each for each in found}


def with_more(paths: Iterable[str]) -> Descriptions:
    """The built-in descriptions and those in these files and folders. Raises InputError.

    A description of a user replaces the built-in one of the same kind.
    """
    found = dict(built_in())
    for path in paths:
        for file in sorted(Path(path).glob("*.y*ml")) if Path(path).is_dir() else [Path(path)]:
            try:
                text = file.read_bytes()
            except OSError as error:
                raise InputError([f"{file}: cannot be read: {error.strerror or error}"]) from error
            found |= {each.id: each for each in _parsed(str(file), text)}
    return found


def _parsed(name: str, text: bytes) -> list[Description]:
    try:
        return [msgspec.convert(value, Description) for value in parse_yaml(text)]
    except YamlError as error:
        raise InputError([f"{name}: {error}"]) from error
    except msgspec.ValidationError as error:
        line = f"{name}: not a description of a workload kind: {error}; see docs/manifests.md"
        raise InputError([line]) from error
