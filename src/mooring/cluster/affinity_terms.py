"""The affinity terms of placed pods, counted by row.

Pods of one controller have equal terms, so each term is kept once, with a count for each row. An
index by what terms require finds those that may match an incoming pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mooring.cluster.columns import Columns, Ints
from mooring.cluster.row_counts import RowCounts
from mooring.cluster.selector_index import IndexKey, SelectorIndex, keys_of_pod, keys_of_selector
from mooring.errors import check_kept
from mooring.objects.affinity import AffinityTerm, PodTerms
from mooring.objects.pod import Pod, SelectorKey


class TermKind(Enum):
    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


#: The kinds for which the reference looks at the nodes that have pods with any terms.
_LISTED_WITH_ANY = frozenset(TermKind) - {TermKind.REQUIRED_ANTI_AFFINITY}


@dataclass(frozen=True, slots=True)
class _TermKey:
    kind: TermKind
    weight: int
    term: AffinityTerm
    listed: bool


class HeldTerm:
    """One term, and how many pods on each row have it."""

    __slots__ = ("holders", "key", "keys", "kind", "listed", "rows", "term", "weight")

    def __init__(self, key: _TermKey, keys: tuple[IndexKey, ...], capacity: int) -> None:
        self.key = key
        self.kind = key.kind
        self.term = key.term
        #: The weight of a preferred term; 0 for a required one.
        self.weight = key.weight
        #: Whether the reference finds the pods that have the term. See `HeldTerms.unlist`.
        self.listed = key.listed
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
        #: What pods with these terms hold. Cleared when a term is added or removed.
        self._held: dict[PodTerms, list[HeldTerm]] = {}
        #: UID of a pod that is tried with its group → the kinds of its terms that are not listed.
        self._unlisted: dict[str, frozenset[TermKind]] = {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def add(self, pod: Pod, row: int) -> None:
        terms = pod.affinity_terms
        if not terms.any:
            return
        held_terms = None if self._unlisted else self._held.get(terms)
        if held_terms is None:
            keys = _keys(terms, self._unlisted.get(pod.uid))
            held_terms = [self._terms.get(key) or self._new_term(key) for key in keys]
            if not self._unlisted:
                if len(self._held) >= _MOST_REMEMBERED:
                    self._held.clear()
                self._held[terms] = held_terms
        for held in held_terms:
            held.rows.change(row, 1)
            held.holders += 1

    def remove(self, pod: Pod, row: int) -> None:
        """Raises KeyError if a term of the pod was not added."""
        terms = pod.affinity_terms
        if not terms.any:
            return
        held_terms = None if self._unlisted else self._held.get(terms)
        if held_terms is None:
            held_terms = [self._terms[key] for key in _keys(terms, self._unlisted.get(pod.uid))]
        for held in held_terms:
            held.rows.change(row, -1)
            held.holders -= 1
            if not held.holders:
                del self._terms[held.key]
                self._by_key.remove(held, held.keys)
                self._forget_found()
        self._unlisted.pop(pod.uid, None)

    def unlist(self, pod: Pod, row: int, beside: Iterable[Pod]) -> None:
        """A pod that was added is tried with its group, on a node that has these pods.

        The reference lists the nodes that have pods with terms, and with required anti-affinity, before it
        tries the members of a group. So it misses the terms of a member on a node that is not listed.
        """
        if not pod.affinity_terms.any:
            return
        terms = [other.affinity_terms for other in beside if other.uid not in self._unlisted]
        unlisted = frozenset() if any(each.any for each in terms) else _LISTED_WITH_ANY
        if not any(each.required_anti_affinity for each in terms):
            unlisted |= {TermKind.REQUIRED_ANTI_AFFINITY}
        self.remove(pod, row)
        self._unlisted[pod.uid] = unlisted
        self.add(pod, row)

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
        check_kept("pods with terms that are not listed", self._unlisted, {})
        self._by_key.validate(
            "affinity terms", ((held, held.keys) for held in self._terms.values())
        )
        for key, held in self._terms.items():
            held.rows.validate(f"the pods with {key}", rebuilt._terms[key].rows, columns)
            check_kept(f"{key}, indexed", held.keys in _index_keys(key.term), True)
        for terms, held_terms in self._held.items():
            held_keys = [held.key for held in held_terms if self._terms.get(held.key) is held]
            check_kept(f"what pods with {terms} hold", held_keys, _keys(terms))
        for (namespace, labels), (namespace_labels, found) in self._matching.items():
            expected = {
                key
                for key in self._terms
                if key.term.matches(namespace, dict(labels), namespace_labels)
            }
            check_kept(
                f"the terms that match pods of {namespace} with {dict(labels)}",
                {held.key for held in found},
                expected,
            )

    def _contents(self) -> dict[_TermKey, object]:
        return {
            key: (held.kind, held.weight, held.term, held.holders)
            for key, held in self._terms.items()
        }

    def _new_term(self, key: _TermKey) -> HeldTerm:
        keys = self._by_key.rarest(_index_keys(key.term))
        held = self._terms[key] = HeldTerm(key, keys, self.capacity)
        self._by_key.add(held, keys)
        self._forget_found()
        return held

    def _forget_found(self) -> None:
        """A term was added or removed."""
        self._matching.clear()
        self._held.clear()


def _keys(terms: PodTerms, unlisted: frozenset[TermKind] | None = None) -> list[_TermKey]:
    kinds = {
        TermKind.REQUIRED_AFFINITY: ((0, term) for term in terms.required_affinity),
        TermKind.REQUIRED_ANTI_AFFINITY: ((0, term) for term in terms.required_anti_affinity),
        TermKind.PREFERRED_AFFINITY: terms.preferred_affinity,
        TermKind.PREFERRED_ANTI_AFFINITY: terms.preferred_anti_affinity,
    }
    return [
        _TermKey(kind, weight, term, unlisted is None or kind not in unlisted)
        for kind, weighted in kinds.items()
        for weight, term in weighted
    ]


def _index_keys(term: AffinityTerm) -> list[tuple[IndexKey, ...]]:
    namespaces = term.namespaces if term.namespace_selector.nothing else None
    return keys_of_selector(term.selector, namespaces)
