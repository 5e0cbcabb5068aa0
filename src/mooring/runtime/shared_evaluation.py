"""What follows from the answers of the plugins that look at nodes alone, not at the pods on them.

Most kinds of pods differ only in their labels and in what they request. These plugins treat them alike, and
the kinds share one `SharedEvaluation`: what PreFilter and PreScore left, which rows pass, how they score. A
new kind of pods adds what nobody has answered yet: the answers of the plugins that count what the pods of a
node take, and of those that look at the whole cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.status import Code, Status
from mooring.runtime import scoring
from mooring.runtime.answers import Answers
from mooring.runtime.framework import Framework
from mooring.runtime.kept_scores import KeptScores, TieKeys
from mooring.runtime.kept_verdicts import KeptVerdicts
from mooring.runtime.plugin_calls import Calls
from mooring.runtime.question import Question


class LiveCalls(NamedTuple):
    """Plugins whose answers are not kept; those that filter come with their place among the filters."""

    filters: list[tuple[int, Calls]]
    pre_scores: list[Calls]
    scores: list[Calls]


class SharedEvaluation:
    """Shared by kinds of pods that these plugins treat alike."""

    def __init__(
        self,
        framework: Framework,
        tie_keys: TieKeys,
        cluster: Cluster | None = None,
        kept: Mapping[str, Answers] | None = None,
    ) -> None:
        """`kept` are the answers of the plugins that look at nodes alone."""
        self.framework = framework
        self.tie_keys = tie_keys
        self.cluster = cluster
        self.kept = kept or {}
        #: The other plugins; those that filter come with their place among the filters.
        self.other_filters = [
            (place, call)
            for place, call in enumerate(framework.points[Point.FILTER])
            if call.name not in self.kept
        ]
        self.other_pre_scores, self.other_scores = (
            [call for call in framework.points[point] if call.name not in self.kept]
            for point in (Point.PRE_SCORE, Point.SCORE)
        )
        #: Names of plugins with kept answers → the other ones that are asked each time.
        self._live: dict[tuple[str, ...], LiveCalls] = {}
        self._node_position = -1
        self._size = -1
        #: Grows when all that is kept here is forgotten.
        self.epoch = 0
        #: What PreFilter left; None until all of these plugins were asked.
        self.pre_filtered: PreFiltered | None = None
        #: Those of these plugins that filter and that PreFilter did not tell to skip, with their places.
        self.filters: list[tuple[int, Answers]] = []
        self.verdicts = KeptVerdicts((), cluster)
        #: What PreScore left: values in the cycle state, and the plugins that have nothing to score.
        self.score_values: dict[str, object] = {}
        self.skips_score: frozenset[str] = frozenset()
        self._scores: KeptScores | None = None

    def live_beside(self, by_usage: Mapping[str, Answers]) -> LiveCalls:
        """The plugins that are asked each time if the answers of these are kept as well."""
        names = tuple(by_usage)
        live = self._live.get(names)
        if live is None:
            live = self._live[names] = LiveCalls(
                [each for each in self.other_filters if each[1].name not in by_usage],
                [call for call in self.other_pre_scores if call.name not in by_usage],
                [call for call in self.other_scores if call.name not in by_usage],
            )
        return live

    def catch_up(self, size: int) -> None:
        """Have the kept answers notice what changed."""
        if self.cluster is None:
            return
        position = self.cluster.changes.nodes.position
        if position != self._node_position or size != self._size:
            # Every one of them, whatever the others say.
            if sum(1 for answers in self.kept.values() if answers.catch_up(size)):
                self.pre_filtered = self._scores = None
                self.epoch += 1
            self._node_position, self._size = position, size

    def settle(self) -> PreFiltered:
        """Every plugin has answered PreFilter: from now on their results are taken together."""
        calls = self.framework.points[Point.PRE_FILTER]
        known = self.pre_filtered = PreFiltered(calls, self.kept)
        self.filters = [
            (place, self.kept[call.name])
            for place, call in enumerate(self.framework.points[Point.FILTER])
            if call.name in self.kept and call.name not in known.skipped
        ]
        self.verdicts = KeptVerdicts(self.filters, self.cluster)
        self._scores = None
        return known

    def verdicts_for(self, question: Question) -> KeptVerdicts:
        """The verdicts, brought up to date. Raises PluginFailure."""
        changed = self.verdicts.bring_up_to_date(question)
        if changed is None:
            self._scores = None
        elif self._scores is not None:
            self._scores.note(changed)
        return self.verdicts

    def scores(self, question: Question) -> KeptScores:
        """The scores of the rows that pass here, once the verdicts are up to date. Raises PluginFailure."""
        if self._scores is not None:
            question.state.take(self.score_values)
            if self._scores.bring_up_to_date(question):
                return self._scores
        rows = scoring.compact_rows(self.verdicts.rows, question.snapshot)
        self.score_values = {}
        skipped = []
        for call in self.framework.points[Point.PRE_SCORE]:
            answers = self.kept.get(call.name)
            if answers is not None:
                if answers.pre_score(self.framework, question, rows):
                    skipped.append(call.name)
                self.score_values |= answers.values
        self.skips_score = frozenset(skipped)
        weights = self.framework.weights
        plugins = [
            (self.kept[call.name], weights[call.name])
            for call in self.framework.points[Point.SCORE]
            if call.name in self.kept and call.name not in self.skips_score
        ]
        self._scores = KeptScores(plugins, self.verdicts, self.tie_keys, question)
        return self._scores

    def total_over(self, question: Question, feasible: NDArray[np.intp]) -> Ints:
        """int64[feasible]: the totals of these plugins, normalised over these rows. Raises PluginFailure."""
        return self.scores(question).total_over(question, feasible)

    def renewed(self) -> SharedEvaluation:
        """The same, without anything kept."""
        assert self.cluster is not None
        kept = {name: a.renewed(self.cluster) for name, a in self.kept.items()}
        return SharedEvaluation(self.framework, self.tie_keys, self.cluster, kept)

    def validate(self, new: SharedEvaluation, question: Question, again: Question) -> None:
        """Raise InvariantError unless what is kept is what `new` finds out. Raises PluginFailure."""
        if self.pre_filtered is None:
            return
        self.verdicts_for(question).validate(new.verdicts_for(again))
        if self._scores is not None and self.verdicts.ok_count:
            self.scores(question).validate(new.scores(again))


class PreFiltered:
    """What PreFilter plugins whose answers are kept left, taken together."""

    __slots__ = ("skipped", "unsettled", "values")

    def __init__(
        self,
        calls: Sequence[Calls],
        kept: Mapping[str, Answers],
        shared: PreFiltered | None = None,
    ) -> None:
        """All of the plugins, or those that `shared` has not settled."""
        self.values: dict[str, object] = dict(shared.values) if shared is not None else {}
        #: The plugins that are asked each time, or had more to say than that all is well.
        self.unsettled: list[Calls] = []
        skipped = []
        for call in calls:
            answers = kept.get(call.name)
            result = None
            if answers is not None:
                self.values |= answers.values
                result = answers.pre_filter
            if isinstance(result, Status) and result.code == Code.SKIP:
                skipped.append(call.name)
            elif not (isinstance(result, Status) and result.ok):
                self.unsettled.append(call)
        self.skipped: frozenset[str] = frozenset(skipped)
        if shared is not None:
            self.skipped |= shared.skipped
