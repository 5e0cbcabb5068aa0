"""Names and UIDs for objects that lack them: in the form of Kubernetes, the same on every run."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable
from hashlib import sha1

import msgspec

from mooring.objects.meta import KubeObject, Part, encode_hook

#: The alphabet of Kubernetes: no vowels, so that no name is a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
#: Every two letters, the lower digit first.
_PAIRS = [low + high for high in _ALPHABET for low in _ALPHABET]
_SUFFIX_LENGTH = 5
_LONGEST_BASE = 63 - _SUFFIX_LENGTH
_UID_SPACE = uuid.UUID("6d6f6f72-696e-4670-8000-000000000000").bytes
#: The hexadecimal digit of a UUID that holds the variant: its two high bits are 10.
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def generated_uid(group: str, kind: str, namespace: str, name: str) -> str:
    """A UUID of version 5, as `uuid.uuid5` gives it but at a third of the cost."""
    name_hash = sha1(_UID_SPACE, usedforsecurity=False)
    name_hash.update(f"{group}/{kind}/{namespace}/{name}".encode())
    text = name_hash.hexdigest()
    variant = _VARIANTS[text[16]]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def content_hash(*parts: Part) -> str:
    """A hash of eight to ten letters for a template, as in `web-6d4b75cb6d`."""
    text = b"".join(msgspec.json.encode(part, enc_hook=encode_hook) for part in parts)
    return _letters(str(zlib.crc32(text)))


def letters_of(text: str) -> str:
    """As `content_hash`, of any text."""
    return _letters(str(zlib.crc32(text.encode())))


class NameMaker:
    """Generates unused names from `generateName`."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._taken = {(type(obj), obj.namespace, obj.name) for obj in objects}
        self._made: dict[tuple[type[KubeObject], str, str], int] = {}

    def name(self, kind: type[KubeObject], namespace: str, base: str) -> str:
        """`base` and five letters. Each call with the same arguments gives another name."""
        base = base[:_LONGEST_BASE]
        made = self._made.get((kind, namespace, base), 0)
        while True:
            made += 1
            name = base + _suffix(f"{namespace}/{base}/{made}")
            if (kind, namespace, name) not in self._taken:
                break
        self._made[kind, namespace, base] = made
        self._taken.add((kind, namespace, name))
        return name


def _suffix(seed: str) -> str:
    """The digits of a checksum in the alphabet, the lowest first."""
    number = zlib.crc32(seed.encode())
    number, first = divmod(number, len(_PAIRS))
    number, second = divmod(number, len(_PAIRS))
    return _PAIRS[first] + _PAIRS[second] + _ALPHABET[number % len(_ALPHABET)]


def _letters(text: str) -> str:
    return "".join(_ALPHABET[ord(letter) % len(_ALPHABET)] for letter in text)
