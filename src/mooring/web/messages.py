"""What the server and its worker processes say to each other, and how it travels through a pipe.

Workers are this program's own children, so pickles are no danger here.
"""

from __future__ import annotations

import gzip
import pickle
import struct
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

#: The length of a message, in front of it.
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
    """Answer that question at once with what there is."""

    number: int


@dataclass(frozen=True, slots=True)
class Progress:
    number: int
    done: int
    total: int | None
    phase: str


@dataclass(frozen=True, slots=True)
class Answer:
    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """The question cannot be answered, by whoever's fault."""

    number: int
    message: str
    #: As API.md has them.
    problems: tuple[dict[str, Any], ...] = ()
    #: Whether what was asked for does not exist.
    missing: bool = False
    #: Whether it is mooring's own fault.
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
    """As compressed JSON: made where there is time for it, and passed on as it is."""
    return gzip.compress(msgspec.json.encode(data), _LEVEL, mtime=0)


def unpacked(answer: bytes) -> bytes:
    return gzip.decompress(answer)
