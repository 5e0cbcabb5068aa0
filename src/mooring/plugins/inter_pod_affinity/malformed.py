"""What is wrong with a pod's terms, in the words of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from mooring.objects.selectors import compile_selector

#: The names of the required terms in error messages.
REQUIRED, REQUIRED_ANTI = "requiredAffinityTerms", "requiredAntiAffinityTerms"


def problems(pod: Pod) -> str:
    """The problem of each kind of terms that has one."""
    found = [f"{kind}: {problem}" for kind, terms in _kinds(pod) if (problem := _problem(terms))]
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def is_malformed(pod: Pod, *kinds: str) -> bool:
    """Whether the pod has malformed terms of one of these kinds."""
    return bool(pod.affinity_terms.problem) and any(
        _problem(terms) for kind, terms in _kinds(pod) if kind in kinds
    )


def _kinds(pod: Pod) -> Iterator[tuple[str, Sequence[PodAffinityTerm]]]:
    affinity = pod.spec.affinity or Affinity()
    toward, away = (
        side or PodAffinity() for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
    yield REQUIRED, toward.required
    yield REQUIRED_ANTI, away.required
    yield "preferredAffinityTerms", [term.pod_affinity_term for term in toward.preferred]
    yield "preferredAntiAffinityTerms", [term.pod_affinity_term for term in away.preferred]


def _problem(terms: Iterable[PodAffinityTerm]) -> str:
    """The problem of the first malformed term; "" if there is none."""
    try:
        for term in terms:
            compile_selector(term.label_selector)
            compile_selector(term.namespace_selector)
    except ValueError as error:
        return str(error)
    return ""
