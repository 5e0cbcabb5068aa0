"""The page of one pod: its story, its extension points, and the matrix as columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.explain.attempts import Attempt, eviction_sentence
from mooring.explain.explanation import Explanation
from mooring.explain.matrix import Matrix, status_data
from mooring.explain.story import Step
from mooring.explain.what_if import DecisionView
from mooring.objects.pod import Pod
from mooring.scheduler.journal import TIMELINE, Fact, Preempted
from mooring.web.devices import pod_devices
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
_PASSED_BEFORE = {"QueueSort": "PreFilter", "PreScore": "Score", "Reserve": "Permit"}
_PASSED_AFTER = {"PostBind": "Bind"}
#: Steps of the story that are no extension point; they stand under the title.
_SENTENCES = ("queue", "choice", "today", "end")

_MOST_NAMES = 100


def pod_data(
    run: Run, key: str, seen: DecisionView | None, number: int | None = None
) -> dict[str, Any]:
    """`seen` is the decision that `run.past_decision(key, number)` names, if any. Raises CannotAnswer."""
    explanation = run.explain(key, seen, number)
    index = run.places.pod_index[key]
    pod = run.pods[index]
    attempts = run.attempts(key)
    past = run.past_decision(key, number)
    shown = past.decided.number if past is not None else None
    return {
        "pod": key,
        "index": index,
        "state": explanation.state,
        "fits": explanation.fits,
        "node": explanation.node or None,
        "chosen": _chosen(explanation, pod),
        "cameWithNode": _is_hypothetical(explanation),
        "asOf": explanation.as_of,
        "message": explanation.message,
        "sentences": _sentences(explanation, attempts),
        "story": [asdict(step) for step in explanation.story],
        "points": _points(run, pod, explanation, attempts, shown),
        "timeline": [fact.to_data() for fact in _timeline(run, pod)],
        "attempt": shown,
        "attempts": [each.to_data() for each in attempts],
        "preemption": _preemption(run, pod, attempts),
        "margin": explanation.margin,
        "tied": list(explanation.tied[:_MOST_NAMES]),
        "tiedCount": len(explanation.tied),
        "refusals": _refusals(explanation.matrix),
        "devices": pod_devices(run, key, explanation),
        "matrix": _matrix(run, explanation.matrix),
        "counterfactuals": explanation.state in ("unschedulable", "gated")
        and explanation.matrix is not None,
    }


def _timeline(run: Run, pod: Pod) -> list[Fact]:
    facts = run.facts_of(pod.uid)
    return [fact for fact in facts if fact.uid == pod.uid and fact.what in TIMELINE]


def _chosen(explanation: Explanation, pod: Pod) -> str | None:
    """The node that wins the evaluation, which need not be the node that the pod is on."""
    matrix = explanation.matrix
    if matrix is None or not (_is_hypothetical(explanation) or _is_gated(explanation)):
        return explanation.node or None
    if len(matrix.scored):
        return matrix.nodes[int(matrix.scored[0])]
    return matrix.feasible[0] if matrix.feasible else None


def _is_hypothetical(explanation: Explanation) -> bool:
    """Whether the pod came with its node: no decision was made, and the page shows what one would be."""
    first = explanation.story[0]
    return first.point == "queue" and first.outcome == "reached"


def _is_gated(explanation: Explanation) -> bool:
    """Whether a gate keeps the pod out of the queue: nothing was chosen for it."""
    return any(
        (step.point, step.outcome) == ("PreEnqueue", "rejected") for step in explanation.story
    )


def _sentences(explanation: Explanation, attempts: list[Attempt]) -> list[str]:
    """What the page says under the title."""
    chosen = "would be chosen" if _is_gated(explanation) else "chosen"
    told = [
        f"{chosen}: {step.text}"
        if (step.point, step.outcome) == ("choice", "passed")
        else step.text
        for step in explanation.story
        if step.point in _SENTENCES
    ]
    if _is_hypothetical(explanation):
        # What would be chosen is told by the last sentence.
        told = [step.text for step in explanation.story if step.point in ("queue", "today", "end")]
    told += [
        step.text
        for step in explanation.story
        if (step.point, step.outcome) == ("Permit", "waiting")
        or (step.point == "Bind" and step.outcome == "passed")
    ]
    told += [eviction_sentence(each.evicted) for each in attempts if each.evicted]
    return [text for text in told if text != explanation.message]


def _preemption(run: Run, pod: Pod, attempts: list[Attempt]) -> dict[str, Any]:
    """The pods that were evicted for this pod, and the pod that it was evicted for."""
    of_pod = [fact for fact in run.facts_of(pod.uid) if isinstance(fact, Preempted)]
    suffered = next((fact for fact in of_pod if fact.uid == pod.uid), None)
    evicted = [fact for each in attempts for fact in each.evicted]
    return {
        "victims": [
            {
                "pod": each.pod,
                "priority": each.victim.priority,
                "node": each.node,
                "atSeconds": each.at_s,
            }
            for each in evicted
        ],
        "why": next((each.why for each in evicted if each.why), ""),
        "by": None
        if suffered is None
        else {
            "pod": suffered.preemptor.key if suffered.preemptor is not None else None,
            "priority": suffered.preemptor.priority if suffered.preemptor is not None else None,
            "node": suffered.node,
            "atSeconds": suffered.at_s,
            "why": suffered.why,
        },
    }


def _points(
    run: Run, pod: Pod, explanation: Explanation, attempts: list[Attempt], shown: int | None
) -> list[dict[str, Any]]:
    framework = run.simulation.scheduler.frameworks.get(pod.scheduler_name)
    plugins = {
        title: framework.names_at(point) if framework is not None else []
        for point, title in _PICTURE
    }
    steps = {step.point: step for step in explanation.story}
    for point, through in (_PASSED_BEFORE | _PASSED_AFTER).items():
        if through in steps and (point in _PASSED_BEFORE or steps[through].outcome == "passed"):
            steps.setdefault(point, Step(point, "passed", ""))
    _add_preemption(steps, attempts, shown)
    _add_skipped(steps, explanation, plugins)
    gated = _is_gated(explanation)
    came_with_node = _is_hypothetical(explanation)
    return [
        {
            "point": title,
            "plugins": plugins[title],
            "outcome": steps[title].outcome if title in steps else None,
            "text": steps[title].text if title in steps else "",
            "hypothetical": title in steps
            and (came_with_node or (gated and title != "PreEnqueue")),
        }
        for _, title in _PICTURE
    ]


def _add_preemption(steps: dict[str, Step], attempts: list[Attempt], shown: int | None) -> None:
    """A pod that got its node by preemption passed PostFilter in an earlier attempt."""
    if "PostFilter" in steps:
        return
    for each in attempts:
        if each.evicted and shown is not None and each.decided.number < shown:
            text = f"attempt {each.decided.number} {eviction_sentence(each.evicted)}"
            steps["PostFilter"] = Step("PostFilter", "helped", text)


def _add_skipped(
    steps: dict[str, Step], explanation: Explanation, plugins: dict[str, list[str]]
) -> None:
    """Points that the pod passed by, and why; what it did not reach stays out."""
    chosen = "choice" in steps and steps["choice"].outcome == "passed"
    if chosen:
        steps.setdefault(
            "PostFilter", Step("PostFilter", "skipped", "a node fits, so no pod has to make room")
        )
        if explanation.matrix is not None and not explanation.matrix.scores:
            why = "only one node fits, so there is nothing to score"
            for point in ("PreScore", "Score"):
                steps[point] = Step(point, "skipped", why)
    order = [title for _, title in _PICTURE]
    reached = max((order.index(point) for point in steps if point in order), default=-1)
    for title in order[: reached + 1]:
        if title not in steps and not plugins[title]:
            steps[title] = Step(title, "skipped", "no plugin of the profile has this point")
    if "PostBind" in steps and not plugins["PostBind"]:
        steps["PostBind"] = Step("PostBind", "skipped", "no plugin of the profile has this point")


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
        "withNominated": list(matrix.with_nominated),
    }
