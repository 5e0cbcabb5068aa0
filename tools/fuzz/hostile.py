"""Nonsense: objects with a field that makes no sense, and answers that are no HTTP, no JSON, or cut short."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from mooring.objects.kinds import Kind

#: What stands in place of a field. The API server lets most of these never through; another one might.
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, -(2**63), 2**64, 1e308, 0.1, "", " ", "\x00", "x" * 5000),
    *("-5Gi", "1e400", "9" * 400, "In", "node-0", [], {}, [[]], [None], [{}], {"": None}),
    *({"a": {"b": [1]}}, "2026-13-45T99:99:99Z"),
)

#: What tells one object from another: with these changed it would be about another object, which may exist.
_IDENTITY = {"name", "namespace", "uid", "resourceVersion"}

_BODIES = (
    *(b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff\xfe", b"<html>", b"[" * 5000, b"9" * 5000),
    *(b'{"items":5}', b'{"items":[5,null,[]]}', b'{"kind":"Status","code":"x"}'),
    b'{"metadata":{"resourceVersion":7},"items":null}',
    b'{"metadata":5,"status":[],"spec":"x"}',
)


def spoiled(document: Any, rng: random.Random) -> Any:
    """The document with one field, at any depth, replaced."""
    places = list(_places(document))
    if places:
        holder, key = rng.choice(places)
        holder[key] = rng.choice(_VALUES)
    return document


def whole(kind: Kind) -> dict[str, Any]:
    """A document of this kind with every field that mooring reads, each list and mapping with one entry."""
    document: dict[str, Any] = _example(inspect.type_info(kind.struct), ())
    document["metadata"]["namespace"] = "default" if kind.namespaced else ""
    return document


def each_spoiled(
    kind: Kind, rng: random.Random, values: int = len(_VALUES)
) -> Iterator[tuple[str, Any, Any]]:
    """For each field and so many kinds of nonsense: the field's path, what stands there, and the document."""
    document = whole(kind)
    for path, holder, key in _paths(document, ""):
        right = holder[key]
        for value in rng.sample(_VALUES, values):
            holder[key] = value
            yield path, value, document
        holder[key] = right


def _example(shape: Any, within: tuple[type, ...]) -> Any:
    match shape:
        case inspect.StructType(cls=cls, fields=fields):
            inner = (*within, cls)
            return {
                field.encode_name: _example(field.type, inner)
                for field in fields
                if not (isinstance(field.type, inspect.StructType) and field.type.cls in inner)
            }
        case inspect.UnionType(types=types):
            return _example(next(t for t in types if not isinstance(t, inspect.NoneType)), within)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return [_example(item, within)]
        case inspect.DictType(value_type=value):
            return {"x": _example(value, within)}
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "2026-01-01T00:00:00Z"
        case inspect.StrType():
            return "x"
    # A quantity, or anything.
    return "1"


def _paths(value: Any, above: str) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    if isinstance(value, dict):
        found += [(f"{above}.{key}", value, key) for key in value]
    elif isinstance(value, list):
        found += [(f"{above}[{at}]", value, at) for at in range(len(value))]
    return [
        each
        for path, holder, key in found
        for each in ((path, holder, key), *_paths(holder[key], path))
    ]


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = [(key, each) for key, each in value.items() if key not in _IDENTITY]
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        return found
    for key, each in pairs:
        found.append((value, key))
        found.extend(_places(each))
    return found


def spoiled_text(text: bytes, rng: random.Random) -> bytes:
    return msgspec.json.encode(spoiled(msgspec.json.decode(text), rng))


def garbled(status: int, body: bytes, rng: random.Random) -> bytes:
    """An answer as a broken server, or what stands in between, may send it."""
    length = len(body)
    match rng.randrange(8):
        case 0:
            body = rng.choice(_BODIES)
            length = len(body)
        case 1:
            body = body[: rng.randrange(len(body) + 1)]
            length = len(body)
        case 2:
            length = rng.choice([0, 1, length // 2])
        case 3:
            length += rng.choice([1, 1000, 2**40])
        case 4:
            return rng.randbytes(rng.randint(1, 200))
        case 5:
            chunk = f"{rng.choice(['zz', '-5', 'ffffffffffffffffff', '5'])}\r\n".encode()
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + body[:50]
        case 6:
            status = rng.choice([100, 204, 206, 301, 304, 418, 599, 999])
        case _:
            at = rng.randrange(len(body) + 1)
            body = body[:at] + rng.randbytes(3) + body[at + 3 :]
            length = len(body)
    return f"HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n".encode() + body
