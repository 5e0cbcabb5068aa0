"""Golden cases of the area `allocator`: which devices claims would get on each node.

The format is in `tests/golden/README.md`. Each node is asked by itself; what one node would give is not taken
for the next. The slices are indexed once for all nodes, as the scheduler does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.allocator import AllocationError, Allocator, NodeOnlyError
from mooring.objects.decoding import decode_object
from mooring.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.meta import canonical_hook
from mooring.objects.node import Node

#: What follows these words in the text of an error is for information.
_FREE_TEXT = re.compile(
    r"(CEL compile error|CEL runtime error|failed to parse node selector).*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class AllocatorCase:
    """One line of the file."""

    name: str
    shape: str
    objects: list[dict[str, Any]]
    #: `namespace/name` of the claims to allocate, in this order.
    allocate: list[str]
    #: Node name → the answer.
    expect: dict[str, dict[str, Any]]


def allocator_case(line: Mapping[str, Any]) -> AllocatorCase:
    """Raises KeyError or TypeError if the line is no such case."""
    return AllocatorCase(
        name=line["name"],
        shape=line.get("shape", ""),
        objects=line["objects"],
        allocate=list(line["allocate"]),
        expect={node: comparable(answer) for node, answer in line["expect"]["nodes"].items()},
    )


def replay_allocations(case: AllocatorCase) -> dict[str, dict[str, Any]]:
    """What mooring answers for each node, in the form of `expect`."""
    objects = [decode_object(each) for each in case.objects]
    claims = {each.key: each for each in objects if isinstance(each, ResourceClaim)}
    asked = [claims[key] for key in case.allocate]
    numbers = count(1)
    allocator = Allocator(
        AllocatedDevices(claims.values()),
        {each.name: each for each in objects if isinstance(each, DeviceClass)},
        [each for each in objects if isinstance(each, ResourceSlice)],
        new_share_id=lambda: f"share-{next(numbers)}",
    )
    answers = {}
    for node in objects:
        if isinstance(node, Node):
            numbers = count(1)
            answers[node.name] = comparable(_answer(allocator, node, asked))
    return answers


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without the part of an error's text that is for information."""
    if "error" not in answer:
        return answer
    return {**answer, "error": _FREE_TEXT.sub(r"\1", answer["error"])}


def _answer(allocator: Allocator, node: Node, claims: list[ResourceClaim]) -> dict[str, Any]:
    try:
        allocations = allocator.allocate(node, claims)
    except NodeOnlyError as error:
        return {"error": str(error), "nodeOnly": True}
    except AllocationError as error:
        return {"error": str(error)}
    if allocations is None:
        return {"none": True}
    return {"allocations": msgspec.to_builtins(allocations, enc_hook=canonical_hook, str_keys=True)}
