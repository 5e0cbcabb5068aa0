"""The messages between the server and its worker processes, and their encoding in a pipe.

Workers are child processes of the server, so pickle is safe here.
"""

from __future__ import annotations

import gzip
import pickle
import struct
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

#: Each message starts with its length.
HEADER = struct.Struct(">Q")
#: Compresses a map of 50,000 pods to a seventh in 30 ms; higher levels gain little.
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Question:
    number: int
    #: A name in `worker.ANSWERS`.
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cancel:
    """Answer this question at once, with what has been found so far."""

    number: int


@dataclass(frozen=True, slots=True)
class Progress:
    number: int
    done: int
    total: int | None
    phase: str
    #: The pods that moved since the last message, and their places: pod, place, pod, place, …
    moves: tuple[int, ...] = ()
    #: What is counted, if not things: `bytes`.
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """The worker cannot answer the question."""

    number: int
    message: str
    #: In the format of API.md.
    problems: tuple[dict[str, Any], ...] = ()
    #: Whether the question is about something that does not exist.
    missing: bool = False
    #: Whether the cause is a bug in mooring.
    bug: bool = False


def framed(message: object) -> bytes:
    text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(text)) + text


def read_message(pipe: IO[bytes]) -> Any:
    """None at the end."""
    header = pipe.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    text = pipe.read(length)
    return pickle.loads(text) if len(text) == length else None


def packed(data: object) -> bytes:
    """Compressed JSON. The worker compresses, and the server passes the bytes on."""
    return gzip.compress(msgspec.json.encode(data), _LEVEL, mtime=0)


def unpacked(answer: bytes) -> bytes:
    return gzip.decompress(answer)
