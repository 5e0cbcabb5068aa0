"""The order in which nodes are evaluated: zones take turns."""

from __future__ import annotations

from itertools import chain, zip_longest

from mooring.errors import check_kept
from mooring.objects.node import Node
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE

_ZONE_LABELS = (BETA_ZONE, ZONE)
_REGION_LABELS = (BETA_REGION, REGION)


class NodeTree:
    """Node names by zone; zones and nodes are in order of arrival."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._zone_of)

    def has(self, node: Node) -> bool:
        """Whether the node is there, in this zone."""
        return self._zone_of.get(node.name) == zone_key(node)

    def add(self, node: Node) -> bool:
        """Add a node, or move it if its zone changed. Return whether the order changed."""
        if self.has(node):
            return False
        zone = zone_key(node)
        self.remove(node.name)
        self._zones.setdefault(zone, {})[node.name] = None
        self._zone_of[node.name] = zone
        return True

    def remove(self, name: str) -> None:
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._zones[zone][name]
            if not self._zones[zone]:
                del self._zones[zone]

    def copy(self) -> NodeTree:
        other = NodeTree()
        other._zones = {zone: names.copy() for zone, names in self._zones.items()}
        other._zone_of = self._zone_of.copy()
        return other

    def names(self) -> list[str]:
        """The names in the order in which nodes arrived, or moved to their zone."""
        return list(self._zone_of)

    def validate(self, rebuilt: NodeTree) -> None:
        """Raise InvariantError unless a tree with the same nodes has the same zones.

        Zones may be in another order: a zone keeps its position when its first node is removed.
        """
        zones, expected = (
            {zone: list(names) for zone, names in tree._zones.items()} for tree in (self, rebuilt)
        )
        check_kept("the nodes of the zones", zones, expected)
        check_kept("the zones of the nodes", self._zone_of, rebuilt._zone_of)

    def order(self) -> list[str]:
        """The first node of each zone, then the second of each, and so on."""
        rounds = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(rounds) if name is not None]


def zone_key(node: Node) -> str:
    region, zone = _first(node, _REGION_LABELS), _first(node, _ZONE_LABELS)
    return f"{region}:\0:{zone}" if region or zone else ""


def _first(node: Node, keys: tuple[str, ...]) -> str:
    return next((node.labels[key] for key in keys if key in node.labels), "")
