"""Golden cases of the area `pod-groups`: gangs, groups within one topology domain, preemption for groups.

The format is in `tests/golden/README.md`. A case is a list of steps: objects come and go, and in rounds pods
are tried until none is ready. A case is replayed through the whole scheduler; only time and the API server
are simulated.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mooring.config import (
    FeatureGates,
    KubeSchedulerConfiguration,
    default_config,
    load_config,
)
from mooring.conformance.replay_loop import ReplayLoop
from mooring.conformance.requeue_api import ReplayApi, decode
from mooring.errors import InvariantError
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.objects.well_known import POD_SCHEDULED
from mooring.plugins.registry import default_registry
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.writes import carry_out

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
    gates = FeatureGates(dict.fromkeys(case.gates, True))
    config = default_config(gates) if case.config is None else load_config(case.config, gates=gates)
    run = GroupRun(config, keep_answers=keep_answers)
    try:
        # Pods after whatever they may refer to.
        run.create(*decode(sorted(case.objects, key=lambda raw: raw["kind"] == "Pod")))
        return [state for step in case.steps if (state := _step(run, step)) is not None]
    finally:
        run.close()


def _step(run: GroupRun, step: Mapping[str, Any]) -> dict[str, Any] | None:
    """The state after a step that has one."""
    run.create(*decode(step.get("create", [])))
    for reference in step.get("delete", []):
        run.delete(reference)
    for key in step.get("ungate", []):
        run.ungate(key)
    if "round" in step:
        return run.round()
    return run.settle() if "settle" in step else None


class GroupRun:
    """A scheduler and the API server of a case, driven in rounds."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        *,
        keep_answers: bool = True,
        registry: Registry | None = None,
    ) -> None:
        self._loop = ReplayLoop()
        self.api = ReplayApi(lingering=False, bindings_fail={})
        #: The pods that came without a node, `namespace/name`.
        self._came_unplaced: set[str] = set()
        self.scheduler = Engine(
            config,
            Dependencies(
                clock=self._loop.clock,
                writer=self.api,
                spawn=self._loop.spawn,
                registry=registry or default_registry(),
                metrics=Metrics(),
                carry_out=lambda writes: carry_out(writes, self.api, self._loop.spawn),
                keep_answers=keep_answers,
                one_for_all=False,
            ),
        )
        self.api.watcher = self.scheduler
        self._loop.run_until(_OFFSET_S)
        #: Ends the run, at the latest when nobody holds it any more.
        self.close = weakref.finalize(self, self._loop.close, self.scheduler)

    # What happens

    def create(self, *objects: KubeObject) -> None:
        for obj in objects:
            if isinstance(obj, Pod) and not obj.node_name:
                self._came_unplaced.add(obj.key)
            self.api.create(obj)
            self._loop.settle()

    def delete(self, reference: str) -> None:
        self.api.remove(reference)
        self._loop.settle()

    def ungate(self, key: str) -> None:
        self.api.ungate(key)
        self._loop.settle()

    # Rounds

    def round(self) -> dict[str, Any]:
        """Make every pod ready, and try until none is; the state after it."""
        self._round()
        return self._told()

    def settle(self) -> dict[str, Any]:
        """Rounds until one changes nothing."""
        before = None
        for _ in range(_MOST_ROUNDS):
            self._round()
            state = self.state()
            if state == before:
                return self._told()
            before = state
        raise InvariantError(f"the run does not settle within {_MOST_ROUNDS} rounds")

    def _round(self) -> None:
        queue = self.scheduler.queue
        waiting, _ = queue.pending_pods()
        queue.activate({pod.key: pod for pod in waiting})
        # Pods in backoff are ready in the next round only.
        while queue.counts().active and (queued := queue.pop()) is not None:
            self.scheduler.try_pod(queued)
            self._loop.settle()
        self.scheduler.validate()

    def _told(self) -> dict[str, Any]:
        state = self.state()
        self.api.evicted.clear()
        return state

    # What is to be seen

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "pods": {
                pod.key: self._pod(pod)
                for pod in self.api.all(Pod)
                if pod.key in self._came_unplaced
            },
            "groups": {group.key: _condition(group) for group in self.api.all(PodGroup)},
        }
        if self.api.evicted:
            state["evicted"] = sorted(self.api.evicted)
        waiting = sorted(waiting.pod.key for waiting in self.scheduler.waiting_pods)
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
        queued = self.scheduler.queue.get(pod.key)
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
