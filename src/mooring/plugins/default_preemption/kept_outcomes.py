"""The outcomes of dry runs, kept from one pod to the next that is alike."""

from __future__ import annotations

import numpy as np

from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.pod_class import Requests, first_requests
from mooring.plugin import Listers
from mooring.plugins.default_preemption.many_nodes import ManyNodes
from mooring.plugins.default_preemption.outcomes import Outcomes

#: For how many kinds of pods outcomes are kept.
_MOST_KEPT = 64

_Key = tuple[SelectorKey, Requests, frozenset[str]]


class KeptOutcomes:
    """An outcome holds while the node, its pods, the nominated pods and the budgets stay as they are.

    So it is kept only if no filter looks at anything else.
    """

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        #: Namespace, labels, requests and the filters that are skipped → the pod met last, and its outcomes.
        self._kept: dict[_Key, tuple[Pod, Outcomes]] = {}
        self._followed: set[type] = set()

    def of(self, trial: ManyNodes) -> Outcomes:
        """Those of an earlier pod that is alike, as far as they still hold; else new ones."""
        run, columns = trial.run, trial.run.snapshot.columns
        if not trial.rows.can_be_kept:
            return Outcomes(columns.size)
        for kind in trial.rows.kinds:
            self._follow(kind)
        pod = run.pod
        # Pods without labels, of several sizes, may take turns.
        key = pod.selector_key, first_requests(pod), run.filters.skipped
        known = self._kept.pop(key, None)
        if known is not None and alike(known[0], pod) and len(known[1]) == columns.size:
            outcomes = known[1]
        else:
            outcomes = Outcomes(columns.size)
        # Reinsert at the end, so that the first is the least recently used.
        self._kept[key] = pod, outcomes
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        outcomes.catch_up(columns.generations[: columns.size], run.filters.nominated(), run.budgets)
        if not trial.rows.complete:
            rows = run.snapshot.rows
            others_accept = np.zeros(columns.size, np.bool_)
            others_accept[rows] = trial.rows.others_accept(rows)
            outcomes.read_inputs(trial.rows.inputs(), others_accept)
        return outcomes

    def _follow(self, kind: type) -> None:
        if kind not in self._followed:
            self._followed.add(kind)
            self._listers.follow(kind, lambda _: self._kept.clear())


def alike(one: Pod, other: Pod) -> bool:
    """Whether filters see no difference, for pods of one namespace with the same labels."""
    return one.spec == other.spec and one.metadata.annotations == other.metadata.annotations
