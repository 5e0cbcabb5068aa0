"""An index of volumes or storage pools by the labels of the nodes that can use them.

There may be as many local volumes as nodes, and matching each volume with each node takes minutes.
So an item is indexed under the label values that it requires, and only the items under the labels
of a node are matched with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Generic, TypeVar

from mooring.objects.selectors import Requirement

T = TypeVar("T")

#: All requirements of one of these terms must hold. None means that every node can use the item.
Terms = Sequence[Sequence[Requirement]] | None

#: A label and its value.
_Label = tuple[str, str]
#: The key for items that require no label value; no real label has an empty key.
_ANYWHERE: _Label = ("", "")


class TopologyIndex(Generic[T]):
    """Items in order of preference, found by the labels of a node."""

    def __init__(self, items: Iterable[tuple[T, Terms]]) -> None:
        self._items = list(items)
        #: Label → the positions of items, in increasing order.
        self._under: dict[_Label, list[int]] = {}
        for position, (_, terms) in enumerate(self._items):
            for label in _labels(terms):
                self._under.setdefault(label, []).append(position)

    def from_node(self, labels: Mapping[str, str]) -> Iterator[T]:
        """The items for a node with these labels. Callers often need only the first."""
        under = self._under
        found = [under[label] for label in (*labels.items(), _ANYWHERE) if label in under]
        last = -1
        for position in found[0] if len(found) == 1 else merge(*found):
            if position != last:
                last = position
                item, terms = self._items[position]
                if terms is None or any(all(r.matches(labels) for r in term) for term in terms):
                    yield item


def _labels(terms: Terms) -> Iterable[_Label]:
    """For each term, the label values of one of its requirements, or _ANYWHERE."""
    if terms is None:
        return (_ANYWHERE,)
    return {label for term in terms for label in _labels_of_term(term)}


def _labels_of_term(term: Sequence[Requirement]) -> Iterable[_Label]:
    values = [[(r.key, value) for value in r.values] for r in term if r.operator == "In"]
    return min(values, key=len, default=[_ANYWHERE])
