"""The pods that the terms of an incoming pod match, as queries that `PodCounts` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.objects.affinity import AffinityTerm, PodTerms
from mooring.objects.kinds import Namespace
from mooring.objects.selectors import Selector
from mooring.plugin import Listers
from mooring.plugin.pods import MOST_COUNTERS, PodQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class TermQueries:
    """The queries for the terms of one pod."""

    #: The topology key of each required affinity term, and the pods that match all of these terms.
    affinity: tuple[tuple[str, PodQuery], ...]
    #: The topology key and the pods of each required anti-affinity term.
    anti: tuple[tuple[str, PodQuery], ...]
    #: The topology key, the weight (below 0 for anti-affinity) and the pods of each preferred term.
    preferred: tuple[tuple[str, int, PodQuery], ...]


class QueryCompiler:
    """Compiles terms to queries, once for all pods with equal terms."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._compiled: dict[PodTerms, TermQueries] = {}
        # A namespace selector is replaced by the namespaces that it selects at the time.
        listers.follow(Namespace, lambda _: self._compiled.clear())

    def queries(self, terms: PodTerms) -> TermQueries:
        queries = self._compiled.get(terms)
        if queries is None:
            if len(self._compiled) >= MOST_COUNTERS:
                self._compiled.clear()
            queries = self._compiled[terms] = self._compile(terms)
        return queries

    def _compile(self, terms: PodTerms) -> TermQueries:
        return TermQueries(
            affinity=self._affinity(terms.required_affinity),
            anti=tuple(
                (term.topology_key, self._query(term)) for term in terms.required_anti_affinity
            ),
            preferred=tuple(
                (term.topology_key, sign * weight, self._query(term))
                for sign, preferred in (
                    (1, terms.preferred_affinity),
                    (-1, terms.preferred_anti_affinity),
                )
                for weight, term in preferred
            ),
        )

    def _affinity(self, terms: Sequence[AffinityTerm]) -> tuple[tuple[str, PodQuery], ...]:
        """Only a pod that matches every term counts, and it counts for each of the keys."""
        queries = [self._query(term) for term in terms]
        if len(queries) > 1:
            selector = Selector(
                tuple(r for query in queries for r in query.selector.requirements),
                nothing=any(query.selector.nothing for query in queries),
            )
            namespaces = [query.namespaces for query in queries if query.namespaces is not None]
            all_of = PodQuery(selector, frozenset.intersection(*namespaces) if namespaces else None)
            queries = [all_of] * len(terms)
        return tuple(zip((term.topology_key for term in terms), queries, strict=True))

    def _query(self, term: AffinityTerm) -> PodQuery:
        """The pods that one term matches.

        The reference replaces a namespace selector by the names of the namespaces that it selects,
        but still matches it against empty labels afterwards. So a selector that accepts empty labels
        (it is empty, or has only NotIn and DoesNotExist) covers every namespace.
        """
        selector = term.namespace_selector
        if selector.matches({}):
            return PodQuery(term.selector, None)
        if selector.nothing:
            return PodQuery(term.selector, term.namespaces)
        selected = (
            namespace.name
            for namespace in self._listers.all(Namespace)
            if selector.matches(namespace.labels)
        )
        return PodQuery(term.selector, term.namespaces.union(selected))
