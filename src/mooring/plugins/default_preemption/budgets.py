"""Disruption budgets: which evictions violate a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.pod import Pod
from mooring.objects.selectors import LabelSelector, Selector, compile_selector
from mooring.plugin import Listers


class BudgetCache:
    """The budgets of a cluster. A budget that changed is compiled again."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._budgets = Budgets(listers.all(PodDisruptionBudget))
        #: The keys of budgets that changed since then.
        self._changed: set[str] = set()
        listers.follow(PodDisruptionBudget, self._changed.add)

    def current(self) -> Budgets:
        """The same object until a budget changes."""
        if self._changed:
            changed = {key: self._listers.get(PodDisruptionBudget, key) for key in self._changed}
            self._changed.clear()
            self._budgets = self._budgets.with_changes(changed)
        return self._budgets


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget that covers pods."""

    #: `namespace/name`.
    key: str
    namespace: str
    #: As it was written, and compiled.
    label_selector: LabelSelector | None
    selector: Selector
    allowed: int
    #: Pods that the API server has counted already, though they still exist.
    disrupted: frozenset[str]


class Budgets:
    """What every budget allows at one moment. Each node is counted separately."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._set({budget.key: _compile(budget) for budget in budgets})

    def _set(self, budgets: Mapping[str, Budget | None]) -> None:
        #: The budgets that cover pods. A budget keeps its place when its status changes.
        self.by_key = {key: budget for key, budget in budgets.items() if budget is not None}
        self._by_namespace: dict[str, list[Budget]] = {}
        for budget in self.by_key.values():
            self._by_namespace.setdefault(budget.namespace, []).append(budget)

    def with_changes(self, changed: Mapping[str, PodDisruptionBudget | None]) -> Budgets:
        """These budgets, with some of them replaced; None removes a budget."""
        compiled = {
            key: None if budget is None else _compile(budget) for key, budget in changed.items()
        }
        other = Budgets(())
        other._set({**self.by_key, **compiled})
        return other

    def changed_since(self, earlier: Budgets) -> list[tuple[Budget | None, Budget | None]]:
        """Each budget that is not the same now, before and after; None if it covered or covers no pod."""
        now, then = self.by_key, earlier.by_key
        return [
            (then.get(key), now.get(key))
            for key in then.keys() | now.keys()
            if then.get(key) is not now.get(key)
        ]

    def split(
        self, pods: Sequence[Pod], covered: dict[str, int] | None = None
    ) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """The pods whose eviction violates a budget, and the others, each in the order given.

        Every pod takes one disruption from each budget that covers it, so the order decides which
        pods violate a budget. `covered` gets how many of the pods each budget covers, by key.
        """
        if not self._by_namespace:
            return (), pods
        counts: dict[str, int] = {} if covered is None else covered
        violating: list[Pod] = []
        others: list[Pod] = []
        for pod in pods:
            violated = False
            for budget in self._covering(pod):
                count = counts[budget.key] = counts.get(budget.key, 0) + 1
                violated = violated or count > budget.allowed
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

    def _covering(self, pod: Pod) -> Iterable[Budget]:
        return (
            budget
            for budget in self.selecting(pod.namespace, pod.labels)
            if pod.name not in budget.disrupted
        )

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> Iterable[Budget]:
        """The budgets whose selectors match these labels."""
        # As in the reference, a pod without labels matches no budget.
        if not labels:
            return ()
        return (
            budget
            for budget in self._by_namespace.get(namespace, ())
            if budget.selector.matches(labels)
        )


def _compile(budget: PodDisruptionBudget) -> Budget | None:
    """None if the budget covers no pod: its selector is missing, empty or malformed."""
    try:
        selector = compile_selector(budget.spec.selector)
    except ValueError:
        return None
    if selector.nothing or selector.everything:
        return None
    status = budget.status
    return Budget(
        budget.key,
        budget.namespace,
        budget.spec.selector,
        selector,
        status.disruptions_allowed,
        frozenset(status.disrupted_pods),
    )
