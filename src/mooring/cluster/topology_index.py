"""What can be had from which nodes: volumes, storage pools, whatever names nodes by their labels.

There may be as many local volumes as nodes, and asking each of them about each node takes minutes
where it should take no time. So a thing is filed under the label values that it asks for, and a node
looks only under its own labels. What is found there is still asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Generic, TypeVar

from mooring.objects.selectors import Requirement

T = TypeVar("T")

#: Terms to reach a thing: all requirements of one of them must hold. None reaches it from everywhere.
Terms = Sequence[Sequence[Requirement]] | None

#: A label and its value.
_Label = tuple[str, str]
#: The label that stands for every node; no real one has an empty key.
_ANYWHERE: _Label = ("", "")


class TopologyIndex(Generic[T]):
    """Things in an order of preference, and which of them a node reaches, in that order."""

    def __init__(self, things: Iterable[tuple[T, Terms]]) -> None:
        self._things = list(things)
        #: Under each label the positions of things, going up.
        self._under: dict[_Label, list[int]] = {}
        for position, (_, terms) in enumerate(self._things):
            for label in _labels(terms):
                self._under.setdefault(label, []).append(position)

    def from_node(self, labels: Mapping[str, str]) -> Iterator[T]:
        """One after the other: most often the first is all that is asked for."""
        under = self._under
        found = [under[label] for label in (*labels.items(), _ANYWHERE) if label in under]
        last = -1
        for position in found[0] if len(found) == 1 else merge(*found):
            if position != last:
                last = position
                thing, terms = self._things[position]
                if terms is None or any(all(r.matches(labels) for r in term) for term in terms):
                    yield thing


def _labels(terms: Terms) -> Iterable[_Label]:
    """For each term, the values of one label that it asks for; or that of every node."""
    if terms is None:
        return (_ANYWHERE,)
    return {label for term in terms for label in _labels_of_term(term)}


def _labels_of_term(term: Sequence[Requirement]) -> Iterable[_Label]:
    values = [[(r.key, value) for value in r.values] for r in term if r.operator == "In"]
    return min(values, key=len, default=[_ANYWHERE])
