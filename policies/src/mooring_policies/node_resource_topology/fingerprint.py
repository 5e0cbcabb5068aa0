"""The fingerprint of a set of pods, by which the agent of a node says which pods its figures include.

The format (`pfp0v001` and a sum) is that of the agents: each pod is a 64-bit xxHash of its name, seeded
with that of its namespace; the sum is the xxHash of these numbers in ascending order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mooring.objects.pod import Pod

_PREFIX = "pfp0v001"
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_64_BITS = 0xFFFFFFFFFFFFFFFF
_STRIPE = 32


def fingerprint(pods: Iterable[Pod]) -> str:
    hashes = sorted(xxhash(pod.name.encode(), xxhash(pod.namespace.encode(), 0)) for pod in pods)
    total = xxhash(struct.pack(f"<{len(hashes)}Q", *hashes), 0)
    return f"{_PREFIX}{total:016x}"


def xxhash(data: bytes, seed: int) -> int:
    """XXH64 of the data."""
    stripes = len(data) // _STRIPE
    value = _of_stripes(data, stripes, seed) if stripes else seed + _P5
    value += len(data)
    at = stripes * _STRIPE
    while at + 8 <= len(data):
        value ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_rotated(value, 27) * _P1 + _P4) & _64_BITS
        at += 8
    if at + 4 <= len(data):
        value ^= int.from_bytes(data[at : at + 4], "little") * _P1
        value = (_rotated(value, 23) * _P2 + _P3) & _64_BITS
        at += 4
    for byte in data[at:]:
        value = _rotated(value ^ byte * _P5, 11) * _P1 & _64_BITS
    return _mixed(value)


def _of_stripes(data: bytes, stripes: int, seed: int) -> int:
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for words in struct.iter_unpack("<4Q", data[: stripes * _STRIPE]):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    value = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * _P1 + _P4) & _64_BITS
    return value


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2, 31) * _P1 & _64_BITS


def _rotated(value: int, by: int) -> int:
    value &= _64_BITS
    return (value << by | value >> (64 - by)) & _64_BITS


def _mixed(value: int) -> int:
    value &= _64_BITS
    value = (value ^ value >> 33) * _P2 & _64_BITS
    value = (value ^ value >> 29) * _P3 & _64_BITS
    return value ^ value >> 32
