"""Golden cases of the area `pod-groups`: gangs, groups within one topology domain, preemption for groups.

The format is in `tests/golden/README.md`. A case is a list of steps: objects come and go, and in rounds pods
are tried until none is ready. A case is replayed through the whole scheduler; only time and the API server
are simulated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mooring.config import FeatureGates, default_config, load_config
from mooring.conformance.replay_loop import ReplayLoop
from mooring.conformance.requeue_api import ReplayApi, decode
from mooring.errors import InvariantError
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.objects.well_known import POD_SCHEDULED
from mooring.plugins.registry import default_registry
from mooring.runtime.metrics import Metrics
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine

#: Each round of a settling cluster changes something; no case needs nearly as many.
_MOST_ROUNDS = 200

#: Pods come in the middle of a second, so that no backoff ends in the round in which it begins.
_OFFSET_S = 0.5

#: That evictions are under way is not counted as a gate.
_PREEMPTION = "DefaultPreemption"

#: What the outcome of a pod says, if not all of it can be told.
_PLACE = ("node", "reason", "gated")


@dataclass(frozen=True, slots=True)
class PodGroupsCase:
    """One line of the file."""

    name: str
    shape: str
    #: The feature gates that are switched on.
    gates: list[str]
    config: dict[str, Any] | None
    objects: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    #: One state for each step that is `round` or `settle`.
    expect: list[dict[str, Any]]


def pod_groups_case(line: Mapping[str, Any]) -> PodGroupsCase:
    """Raises KeyError or TypeError if the line is no such case."""
    steps, expect = line["steps"], line["expect"]
    states = sum("round" in step or "settle" in step for step in steps)
    if states != len(expect):
        raise TypeError(f"{states} steps have a state, but {len(expect)} states are expected")
    return PodGroupsCase(
        name=line["name"],
        shape=line.get("shape", ""),
        gates=line["gates"],
        config=line.get("config"),
        objects=line["objects"],
        steps=steps,
        expect=[dict(each) for each in expect],
    )


def replay_pod_groups(case: PodGroupsCase, *, keep_answers: bool = True) -> list[dict[str, Any]]:
    """The states that mooring gets to, complete."""
    replay = _Replay(case, keep_answers=keep_answers)
    try:
        replay.load(case.objects)
        return [state for step in case.steps if (state := replay.step(step)) is not None]
    finally:
        replay.close()


class _Replay:
    def __init__(self, case: PodGroupsCase, *, keep_answers: bool) -> None:
        gates = FeatureGates(dict.fromkeys(case.gates, True))
        config = (
            default_config(gates) if case.config is None else load_config(case.config, gates=gates)
        )
        self._loop = ReplayLoop()
        self._api = ReplayApi(lingering=False, bindings_fail={})
        #: The pods that came without a node, `namespace/name`.
        self._came_unplaced: set[str] = set()
        self._scheduler = Engine(
            config,
            Dependencies(
                clock=self._loop.clock,
                writer=self._api,
                spawn=self._loop.spawn,
                registry=default_registry(),
                metrics=Metrics(),
                keep_answers=keep_answers,
                one_for_all=False,
            ),
        )
        self._api.watcher = self._scheduler

    def close(self) -> None:
        self._loop.close(self._scheduler)

    def load(self, objects: list[dict[str, Any]]) -> None:
        """What is there before the first step; pods after whatever they may refer to."""
        self._loop.run_until(_OFFSET_S)
        self._create(sorted(objects, key=lambda raw: raw["kind"] == "Pod"))

    def step(self, step: Mapping[str, Any]) -> dict[str, Any] | None:
        """The state after a step that has one."""
        self._create(step.get("create", []))
        for reference in step.get("delete", []):
            self._api.remove(reference)
        for key in step.get("ungate", []):
            self._api.ungate(key)
        self._loop.settle()
        if "round" in step:
            self._round()
        elif "settle" in step:
            self._settle()
        else:
            return None
        state = self._state()
        self._api.evicted.clear()
        return state

    def _create(self, objects: list[dict[str, Any]]) -> None:
        for obj in decode(objects):
            if isinstance(obj, Pod) and not obj.node_name:
                self._came_unplaced.add(obj.key)
            self._api.create(obj)
            self._loop.settle()

    # Rounds

    def _settle(self) -> None:
        before = None
        for _ in range(_MOST_ROUNDS):
            self._round()
            state = self._state()
            if state == before:
                return
            before = state
        raise InvariantError(f"the case does not settle within {_MOST_ROUNDS} rounds")

    def _round(self) -> None:
        queue = self._scheduler.queue
        waiting, _ = queue.pending_pods()
        queue.activate({pod.key: pod for pod in waiting})
        # Pods in backoff are ready in the next round only.
        while queue.counts().active and (queued := queue.pop()) is not None:
            self._scheduler.try_pod(queued)
            self._loop.settle()
        self._scheduler.validate()

    # What is to be seen

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "pods": {
                pod.key: self._pod(pod)
                for pod in self._api.all(Pod)
                if pod.key in self._came_unplaced
            },
            "groups": {group.key: _condition(group) for group in self._api.all(PodGroup)},
        }
        if self._api.evicted:
            state["evicted"] = sorted(self._api.evicted)
        waiting = sorted(waiting.pod.key for waiting in self._scheduler.waiting_pods)
        if waiting:
            state["waiting"] = waiting
        return state

    def _pod(self, pod: Pod) -> dict[str, Any]:
        seen: dict[str, Any] = {"node": pod.node_name}
        if pod.node_name:
            return seen
        condition = pod.condition(POD_SCHEDULED)
        if condition is not None:
            seen["reason"], seen["message"] = condition.reason, condition.message
        queued = self._scheduler.queue.get(pod.key)
        gate = queued.gating_plugin if queued is not None else ""
        seen["gated"] = "" if gate == _PREEMPTION else gate
        seen["nominated"] = pod.nominated_node_name
        return {field: value for field, value in seen.items() if value or field == "node"}


def _condition(group: PodGroup) -> dict[str, Any] | None:
    known = group.condition(POD_GROUP_SCHEDULED)
    if known is None:
        return None
    return {
        "status": known.status,
        "reason": known.reason,
        "message": known.message,
        "observedGeneration": known.observed_generation,
    }


# Comparing


def as_told(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """A state that was seen, reduced to what the expected one tells."""
    told: dict[str, Any] = {
        "pods": _pods_as_told(expected["pods"], seen["pods"]),
        "groups": _groups_as_told(expected["groups"], seen["groups"]),
    }
    for field in ("evicted", "waiting"):
        if field in seen:
            told[field] = seen[field]
    if "evictedCount" in expected:
        told["evictedCount"] = len(told.pop("evicted", ()))
    if "alike" in expected:
        told["alike"] = [_alike_as_told(alike, seen["pods"]) for alike in expected["alike"]]
    return told


def in_order(state: Mapping[str, Any]) -> dict[str, Any]:
    """An expected state with the outcomes of pods that are alike sorted, as in `as_told`."""
    ordered = dict(state)
    if "alike" in state:
        ordered["alike"] = [
            {**alike, "outcomes": sorted(alike["outcomes"], key=_canonical)}
            for alike in state["alike"]
        ]
    return ordered


def _pods_as_told(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {key: pod for key, pod in seen.items() if key not in expected}
    for key, wanted in expected.items():
        varies = wanted.get("varies", [])
        if "exists" in varies:
            told[key] = wanted
            continue
        if key not in seen:
            continue
        pod = {field: value for field, value in seen[key].items() if field not in varies}
        if varies:
            pod["varies"] = varies
        if "scheduled" in wanted:
            pod["scheduled"] = bool(seen[key]["node"])
        told[key] = pod
    return told


def _groups_as_told(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    told = dict(seen)
    for key, wanted in expected.items():
        varies = wanted.get("varies", []) if wanted is not None else []
        if varies and told.get(key) is not None:
            told[key] = {f: value for f, value in seen[key].items() if f not in varies}
            told[key]["varies"] = varies
    return told


def _alike_as_told(alike: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    outcomes = [_outcome(seen.get(key), alike["tells"]) for key in alike["pods"]]
    return {**alike, "outcomes": sorted(outcomes, key=_canonical)}


def _outcome(pod: Mapping[str, Any] | None, tells: str) -> dict[str, Any] | None:
    if pod is None:
        return None
    if tells == "count":
        return {"scheduled": bool(pod["node"])}
    fields = _PLACE if tells == "place" else tuple(pod)
    return {field: pod[field] for field in fields if field in pod}


def _canonical(outcome: object) -> str:
    return json.dumps(outcome, sort_keys=True)
