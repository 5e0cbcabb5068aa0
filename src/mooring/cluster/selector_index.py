"""An index to find the pods that a selector may pick, and the selectors that may pick a pod.

A selector that lists values of a label picks only pods with one of these values, and a selector
with namespaces only pods of these. So a label with its value is a key, and so is a namespace. A pod
is added under all its keys, a selector under the keys of one of its requirements. Items under a key
must still be matched, but they are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from mooring.errors import check_kept
from mooring.objects.selectors import Selector

#: A label and its value; or, under a name that no label can have, a namespace.
IndexKey = tuple[str, str]

#: A key of every pod, for selectors without such requirements.
ANY_POD: IndexKey = ("", "*")

T = TypeVar("T")


def keys_of_pod(namespace: str, labels: Mapping[str, str]) -> tuple[IndexKey, ...]:
    """All keys of a pod."""
    return (*labels.items(), ("", namespace), ANY_POD)


def keys_of_selector(
    selector: Selector, namespaces: Collection[str] | None
) -> list[tuple[IndexKey, ...]]:
    """The keys of each requirement: a pod that the selector picks has exactly one key of each.

    None means all namespaces.
    """
    if selector.nothing:
        return [()]
    keys = [
        tuple((requirement.key, value) for value in requirement.values)
        for requirement in selector.requirements
        if requirement.operator == "In"
    ]
    if namespaces is not None:
        keys.append(tuple(("", namespace) for namespace in namespaces))
    return keys or [(ANY_POD,)]


class SelectorIndex(Generic[T]):
    """Items by key, in the order in which they were added."""

    def __init__(self) -> None:
        self._under: dict[IndexKey, dict[T, None]] = {}

    def add(self, item: T, keys: Iterable[IndexKey]) -> None:
        for key in keys:
            self._under.setdefault(key, {})[item] = None

    def remove(self, item: T, keys: Iterable[IndexKey]) -> None:
        """Remove an item; `keys` are those that it was added under."""
        for key in keys:
            items = self._under[key]
            del items[item]
            if not items:
                del self._under[key]

    def find(self, keys: Iterable[IndexKey]) -> Iterator[T]:
        for key in keys:
            yield from self._under.get(key, ())

    def rarest(self, requirements: Iterable[tuple[IndexKey, ...]]) -> tuple[IndexKey, ...]:
        """The requirement under whose keys the fewest items are found."""
        return min(requirements, key=self._count)

    def validate(self, what: str, items: Iterable[tuple[T, Iterable[IndexKey]]]) -> None:
        """Raise InvariantError unless the index has exactly these items under these keys."""
        rebuilt: SelectorIndex[T] = SelectorIndex()
        for item, keys in items:
            rebuilt.add(item, keys)
        check_kept(f"the index of {what}", self._contents(), rebuilt._contents())

    def _contents(self) -> dict[IndexKey, set[T]]:
        return {key: set(items) for key, items in self._under.items()}

    def _count(self, keys: tuple[IndexKey, ...]) -> int:
        return sum(len(self._under.get(key, ())) for key in keys)
