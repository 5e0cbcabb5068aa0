"""Why the API server would not create an object, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.objects.meta import KubeObject
from mooring.objects.quantity import Quantity
from mooring.objects.titles import title

#: People write amounts of these resources with binary suffixes.
_IN_BYTES = ("memory", "storage", "hugepages-")
_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that the API server would not create, or that cannot exist in this cluster."""

    object: KubeObject
    #: As the API server would put it: `no PriorityClass with name high was found`.
    reason: str

    @property
    def title(self) -> str:
        """`Pod shop/web-0`."""
        return title(self.object)


class Refusal(Exception):
    """A rule of admission refuses an object; the text is the API server's."""


def spelled(resource: str, quantity: Quantity) -> str:
    """The amount as people write it: the shorter of `1Gi` and `1073741824`."""
    decimal = str(quantity)
    if not any(part in resource for part in _IN_BYTES) or quantity != Quantity(quantity.value):
        return decimal
    for suffix, bits in _BINARY:
        if quantity.value and quantity.value % 2**bits == 0:
            return min(f"{quantity.value >> bits}{suffix}", decimal, key=len)
    return decimal


def listed(resources: Mapping[str, Quantity]) -> str:
    """`cpu=2,memory=1Gi`."""
    return ",".join(f"{name}={spelled(name, resources[name])}" for name in sorted(resources))
