"""Drain nodes: cordon them, and evict their pods as far as disruption budgets allow.

As `kubectl drain --ignore-daemonsets --force`: DaemonSet and static pods stay, and pods without a controller
are deleted. Evictions that a budget blocks are tried again every few seconds, until replacements run on
other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from msgspec.structs import replace

from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import compile_selector
from mooring.objects.taints import Taint
from mooring.objects.well_known import UNSCHEDULABLE_TAINT
from mooring.sim.api import SimApi

#: The time between two attempts, as in kubectl.
_AGAIN_S = 5.0
#: A drain stops after this many attempts without an eviction; otherwise a scenario might never end.
_MOST_ATTEMPTS = 720


def cordon(api: SimApi, node: Node) -> None:
    if not node.spec.unschedulable:
        api.update(cordoned(node))


def cordoned(node: Node) -> Node:
    taints = [*_other_taints(node), UNSCHEDULABLE_TAINT]
    return replace(node, spec=replace(node.spec, unschedulable=True, taints=taints))


def uncordon(api: SimApi, node: Node) -> None:
    spec = replace(node.spec, unschedulable=False, taints=list(_other_taints(node)))
    api.update(replace(node, spec=spec))


def drain(api: SimApi, nodes: Sequence[Node]) -> None:
    """Cordon the nodes and evict the pods that budgets allow; retry the others later."""
    for node in nodes:
        cordon(api, node)
    _evict(api, frozenset(node.name for node in nodes), _MOST_ATTEMPTS)


def _evict(api: SimApi, names: frozenset[str], attempts: int) -> None:
    blocked = False
    # Uncordoning a node cancels its drain.
    names = frozenset(n for n in names if (node := api.get(Node, n)) and node.spec.unschedulable)
    for pod in list(api.all(Pod)):
        if pod.node_name not in names or pod.terminating or pod.finished or pod.belongs_to_node:
            continue
        if all(_allows(api, budget) for budget in _budgets_of(api, pod)):
            api.terminate(pod)
            attempts = _MOST_ATTEMPTS
        else:
            blocked = True
    if blocked and attempts:
        api.later(_AGAIN_S, lambda: _evict(api, names, attempts - 1))


def _budgets_of(api: SimApi, pod: Pod) -> Iterator[PodDisruptionBudget]:
    for budget in api.all(PodDisruptionBudget):
        if budget.namespace == pod.namespace:
            if compile_selector(budget.spec.selector).matches(pod.labels):
                yield budget


def _allows(api: SimApi, budget: PodDisruptionBudget) -> bool:
    """Whether the budget allows one more eviction. Terminating pods count as expected, not as healthy."""
    selector = compile_selector(budget.spec.selector)
    pods = [
        pod
        for pod in api.all(Pod)
        if pod.namespace == budget.namespace and not pod.finished and selector.matches(pod.labels)
    ]
    there = sum(bool(pod.node_name) and not pod.terminating for pod in pods)
    if budget.spec.max_unavailable is not None:
        needed = len(pods) - _number(budget.spec.max_unavailable, len(pods))
    else:
        needed = _number(budget.spec.min_available or 0, len(pods))
    return there > needed


def _number(amount: int | str, total: int) -> int:
    """A percentage is rounded up, as the disruption controller does."""
    if isinstance(amount, int):
        return amount
    return ceil(int(amount.removesuffix("%")) * total / 100)


def _other_taints(node: Node) -> Iterator[Taint]:
    return (taint for taint in node.taints if taint.key != UNSCHEDULABLE_TAINT.key)
