"""The constraints that apply to a pod: its own, or the default ones if it has none.

Default constraints count the pods of the same services and the same controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.pod import Pod, TopologySpreadConstraint
from mooring.objects.selectors import NOTHING, Selector, compile_selector, selector_from_map
from mooring.objects.well_known import HOSTNAME, ZONE
from mooring.plugin.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from mooring.plugin.pods import DeducedSelectors, PodQuery

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"

#: The default constraints, unless the configuration lists others.
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A spread constraint with its selector compiled and its defaults filled in."""

    topology_key: str
    max_skew: int
    selector: Selector
    #: The pods to count.
    query: PodQuery
    min_domains: int = 1
    #: Leave out nodes that the pod's node selector and required node affinity exclude.
    honors_affinity: bool = True
    #: Leave out nodes with taints that the pod does not tolerate.
    honors_taints: bool = False


class PodConstraints:
    """Finds and compiles the constraints of a pod."""

    def __init__(self, args: PodTopologySpreadArgs, selectors: DeducedSelectors) -> None:
        self.system_defaults = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_CONSTRAINTS if self.system_defaults else args.default_constraints
        #: Action (HARD or SOFT) → the default constraints with this action.
        self._defaults: Mapping[str, Sequence[TopologySpreadConstraint]] = {
            action: [c for c in defaults if c.when_unsatisfiable == action]
            for action in (HARD, SOFT)
        }
        self.has_defaults = any(self._defaults.values())
        self._selectors = selectors

    def default_selector(self, pod: Pod, action: str) -> Selector | None:
        """What default constraints with this action would select; None if there are none for the pod."""
        if not self._defaults[action]:
            return None
        selector = self._selectors.of(pod)
        return None if selector.everything else selector

    def of(self, pod: Pod, action: str) -> list[Constraint]:
        """The pod's constraints with this action. Raises ValueError if a selector is malformed.

        A pod that has a constraint of its own, hard or soft, gets no default constraints at all.
        """
        own = pod.spec.topology_spread_constraints
        try:
            if own:
                return [_compile(c, pod) for c in own if c.when_unsatisfiable == action]
            return self._default_constraints(pod, action)
        except ValueError as error:
            kind = "hard" if action == HARD else "soft"
            doing = f"obtaining pod's {kind}" if own else f"setting default {kind}"
            raise ValueError(f"{doing} topology spread constraints: {error}") from error

    def _default_constraints(self, pod: Pod, action: str) -> list[Constraint]:
        selector = self.default_selector(pod, action)
        if selector is None:
            return []
        return [_with_defaults(each, selector, pod) for each in self._defaults[action]]


def _compile(constraint: TopologySpreadConstraint, pod: Pod) -> Constraint:
    selector = compile_selector(constraint.label_selector)
    merged = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    # A missing selector matches nothing, even with requirements added to it.
    return _with_defaults(constraint, selector.plus(selector_from_map(merged).requirements), pod)


def _with_defaults(
    constraint: TopologySpreadConstraint, selector: Selector, pod: Pod
) -> Constraint:
    # An empty selector matches every pod but counts none, as upstream.
    counted = NOTHING if selector.everything else selector
    return Constraint(
        query=PodQuery(counted, frozenset((pod.namespace,)), terminating=False),
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )
