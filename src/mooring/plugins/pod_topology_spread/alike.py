"""Pods that the plugin treats alike: what follows from them and from the nodes is found once.

Pods of one controller have equal constraints. As long as no node changes, only counts differ from one
attempt to the next, and these are kept elsewhere (`mooring.plugin.pods`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol, TypeVar

from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.selectors import Selector
from mooring.plugin import Columns, Rows, Snapshot
from mooring.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraint, PodConstraints
from mooring.plugins.pod_topology_spread.hard_state import HardDomains, HardState
from mooring.plugins.pod_topology_spread.soft_state import SoftDomains, SoftState

#: For how many kinds of pods this is remembered. Beyond that all is forgotten.
_MOST_KINDS = 256

#: The fields of a spec that constraints follow from, and those that say which nodes they count.
_read = attrgetter("topology_spread_constraints", "node_selector", "affinity", "tolerations")
_read_node_fields = attrgetter("node_selector", "affinity", "tolerations")

Constraints = tuple[Constraint, ...]


class AlikePods:
    """Pods with equal namespaces, labels, constraints and requirements on nodes."""

    def __init__(self, known: KnownPods, pod: Pod, selector: Selector | None) -> None:
        self._known = known
        self._fields = _read(pod.spec)
        self._selector = selector
        #: By action, as far as they were asked for.
        self._compiled: dict[str, Constraints] = {}
        self._owns: Sequence[int] = ()
        self._hard_domains: HardDomains | None = None
        self._soft_domains: SoftDomains | None = None

    def have(self, pod: Pod, selector: Selector | None) -> bool:
        """Whether a pod with the same namespace and labels is one of them."""
        same = self._selector is selector or self._selector == selector
        return same and self._fields == _read(pod.spec)

    def constraints(self, pod: Pod, action: str) -> Constraints:
        """The constraints with this action. Raises ValueError if a selector is malformed."""
        compiled = self._compiled.get(action)
        if compiled is None:
            compiled = self._compiled[action] = self._known.compile(pod, action)
        return compiled

    def count_hard(self, pod: Pod, snapshot: Snapshot) -> HardState:
        """If there are hard constraints, and none is malformed."""
        domains = self._hard_domains
        if domains is None or not domains.hold_for(snapshot.columns):
            constraints = self.constraints(pod, HARD)
            self._owns = [int(each.selector.matches(pod.labels)) for each in constraints]
            domains = self._known.hard_domains(constraints, pod, snapshot.columns)
            self._hard_domains = domains
        return domains.count(snapshot, self._owns)

    def count_soft(
        self, pod: Pod, snapshot: Snapshot, feasible: Rows, *, require_all: bool
    ) -> SoftState:
        """If there are soft constraints, and none is malformed."""
        domains = self._soft_domains
        if domains is None or not domains.hold_for(snapshot.columns):
            constraints = self.constraints(pod, SOFT)
            domains = self._known.soft_domains(
                constraints, pod, snapshot.columns, require_all=require_all
            )
            self._soft_domains = domains
        return domains.among(feasible).count(snapshot)


class KnownPods:
    """Finds those that a pod is alike to.

    Domains are shared by all pods with equal constraints: each pod of a StatefulSet has labels of its own.
    """

    def __init__(self, constraints: PodConstraints) -> None:
        self._constraints = constraints
        self._known: dict[SelectorKey, AlikePods] = {}
        #: Constraints → the other fields that domains follow from, and the domains.
        self._hard: dict[Constraints, tuple[object, HardDomains]] = {}
        self._soft: dict[tuple[Constraints, bool], tuple[object, SoftDomains]] = {}

    def alike(self, pod: Pod, action: str) -> AlikePods | None:
        """None if the pod has no constraints with this action."""
        constraints = self._constraints
        selector = None
        if not pod.spec.topology_spread_constraints:
            selector = constraints.default_selector(pod, action)
            if selector is None:
                return None
        known = self._known.get(pod.selector_key)
        if known is None or not known.have(pod, selector):
            if len(self._known) >= _MOST_KINDS:
                self._known.clear()
            known = self._known[pod.selector_key] = AlikePods(self, pod, selector)
        return known

    def compile(self, pod: Pod, action: str) -> Constraints:
        """Raises ValueError if a selector is malformed."""
        return tuple(self._constraints.of(pod, action))

    def hard_domains(self, constraints: Constraints, pod: Pod, columns: Columns) -> HardDomains:
        return _shared(
            self._hard, constraints, pod, columns, lambda: HardDomains(constraints, pod, columns)
        )

    def soft_domains(
        self, constraints: Constraints, pod: Pod, columns: Columns, *, require_all: bool
    ) -> SoftDomains:
        return _shared(
            self._soft,
            (constraints, require_all),
            pod,
            columns,
            lambda: SoftDomains(constraints, pod, columns, require_all=require_all),
        )


class _Domains(Protocol):
    def hold_for(self, columns: Columns) -> bool: ...


Key = TypeVar("Key")
D = TypeVar("D", bound=_Domains)


def _shared(
    known: dict[Key, tuple[object, D]], key: Key, pod: Pod, columns: Columns, make: Callable[[], D]
) -> D:
    """The domains that are known under this key, for pods that may go to the same nodes; or new ones."""
    fields = _read_node_fields(pod.spec)
    found = known.get(key)
    if found is not None and found[0] == fields and found[1].hold_for(columns):
        return found[1]
    if len(known) >= _MOST_KINDS:
        known.clear()
    domains = make()
    known[key] = fields, domains
    return domains
