"""Pods that the plugin treats alike: what follows from them and from the nodes is found once.

Pods of one controller have equal constraints. As long as no node changes, only counts differ from one
attempt to the next, and these are kept elsewhere (`mooring.plugin.pods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.selectors import Selector
from mooring.plugin import Rows, Snapshot
from mooring.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraint, PodConstraints
from mooring.plugins.pod_topology_spread.hard_state import HardDomains, HardState
from mooring.plugins.pod_topology_spread.soft_state import SoftDomains, SoftState

#: For how many kinds of pods this is remembered. Beyond that all is forgotten.
_MOST_KINDS = 256

#: The fields of a spec that constraints, and the nodes that they count, follow from.
_read = attrgetter("topology_spread_constraints", "node_selector", "affinity", "tolerations")


class AlikePods:
    """Pods with equal namespaces, labels, constraints and requirements on nodes."""

    def __init__(self, constraints: PodConstraints, pod: Pod, selector: Selector | None) -> None:
        self._constraints = constraints
        self._fields = _read(pod.spec)
        self._selector = selector
        #: By action, as far as they were asked for.
        self._compiled: dict[str, Sequence[Constraint]] = {}
        self._hard_domains: HardDomains | None = None
        self._soft_domains: SoftDomains | None = None

    def have(self, pod: Pod, selector: Selector | None) -> bool:
        """Whether a pod with the same namespace and labels is one of them."""
        return (self._selector is selector or self._selector == selector) and self._fields == _read(
            pod.spec
        )

    def constraints(self, pod: Pod, action: str) -> Sequence[Constraint]:
        """The constraints with this action. Raises ValueError if a selector is malformed."""
        compiled = self._compiled.get(action)
        if compiled is None:
            compiled = self._compiled[action] = self._constraints.of(pod, action)
        return compiled

    def count_hard(self, pod: Pod, snapshot: Snapshot) -> HardState:
        """If there are hard constraints, and none is malformed."""
        domains = self._hard_domains
        if domains is None or not domains.hold_for(snapshot.columns):
            constraints = self.constraints(pod, HARD)
            domains = self._hard_domains = HardDomains(constraints, pod, snapshot.columns)
        return domains.count(snapshot)

    def count_soft(
        self, pod: Pod, snapshot: Snapshot, feasible: Rows, *, require_all: bool
    ) -> SoftState:
        """If there are soft constraints, and none is malformed."""
        domains = self._soft_domains
        if domains is None or not domains.hold_for(snapshot.columns):
            constraints = self.constraints(pod, SOFT)
            domains = SoftDomains(constraints, pod, snapshot.columns, require_all=require_all)
            self._soft_domains = domains
        return domains.among(feasible).count(snapshot)


class KnownPods:
    """Finds those that a pod is alike to."""

    def __init__(self, constraints: PodConstraints) -> None:
        self._constraints = constraints
        self._known: dict[SelectorKey, AlikePods] = {}

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
            known = self._known[pod.selector_key] = AlikePods(constraints, pod, selector)
        return known
