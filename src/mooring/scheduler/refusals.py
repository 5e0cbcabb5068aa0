"""What was found out about a pod that fits nowhere holds for the pods of its class.

A backlog is mostly made of pods that are alike, and they are tried one after another in a cluster that
changes little. As long as nothing changes, the first one's refusal is the answer for the others. After a
change the evaluation judges the rows that changed; if no verdict differs, only PostFilter may have something
new to say.

Plugins that do not say what they depend on may look at anything, a clock or a web service among it: in a
profile that has one at the points concerned, nothing is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.objects.pod_class import PodClasses
from mooring.runtime.evaluation import Evaluation, Filtered
from mooring.runtime.framework import Framework
from mooring.scheduler.decision import Decision

#: How many classes of pods are remembered; the oldest refusal is forgotten first.
MOST_REFUSALS = 1024

_POINTS = (Point.PRE_FILTER, Point.FILTER, Point.POST_FILTER)


@dataclass(slots=True)
class _Refusal:
    decision: Decision
    #: What the PreFilter plugins left for the Filter plugins.
    state: CycleState
    #: That of the cluster when the decision was last known to hold.
    generation: int
    #: Whose verdicts these are, and their version; None if they cannot be told from others.
    evaluation: Evaluation | None
    version: int | None
    #: The result of the attempt, with what PostFilter said; None as long as PostFilter was not asked.
    conclusion: Status | None = None
    #: Whether PostFilter said then that it would say the same again.
    repeats: bool = False


class Refusals:
    """The refusals of one profile."""

    def __init__(self, framework: Framework, cluster: Cluster, classes: PodClasses) -> None:
        self._framework = framework
        self._cluster = cluster
        self._classes = classes
        self._refusals: dict[int, _Refusal] = {}
        self.may_remember = all(
            call.depends_on is not None for point in _POINTS for call in framework.points[point]
        )

    def recall(self, state: CycleState, pod: Pod) -> Decision | None:
        """The decision on a pod of this class, if nothing changed since."""
        known = self._known(pod) if self._refusals else None
        if known is None or known.generation != self._cluster.generations.latest:
            return None
        state.adopt(known.state)
        return replace(known.decision, pod=pod, conclusion=known.conclusion)

    def recall_verdicts(
        self, decision: Decision, evaluation: Evaluation, filtered: Filtered
    ) -> Decision | None:
        """The decision on a pod of this class, if no verdict differs from what it was then."""
        pod = decision.pod
        known = self._known(pod)
        if (
            known is None
            or filtered.version is None
            or known.evaluation is not evaluation
            or known.version != filtered.version
            or decision.pre_filter != known.decision.pre_filter
        ):
            return None
        # The listed objects, budgets for one, may matter to PostFilter.
        same_objects = self._cluster.listers.generation <= known.generation
        known.generation = self._cluster.generations.latest
        if not (known.repeats and same_objects and self._post_filters_repeat(pod)):
            known.conclusion = None
        # Later plugins may say something else of a node than they did, which only explanations show.
        # The order of the nodes may be another one by now.
        diagnosis = replace(
            known.decision.diagnosis, filtered=filtered, snapshot=decision.diagnosis.snapshot
        )
        known.decision = replace(known.decision, pod=pod, diagnosis=diagnosis)
        return replace(known.decision, conclusion=known.conclusion)

    def keep(
        self,
        decision: Decision,
        state: CycleState,
        evaluation: Evaluation | None = None,
        version: int | None = None,
    ) -> None:
        """A decision by which a pod fits nowhere."""
        pod_class = self._classes.of(decision.pod)
        if not self.may_remember or self._framework.nominator.has_any or pod_class is None:
            return
        self._refusals.pop(pod_class, None)
        if len(self._refusals) >= MOST_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[pod_class] = _Refusal(
            decision, state, self._cluster.generations.latest, evaluation, version
        )

    def conclude(self, decision: Decision, conclusion: Status) -> None:
        """PostFilter did not help: what this pod is told is what the pods of its class are told."""
        pod_class = self._classes.of(decision.pod)
        known = self._refusals.get(pod_class) if pod_class is not None else None
        if known is not None and known.decision.diagnosis is decision.diagnosis:
            # It may be a copy, and knows what PostFilter has found out since.
            known.decision = decision
            known.conclusion = conclusion
            known.repeats = self._post_filters_repeat(decision.pod)

    def _known(self, pod: Pod) -> _Refusal | None:
        if self._framework.nominator.has_any:
            return None
        pod_class = self._classes.of(pod)
        return self._refusals.get(pod_class) if pod_class is not None else None

    def _post_filters_repeat(self, pod: Pod) -> bool:
        return all(
            call.post_filter_repeats is not None and call.post_filter_repeats(pod)
            for call in self._framework.points[Point.POST_FILTER]
        )
