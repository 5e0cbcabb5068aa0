"""Disruption budgets: which evictions violate a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.pod import Pod
from mooring.objects.selectors import Selector, compile_selector
from mooring.plugin import Listers


class BudgetCache:
    """The budgets of a cluster, compiled again when one changed."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._budgets: Budgets | None = None
        listers.follow(PodDisruptionBudget, self._forget)

    def _forget(self, key: str) -> None:
        self._budgets = None

    def current(self) -> Budgets:
        """The same object until a budget changes."""
        if self._budgets is None:
            self._budgets = Budgets(self._listers.all(PodDisruptionBudget))
        return self._budgets


@dataclass(frozen=True, slots=True)
class _Budget:
    selector: Selector
    allowed: int
    #: Pods that the API server has counted already, though they still exist.
    disrupted: frozenset[str]


class Budgets:
    """What every budget allows at one moment. Each node is counted separately."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[_Budget]] = {}
        for budget in budgets:
            compiled = _compile(budget)
            if compiled is not None:
                self._by_namespace.setdefault(budget.namespace, []).append(compiled)

    def split(self, pods: Sequence[Pod]) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """The pods whose eviction violates a budget, and the others, each in the order given.

        Every pod takes one disruption from each budget that covers it, so the order decides which
        pods violate a budget.
        """
        if not self._by_namespace:
            return (), pods
        left: dict[int, int] = {}
        violating: list[Pod] = []
        others: list[Pod] = []
        for pod in pods:
            violated = False
            for budget in self._covering(pod):
                remaining = left[id(budget)] = left.get(id(budget), budget.allowed) - 1
                violated = violated or remaining < 0
            (violating if violated else others).append(pod)
        return violating, others

    def split_units(
        self, units: Sequence[Sequence[Pod]]
    ) -> tuple[list[Sequence[Pod]], list[Sequence[Pod]]]:
        """As `split`, for pods that are evicted together.

        As in the reference, a unit that violates a budget takes nothing more from any.
        """
        left: dict[int, int] = {}
        violating: list[Sequence[Pod]] = []
        others: list[Sequence[Pod]] = []
        for unit in units:
            violated = any(self._takes_too_much(pod, left) for pod in unit)
            (violating if violated else others).append(unit)
        return violating, others

    def _takes_too_much(self, pod: Pod, left: dict[int, int]) -> bool:
        for budget in self._covering(pod):
            left[id(budget)] = left.get(id(budget), budget.allowed) - 1
            if left[id(budget)] < 0:
                return True
        return False

    def _covering(self, pod: Pod) -> Iterable[_Budget]:
        # As in the reference, a pod without labels matches no budget.
        if not pod.labels:
            return ()
        return (
            budget
            for budget in self._by_namespace.get(pod.namespace, ())
            if pod.name not in budget.disrupted and budget.selector.matches(pod.labels)
        )


def _compile(budget: PodDisruptionBudget) -> _Budget | None:
    """None if the budget covers no pod: its selector is missing, empty or malformed."""
    try:
        selector = compile_selector(budget.spec.selector)
    except ValueError:
        return None
    if selector.nothing or selector.everything:
        return None
    status = budget.status
    return _Budget(selector, status.disruptions_allowed, frozenset(status.disrupted_pods))
