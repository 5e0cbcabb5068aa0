"""Which pods a selector may pick, and which selectors may pick a pod, found without asking them all.

A selector that names a label with its values can only pick pods that carry one of those values, and
one that is bound to namespaces only pods of those. Such a fact is a clue. Pods are filed under all
of their clues, a selector under the clues of one of its demands; what is found under a clue still
has to be asked, but it is a few where there may be thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from mooring.objects.selectors import Selector

#: A label and its value; or, under a key that no label can have, a namespace.
Clue = tuple[str, str]

#: The clue that every pod gives, for selectors that ask for nothing in particular.
ANY_POD: Clue = ("", "*")

T = TypeVar("T")


def clues_of(namespace: str, labels: Mapping[str, str]) -> tuple[Clue, ...]:
    """All that a pod can be found by."""
    return (*labels.items(), ("", namespace), ANY_POD)


def demands_of(selector: Selector, namespaces: Collection[str] | None) -> list[tuple[Clue, ...]]:
    """What a selector demands: a pod that it picks gives exactly one clue of each demand.

    None in place of namespaces stands for all of them.
    """
    if selector.nothing:
        return [()]
    demands = [
        tuple((requirement.key, value) for value in requirement.values)
        for requirement in selector.requirements
        if requirement.operator == "In"
    ]
    if namespaces is not None:
        demands.append(tuple(("", namespace) for namespace in namespaces))
    return demands or [(ANY_POD,)]


class ClueIndex(Generic[T]):
    """Things by clue, in the order they came in."""

    def __init__(self) -> None:
        self._under: dict[Clue, dict[T, None]] = {}

    def file(self, thing: T, clues: Iterable[Clue]) -> None:
        for clue in clues:
            self._under.setdefault(clue, {})[thing] = None

    def withdraw(self, thing: T, clues: Iterable[Clue]) -> None:
        """Given the clues that it was filed under."""
        for clue in clues:
            things = self._under[clue]
            del things[thing]
            if not things:
                del self._under[clue]

    def find(self, clues: Iterable[Clue]) -> Iterator[T]:
        for clue in clues:
            yield from self._under.get(clue, ())

    def rarest(self, demands: Iterable[tuple[Clue, ...]]) -> tuple[Clue, ...]:
        """The demand under whose clues the fewest things are found."""
        return min(demands, key=self._count)

    def _count(self, clues: tuple[Clue, ...]) -> int:
        return sum(len(self._under.get(clue, ())) for clue in clues)
