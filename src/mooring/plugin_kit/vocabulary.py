"""The words of a plugin: strings in its code that can be the keys and values of labels, taints and resources.

Random objects that never mention the label that a plugin reads would never meet its rule. The words are those
that its methods can reach: strings in them, in the functions of its package that they call, and in the
constants that these read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

#: Keys begin with a small letter by custom; other words are names of types and keys of the cycle state.
_KEY = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)?[a-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_LONGEST = 63

#: Plugins that name one of these kinds or fields are asked about pods that use such objects.
_STORAGE = {"PersistentVolume", "PersistentVolumeClaim", "persistent_volume_claim", "StorageClass"}
_STORAGE |= {"CSINode", "pvc_refs", "volumes"}
_DEVICES = {"ResourceClaim", "DeviceClass", "ResourceSlice", "resource_claims"}
_GROUPS = {"PodGroup", "scheduling_group", "group_key"}

#: Built-in plugins that are one module are no package of their own.
_NO_PACKAGE = ("", "mooring.plugins")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a plugin's code mentions."""

    #: Words without a space that a key of a label, an annotation, a taint or a resource can be.
    keys: tuple[str, ...] = ()
    storage: bool = False
    devices: bool = False
    groups: bool = False


def vocabulary_of(plugin: type, args: object = None) -> Vocabulary:
    reader = _Reader(plugin)
    words = {*reader.words, *_strings(args)}
    return Vocabulary(
        keys=tuple(sorted(filter(_is_key, words))),
        storage=not _STORAGE.isdisjoint(reader.names),
        devices=not _DEVICES.isdisjoint(reader.names),
        groups=not _GROUPS.isdisjoint(reader.names),
    )


class _Reader:
    """Reads the code that a class can reach within its package."""

    def __init__(self, plugin: type) -> None:
        self.words: set[str] = set()
        self.names: set[str] = set()
        self._met: set[int] = set()
        self._parameters: set[str] = set()
        for each in plugin.__mro__[:-1]:
            self._package = _package(each.__module__)
            self._read(each)
        self.words -= self._parameters

    def _read(self, value: Any) -> None:
        if id(value) in self._met:
            return
        self._met.add(id(value))
        value = getattr(value, "__func__", value)
        if isinstance(value, property) and value.fget is not None:
            value = value.fget
        if isinstance(value, FunctionType):
            if self._is_own(value):
                self._read_code(value.__code__, value.__globals__)
        elif isinstance(value, type):
            if self._is_own(value):
                for inner in vars(value).values():
                    self._read(inner)
        else:
            self.words.update(_strings(value))

    def _read_code(self, code: CodeType, names: Mapping[str, Any]) -> None:
        self.names.update(code.co_names)
        for name in code.co_names:
            if name in names:
                self._read(names[name])
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read_code(constant, names)
                # The annotations of an inner function are constants of the outer one.
                self._parameters |= {*constant.co_varnames, "return"}
            else:
                self.words.update(_strings(constant))

    def _is_own(self, value: Any) -> bool:
        module = getattr(value, "__module__", None) or ""
        return bool(module == self._package or module.startswith(f"{self._package}."))


def _package(module: str) -> str:
    parent = module.rpartition(".")[0]
    return module if parent in _NO_PACKAGE else parent


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _strings(each)


def _is_key(word: str) -> bool:
    return 2 < len(word) <= _LONGEST and _KEY.fullmatch(word) is not None
