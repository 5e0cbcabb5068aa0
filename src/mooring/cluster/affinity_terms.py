"""The affinity terms of the pods that are placed, counted by row.

Pods of one controller carry equal terms, so a term is held once, with a count a row. Which held
terms speak of an incoming pod is remembered by the pod's namespace and labels, and is only asked again
when a term appears that was not there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from mooring.objects.affinity import AffinityTerm
from mooring.objects.pod import Pod

_MOST_REMEMBERED = 1024


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
    """One term, and on which rows how many pods hold it."""

    __slots__ = ("counts", "holders", "kind", "term", "weight")

    def __init__(self, key: _TermKey, capacity: int) -> None:
        self.kind = key.kind
        self.term = key.term
        #: Of a preferred term; 0 for a required one.
        self.weight = key.weight
        #: int32[row]
        self.counts = np.zeros(capacity, np.int32)
        #: How many pods hold it in all.
        self.holders = 0


_PodKey = tuple[str, frozenset[tuple[str, str]], frozenset[tuple[str, str]]]


class HeldTerms:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._terms: dict[_TermKey, HeldTerm] = {}
        self._speaking_of: OrderedDict[_PodKey, list[HeldTerm]] = OrderedDict()

    def add(self, pod: Pod, row: int) -> None:
        for key in _keys(pod):
            held = self._terms.get(key)
            if held is None:
                held = self._terms[key] = HeldTerm(key, self.capacity)
                self._speaking_of.clear()
            held.counts[row] += 1
            held.holders += 1

    def remove(self, pod: Pod, row: int) -> None:
        for key in _keys(pod):
            held = self._terms[key]
            held.counts[row] -= 1
            held.holders -= 1
            if not held.holders:
                del self._terms[key]
                self._speaking_of.clear()

    def speaking_of(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[HeldTerm]:
        """The held terms that match this pod, whichever their kind."""
        if not self._terms:
            return ()
        key = (pod.namespace, pod.label_items, frozenset(namespace_labels.items()))
        known = self._speaking_of.get(key)
        if known is None:
            if len(self._speaking_of) >= _MOST_REMEMBERED:
                self._speaking_of.popitem(last=False)
            known = self._speaking_of[key] = [
                held
                for held in self._terms.values()
                if held.term.matches(pod.namespace, pod.labels, namespace_labels)
            ]
        return known

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for held in self._terms.values():
            longer = np.zeros(capacity, np.int32)
            longer[: len(held.counts)] = held.counts
            held.counts = longer


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
