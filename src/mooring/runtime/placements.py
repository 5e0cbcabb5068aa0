"""PlacementGenerate and PlacementScore: where a pod group may go, and where it goes best."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import MAX_SCORE, MIN_SCORE
from mooring.framework.placements import Placement, PodGroupAssignments, PodGroupInfo
from mooring.framework.status import Code, Status, unschedulable
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import Calls, PluginFailure, unexpected

#: The reference's text.
NO_PLACEMENTS = unschedulable("no feasible placements found")

_GENERATING = 'running PlacementGenerate plugin "{name}"'
_SCORING = 'running PlacementScore plugins: plugin "{name}" failed with'
_NORMALIZING = (
    'running NormalizePlacementScore on PlacementScore plugins: plugin "{name}" failed with'
)
_WEIGHING = "applying score defaultWeights on PlacementScore plugins"

#: A group's placement is not an attempt at a pod: nothing of it is sampled.
_STATE = CycleState()


def generate_placements(
    framework: Framework, group: PodGroupInfo, snapshot: Snapshot
) -> Sequence[Placement] | Status:
    """The placements to try; without a plugin, all nodes. What a plugin raises becomes an error."""
    calls = framework.points[Point.PLACEMENT_GENERATE]
    if not calls:
        return (Placement(""),)
    (call,) = calls
    assert call.generate_placements is not None
    try:
        with (
            framework.timed("PlacementGenerate") as told,
            call.guard("PlacementGenerate", _GENERATING, _STATE),
        ):
            placements = call.generate_placements(group, snapshot)
            told.code = placements.code if isinstance(placements, Status) else Code.SUCCESS
    except PluginFailure as error:
        return error.as_status()
    if isinstance(placements, Status):
        return placements.by(call.name)
    return placements or NO_PLACEMENTS.by(call.name)


def score_placements(
    framework: Framework, group: PodGroupInfo, candidates: Sequence[PodGroupAssignments]
) -> list[int] | Status:
    """The weighted sum of all plugins' scores for each candidate."""
    totals = [0] * len(candidates)
    with framework.timed("PlacementScore") as told:
        for call in framework.points[Point.PLACEMENT_SCORE]:
            try:
                scores = _scores(call, group, candidates)
            except PluginFailure as error:
                return error.as_status()
            weight = framework.placement_weights[call.name]
            totals = [total + score * weight for total, score in zip(totals, scores, strict=True)]
        told.code = Code.SUCCESS
    return totals


def score_bounds(
    framework: Framework, group: PodGroupInfo, placements: Sequence[Placement], snapshot: Snapshot
) -> list[int] | None:
    """The most that each placement can get from `score_placements`; None if a plugin cannot say."""
    totals = [0] * len(placements)
    for call in framework.points[Point.PLACEMENT_SCORE]:
        if call.placement_score_bounds is None:
            return None
        try:
            with call.guard("PlacementScore", _SCORING, _STATE):
                bounds = call.placement_score_bounds(group, placements, snapshot)
        except PluginFailure:
            # Whatever is wrong with it, scores show.
            return None
        if bounds is None:
            return None
        weight = framework.placement_weights[call.name]
        totals = [total + bound * weight for total, bound in zip(totals, bounds, strict=True)]
    return totals


def _scores(
    call: Calls, group: PodGroupInfo, candidates: Sequence[PodGroupAssignments]
) -> Sequence[int]:
    """Raises PluginFailure."""
    assert call.score_placement is not None
    with call.guard("PlacementScore", _SCORING, _STATE):
        scores: Sequence[int] = [
            _number(call.score_placement(group, candidate)) for candidate in candidates
        ]
    if call.normalize_placement_scores is not None:
        with call.guard("PlacementScoreExtensionNormalize", _NORMALIZING, _STATE):
            normalized = call.normalize_placement_scores(group, scores)
            if isinstance(normalized, Status):
                raise unexpected(normalized)
            scores = normalized
    for score in scores:
        if not MIN_SCORE <= score <= MAX_SCORE:
            text = (
                f'plugin "{call.name}" returns an invalid score {score}, it should in the range of'
                f" [{MIN_SCORE}, {MAX_SCORE}] after normalizing"
            )
            raise PluginFailure(call.name, f"{_WEIGHING}: {text}")
    return scores


def _number(score: int | Status) -> int:
    if isinstance(score, Status):
        raise unexpected(score)
    return score
