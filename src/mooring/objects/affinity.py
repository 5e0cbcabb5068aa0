"""Pod affinity terms, compiled for matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mooring.objects.cached_property import cached_property
from mooring.objects.selectors import NOTHING, Selector, compile_selector

if TYPE_CHECKING:
    from mooring.objects.pod import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm


@dataclass(frozen=True)
class AffinityTerm:
    """Which pods a term selects, and over which topology key."""

    selector: Selector
    #: The namespaces that the term lists; that of its pod if the term has no namespaces and no
    #: namespace selector.
    namespaces: frozenset[str]
    namespace_selector: Selector
    topology_key: str

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)

    @cached_property
    def _hash(self) -> int:
        return hash((self.selector, self.namespaces, self.namespace_selector, self.topology_key))

    def __hash__(self) -> int:
        """Terms are dictionary keys in hot paths, and slow to hash: hash once."""
        return self._hash


@dataclass(frozen=True)
class PodTerms:
    """The terms of one pod's affinity and anti-affinity."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    #: (weight, term)
    preferred_affinity: tuple[tuple[int, AffinityTerm], ...] = ()
    preferred_anti_affinity: tuple[tuple[int, AffinityTerm], ...] = ()
    #: What is wrong with the first kind of terms that is malformed; such a kind is empty.
    problem: str = ""

    @cached_property
    def any(self) -> bool:
        return bool(
            self.required_affinity
            or self.required_anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )

    @cached_property
    def _hash(self) -> int:
        terms = self.required_affinity, self.required_anti_affinity
        return hash((*terms, self.preferred_affinity, self.preferred_anti_affinity))

    def __hash__(self) -> int:
        """As those of `AffinityTerm`: hash once."""
        return self._hash


def compile_pod_terms(
    namespace: str, affinity: PodAffinity | None, anti_affinity: PodAffinity | None
) -> PodTerms:
    if affinity is None and anti_affinity is None:
        return _NONE
    problems: list[str] = []

    def required(side: PodAffinity | None) -> tuple[AffinityTerm, ...]:
        return tuple(_all(namespace, side.required, problems)) if side is not None else ()

    def preferred(side: PodAffinity | None) -> tuple[tuple[int, AffinityTerm], ...]:
        return _weighted(namespace, side.preferred, problems) if side is not None else ()

    terms = PodTerms(
        required_affinity=required(affinity),
        required_anti_affinity=required(anti_affinity),
        preferred_affinity=preferred(affinity),
        preferred_anti_affinity=preferred(anti_affinity),
        problem=problems[0] if problems else "",
    )
    return _first_equal(terms)


@lru_cache(maxsize=4096)
def _first_equal(terms: PodTerms) -> PodTerms:
    """Equal terms are one object: they are dictionary keys, and slow to compare."""
    return terms


_NONE = PodTerms()


def _weighted(
    namespace: str, terms: Sequence[WeightedPodAffinityTerm], problems: list[str]
) -> tuple[tuple[int, AffinityTerm], ...]:
    compiled = _all(namespace, [term.pod_affinity_term for term in terms], problems)
    return tuple(zip((term.weight for term in terms), compiled, strict=False))


def _all(
    namespace: str, terms: Sequence[PodAffinityTerm], problems: list[str]
) -> list[AffinityTerm]:
    """All terms; none if one is malformed."""
    try:
        return [_compile(namespace, term) for term in terms]
    except ValueError as error:
        problems.append(str(error))
        return []


def _compile(namespace: str, term: PodAffinityTerm) -> AffinityTerm:
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset((namespace,))
    selector = term.namespace_selector
    return AffinityTerm(
        selector=compile_selector(term.label_selector),
        namespaces=names,
        namespace_selector=NOTHING if selector is None else compile_selector(selector),
        topology_key=term.topology_key,
    )
