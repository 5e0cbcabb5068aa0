"""A configuration as plain data, from YAML, JSON or a mapping.

A key that occurs twice in one mapping is reported. A plain reader would silently keep the last
value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mooring.config.field_errors import child
from mooring.errors import ConfigError

Document = dict[str, Any]

KIND = "KubeSchedulerConfiguration"

_MERGE_TAG = "tag:yaml.org,2002:merge"
_NULL_TAG = "tag:yaml.org,2002:null"


def read_document(
    source: str | bytes | Path | Mapping[str, Any], *, notes: list[str] | None = None
) -> tuple[Document, list[str]]:
    """The data, and the keys that occur twice.

    A string is the text itself; to read a file, pass a Path. The configuration can be one of several
    documents, or in a ConfigMap; `notes` gets a line that says where. Raises ConfigError if there is
    no mapping, or more than one configuration.
    """
    try:
        document, repeated, where = _chosen(_read(source))
        document = _plain(document)
    except RecursionError:
        raise ConfigError(["the document refers to itself"]) from None
    if not isinstance(document, dict):
        raise ConfigError([f"expected a mapping at the top, got {document!r}"])
    if where and notes is not None:
        notes.append(f"the configuration is {where}")
    return document, repeated


#: A document as written, the keys that occur twice in it, and where it is; "" if it is the whole text.
_Found = tuple[Any, list[str], str]


def _chosen(documents: list[tuple[Any, list[str]]]) -> _Found:
    """The configuration among the documents. A single other document is returned as it is."""
    found: list[_Found] = []
    for i, (document, repeated) in enumerate(documents):
        where = f"document {i + 1} of {len(documents)}" if len(documents) > 1 else ""
        found += _configurations(document, repeated, where)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        places = ", ".join(where for _, _, where in found)
        raise ConfigError(
            [
                f"there are {len(found)} configurations: {places}; write one {KIND} to a file of its own"
            ]
        )
    if len(documents) == 1:
        return *documents[0], ""
    problem = "is empty" if not documents else f"is in none of {len(documents)} documents"
    raise ConfigError([f"the configuration {problem}; write one {KIND}"])


def _configurations(document: Any, repeated: list[str], where: str) -> Iterator[_Found]:
    """The document itself, or those in the ConfigMaps and lists that it consists of."""
    if not isinstance(document, Mapping):
        return
    kind = document.get("kind")
    if kind == KIND:
        yield document, repeated, where
    elif kind == "ConfigMap" and isinstance(document.get("data"), Mapping):
        metadata = document.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        for key, text in document["data"].items():
            # Most data of ConfigMaps is not YAML at all.
            if not isinstance(text, str) or KIND not in text:
                continue
            for inner, inner_repeated in _read(text):
                yield from _configurations(
                    inner, inner_repeated, f"in ConfigMap {name}, data[{key}]"
                )
    elif (
        isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list)
    ):
        for i, item in enumerate(document["items"]):
            yield from _configurations(item, repeated, f"items[{i}]")


def _read(source: str | bytes | Path | Mapping[str, Any]) -> list[tuple[Any, list[str]]]:
    """Every document, with the keys that occur twice in it."""
    if isinstance(source, Mapping):
        return [(source, [])]
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except OSError as error:
            raise ConfigError([f"{error.filename}: {error.strerror}"]) from error
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError as error:
            raise ConfigError([f"the text is not UTF-8: {error.reason}"]) from error
    if source.lstrip().startswith("{"):
        try:
            return [_read_json(source)]
        except json.JSONDecodeError:
            pass  # perhaps YAML in flow style, whose reader gives better errors
    return _read_yaml(source)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as written, including repeated keys."""


def _read_json(text: str) -> tuple[Any, list[str]]:
    repeated: list[str] = []
    return _without_pairs(json.loads(text, object_pairs_hook=_Pairs), "", repeated), repeated


def _without_pairs(value: Any, path: str, repeated: list[str]) -> Any:
    if isinstance(value, _Pairs):
        keys = [key for key, _ in value]
        repeated += [f"{child(path, keys[i])}: duplicate field" for i in _repeats(keys)]
        return {key: _without_pairs(item, child(path, key), repeated) for key, item in value}
    if isinstance(value, list):
        return [_without_pairs(item, f"{path}[{i}]", repeated) for i, item in enumerate(value)]
    return value


class _Loader(yaml.CSafeLoader):
    """YAML as the reference reads it: no dates, and numbers may have a bare exponent."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def _read_yaml(text: str) -> list[tuple[Any, list[str]]]:
    loader = _Loader(text)
    try:
        given = [node for node in _nodes(loader) if node.tag != _NULL_TAG]
        # Before construction, which adds the keys of `<<` to the nodes.
        repeated = [list(_repeated_in_node(node, "")) for node in given]
        return [
            (loader.construct_document(node), each)
            for node, each in zip(given, repeated, strict=True)
        ]
    except yaml.YAMLError as error:
        raise ConfigError([_yaml_problem(error)]) from error
    finally:
        loader.dispose()


def _nodes(loader: _Loader) -> Iterator[yaml.Node]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            yield node


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: not YAML: {error.problem}"
    return f"not YAML: {' '.join(str(error).split())}"


def _repeated_in_node(node: yaml.Node, path: str) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield from _repeated_in_node(item, f"{path}[{i}]")
    elif isinstance(node, yaml.MappingNode):
        # Keys from `<<` may be overridden: that is no repetition.
        pairs = [(key, value) for key, value in node.value if key.tag != _MERGE_TAG]
        names = [str(key.value) for key, _ in pairs]
        for i in _repeats(names):
            line = pairs[i][0].start_mark.line + 1
            yield f"{child(path, names[i])}: duplicate field, on line {line}"
        for name, (_, value) in zip(names, pairs, strict=True):
            yield from _repeated_in_node(value, child(path, name))


def _repeats(names: list[str]) -> list[int]:
    """The positions of names that occurred before."""
    return [i for i, name in enumerate(names) if name in names[:i]]


def _plain(value: Any) -> Any:
    """A copy of dicts with string keys, lists and scalars."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _key(key: object) -> str:
    """A key as a string, as in JSON: YAML reads `1:` and `on:` as a number and a boolean."""
    return str(key).lower() if isinstance(key, bool) else str(key)
