"""Whether the cluster has the resources that a group asks for as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.objects.quantity import BinaryQuantity, ExponentQuantity, Quantity
from mooring.objects.requests import CPU, PODS, Amounts
from mooring.plugin import NodeInfo
from mooring_policies.coscheduling.objects import group_key

_MILLI = -3


def missing_resources(
    nodes: Iterable[NodeInfo], wanted: Mapping[str, Quantity], group: str
) -> dict[str, Quantity]:
    """What the free resources of all nodes together leave unmet; nothing if they suffice.

    What the group's own pods hold counts as free.
    """
    rest = dict(wanted)
    for node in nodes:
        if node.node is None:
            continue
        free = _free(node, group)
        for name, quantity in list(rest.items()):
            left = quantity.plus(_negative(name, free.get(name, 0)))
            if left.unscaled <= 0:
                del rest[name]
            else:
                # The text of what is missing tells how the quantity was written.
                rest[name] = type(quantity)(left.unscaled, left.scale, left.wide)
        if not rest:
            break
    return rest


def gap_text(missing: Mapping[str, Quantity]) -> str:
    """The missing resources as upstream prints them."""
    entries = (f"{name}:{_printed(missing[name])}" for name in sorted(missing))
    return f"map[{' '.join(entries)}]"


def _free(node: NodeInfo, group: str) -> Amounts:
    own = [pod for pod in node.pods.values() if group_key(pod) == group]
    free = {
        name: amount - node.requested.get(name, 0) + sum(pod.held.get(name, 0) for pod in own)
        for name, amount in node.allocatable.items()
    }
    free[PODS] = node.allowed_pods - (len(node.pods) - len(own))
    return free


def _negative(name: str, amount: int) -> Quantity:
    return Quantity(-amount, _MILLI if name == CPU else 0)


def _printed(quantity: Quantity) -> str:
    """A Go struct: number and power of ten, no decimal, no text, the format."""
    if isinstance(quantity, BinaryQuantity):
        written = "BinarySI"
    elif isinstance(quantity, ExponentQuantity):
        written = "DecimalExponent"
    else:
        written = "DecimalSI"
    return f"{{{{{quantity.unscaled} {quantity.scale}}} {{<nil>}}  {written}}}"
