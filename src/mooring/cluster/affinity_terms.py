"""The affinity terms of placed pods, counted by row.

Pods of one controller have equal terms, so each term is kept once, with a count for each row. An
index by what terms require finds those that may match an incoming pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mooring.cluster.columns import Columns, Ints
from mooring.cluster.row_counts import RowCounts
from mooring.cluster.selector_index import IndexKey, SelectorIndex, keys_of_pod, keys_of_selector
from mooring.errors import check_kept
from mooring.objects.affinity import AffinityTerm
from mooring.objects.pod import Pod, SelectorKey


class TermKind(Enum):
    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class _TermKey:
    kind: TermKind
    weight: int
    term: AffinityTerm


class HeldTerm:
    """One term, and how many pods on each row have it."""

    __slots__ = ("holders", "keys", "kind", "rows", "term", "weight")

    def __init__(self, key: _TermKey, keys: tuple[IndexKey, ...], capacity: int) -> None:
        self.kind = key.kind
        self.term = key.term
        #: The weight of a preferred term; 0 for a required one.
        self.weight = key.weight
        #: The keys in the index.
        self.keys = keys
        #: How many pods have the term, by row.
        self.rows = RowCounts(capacity)
        #: How many pods have the term in total.
        self.holders = 0

    @property
    def counts(self) -> Ints:
        """int64[row]"""
        return self.rows.counts


#: For how many different pods the matching terms are remembered.
_MOST_REMEMBERED = 1024


class HeldTerms:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._terms: dict[_TermKey, HeldTerm] = {}
        self._by_key: SelectorIndex[HeldTerm] = SelectorIndex()
        #: The terms that match pods with a namespace and labels, with the labels of the namespace
        #: at that time. Cleared when a term is added or removed.
        self._matching: dict[SelectorKey, tuple[Mapping[str, str], Sequence[HeldTerm]]] = {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def add(self, pod: Pod, row: int) -> None:
        for key in _keys(pod):
            held = self._terms.get(key)
            if held is None:
                held = self._terms[key] = self._new_term(key)
            held.rows.change(row, 1)
            held.holders += 1

    def remove(self, pod: Pod, row: int) -> None:
        """Raises KeyError if a term of the pod was not added."""
        for key in _keys(pod):
            held = self._terms[key]
            held.rows.change(row, -1)
            held.holders -= 1
            if not held.holders:
                del self._terms[key]
                self._by_key.remove(held, held.keys)
                self._matching.clear()

    def matching(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[HeldTerm]:
        """The terms of placed pods that match this pod, of any kind."""
        if not self._terms:
            return ()
        key = pod.selector_key
        known = self._matching.get(key)
        if known is not None and known[0] == namespace_labels:
            return known[1]
        namespace, labels = pod.namespace, pod.labels
        found = [
            held
            for held in self._by_key.find(keys_of_pod(namespace, labels))
            if held.term.matches(namespace, labels, namespace_labels)
        ]
        if len(self._matching) >= _MOST_REMEMBERED:
            self._matching.clear()
        self._matching[key] = namespace_labels, found
        return found

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for held in self._terms.values():
            held.rows.grow(capacity)

    def validate(self, rebuilt: HeldTerms, columns: Columns) -> None:
        """Raise InvariantError unless a rebuild has the same terms with the same counts."""
        check_kept("affinity terms", self._contents(), rebuilt._contents())
        self._by_key.validate(
            "affinity terms", ((held, held.keys) for held in self._terms.values())
        )
        for key, held in self._terms.items():
            held.rows.validate(f"the pods with {key}", rebuilt._terms[key].rows, columns)
            check_kept(f"{key}, indexed", held.keys in _index_keys(key.term), True)
        for (namespace, labels), (namespace_labels, found) in self._matching.items():
            expected = {
                key
                for key in self._terms
                if key.term.matches(namespace, dict(labels), namespace_labels)
            }
            check_kept(
                f"the terms that match pods of {namespace} with {dict(labels)}",
                {_TermKey(held.kind, held.weight, held.term) for held in found},
                expected,
            )

    def _contents(self) -> dict[_TermKey, object]:
        return {
            key: (held.kind, held.weight, held.term, held.holders)
            for key, held in self._terms.items()
        }

    def _new_term(self, key: _TermKey) -> HeldTerm:
        keys = self._by_key.rarest(_index_keys(key.term))
        held = HeldTerm(key, keys, self.capacity)
        self._by_key.add(held, keys)
        self._matching.clear()
        return held


def _index_keys(term: AffinityTerm) -> list[tuple[IndexKey, ...]]:
    namespaces = term.namespaces if term.namespace_selector.nothing else None
    return keys_of_selector(term.selector, namespaces)


def _keys(pod: Pod) -> list[_TermKey]:
    terms = pod.affinity_terms
    if not terms.any:
        return []
    return [
        *(_TermKey(TermKind.REQUIRED_AFFINITY, 0, term) for term in terms.required_affinity),
        *(
            _TermKey(TermKind.REQUIRED_ANTI_AFFINITY, 0, term)
            for term in terms.required_anti_affinity
        ),
        *(_TermKey(TermKind.PREFERRED_AFFINITY, w, t) for w, t in terms.preferred_affinity),
        *(
            _TermKey(TermKind.PREFERRED_ANTI_AFFINITY, w, t)
            for w, t in terms.preferred_anti_affinity
        ),
    ]
