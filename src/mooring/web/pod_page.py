"""The page of one pod: its story, its extension points, and the matrix as columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.explain.explanation import Explanation
from mooring.explain.matrix import Matrix, status_data
from mooring.explain.story import Step
from mooring.explain.what_if import DecisionView
from mooring.web.run import Run

#: The extension points in the order of the Scheduling Framework.
_PICTURE = (
    (Point.PRE_ENQUEUE, "PreEnqueue"),
    (Point.QUEUE_SORT, "QueueSort"),
    (Point.PRE_FILTER, "PreFilter"),
    (Point.FILTER, "Filter"),
    (Point.POST_FILTER, "PostFilter"),
    (Point.PRE_SCORE, "PreScore"),
    (Point.SCORE, "Score"),
    (Point.RESERVE, "Reserve"),
    (Point.PERMIT, "Permit"),
    (Point.PRE_BIND, "PreBind"),
    (Point.BIND, "Bind"),
    (Point.POST_BIND, "PostBind"),
)
#: Points without a step in the story → the point that follows or precedes them.
_PASSED_BEFORE = {"QueueSort": "PreFilter", "PreScore": "Score"}
_PASSED_AFTER = {"PostBind": "Bind"}

_MOST_NAMES = 100


def pod_data(run: Run, key: str, seen: DecisionView | None) -> dict[str, Any]:
    """`seen` is the decision that placed the pod, if there is one. Raises CannotAnswer."""
    explanation = run.explain(key, seen)
    index = run.places.pod_index[key]
    pod = run.pods[index]
    return {
        "pod": key,
        "index": index,
        "state": explanation.state,
        "fits": explanation.fits,
        "node": explanation.node or None,
        "asOf": explanation.as_of,
        "message": explanation.message,
        "story": [asdict(step) for step in explanation.story],
        "points": _points(run, pod.scheduler_name, explanation),
        "timeline": [fact.to_data() for fact in run.places.timeline if fact.pod == key],
        "attempts": run.simulation.summary.of(pod.uid).attempts,
        "margin": explanation.margin,
        "tied": list(explanation.tied[:_MOST_NAMES]),
        "tiedCount": len(explanation.tied),
        "refusals": _refusals(explanation.matrix),
        "matrix": _matrix(run, explanation.matrix),
        "counterfactuals": not explanation.fits and explanation.matrix is not None,
    }


def _points(run: Run, profile: str, explanation: Explanation) -> list[dict[str, Any]]:
    framework = run.simulation.scheduler.frameworks.get(profile)
    steps = {step.point: step for step in explanation.story}
    for point, through in (_PASSED_BEFORE | _PASSED_AFTER).items():
        if through in steps and (point in _PASSED_BEFORE or steps[through].outcome == "passed"):
            steps[point] = Step(point, "passed", "")
    return [
        {
            "point": title,
            "plugins": framework.names_at(point) if framework is not None else [],
            "outcome": steps[title].outcome if title in steps else None,
            "text": steps[title].text if title in steps else "",
        }
        for point, title in _PICTURE
    ]


def _refusals(matrix: Matrix | None) -> list[dict[str, Any]]:
    if matrix is None:
        return []
    return [
        {
            "plugin": each.plugin,
            "code": each.code,
            "reasons": list(each.reasons),
            "count": len(each.nodes),
            "nodes": list(each.nodes[:_MOST_NAMES]),
        }
        for each in matrix.refusals()
    ]


def _matrix(run: Run, matrix: Matrix | None) -> dict[str, Any] | None:
    if matrix is None:
        return None
    index = run.places.node_index
    return {
        "nodes": [index[name] for name in matrix.nodes],
        "statuses": [status_data(status) for status in matrix.statuses],
        "verdicts": matrix.verdicts.tolist(),
        "filters": [
            {
                "plugin": column.plugin,
                "statuses": [status_data(status) for status in column.statuses],
                "codes": column.codes.tolist(),
            }
            for column in matrix.filters
        ],
        "scored": matrix.scored.tolist(),
        "scores": [
            {
                "plugin": column.plugin,
                "weight": column.weight,
                "raw": column.raw.tolist(),
                "normalized": column.normalized.tolist(),
            }
            for column in matrix.scores
        ],
        "totals": matrix.totals.tolist(),
    }
