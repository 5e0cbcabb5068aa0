"""Runs of a scheduler with pod groups, round by round, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.config import FeatureGates, default_config, load_config
from mooring.conformance.pod_groups import GroupRun
from mooring.framework.interface import PluginFactory
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from tests.engine import registry_with
from tests.makers import make_pod

GANGS = ("GenericWorkload", "GangScheduling")
BY_RACK = (*GANGS, "TopologyAwareWorkloadScheduling")
PREEMPTING = (*GANGS, "WorkloadAwarePreemption")

#: Permit's answer to a member whose gang is not complete.
WAITS = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled,"
    " one or more plugins asked to wait and no plugin rejected pod"
)


def gates(names: Iterable[str]) -> FeatureGates:
    return FeatureGates(dict.fromkeys(names, True))


def start(
    *objects: KubeObject,
    on: Iterable[str] = GANGS,
    profiles: list[dict[str, Any]] | None = None,
    plugins: Mapping[str, PluginFactory] | None = None,
) -> GroupRun:
    """A run with these gates, in which these objects were created in this order."""
    if profiles is None:
        config = default_config(gates(on))
    else:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": profiles,
        }
        config = load_config(document, gates=gates(on))
    run = GroupRun(config, registry=registry_with(plugins))
    run.create(*objects)
    return run


def members(count: int, *, group: str = "gang", first: int = 1, **spec: Any) -> list[Pod]:
    """Pods of a group, called after it: `gang-1`, `gang-2`, and so on."""
    return [make_pod(f"{group}-{n}", group=group, **spec) for n in range(first, first + count)]


def gated(run: GroupRun, name: str) -> str:
    """What PreEnqueue says of a waiting pod; "" if it lets the pod pass."""
    queued = run.scheduler.queue.get(f"default/{name}")
    assert queued is not None
    if not queued.gated:
        return ""
    status = run.scheduler.queue.gate(queued.pod)
    assert status is not None
    return status.message


def messages(state: Mapping[str, Any]) -> dict[str, str]:
    return {key.partition("/")[2]: pod.get("message", "") for key, pod in state["pods"].items()}


def nodes(state: Mapping[str, Any]) -> dict[str, str]:
    return {key.partition("/")[2]: pod["node"] for key, pod in state["pods"].items()}


def nominated(state: Mapping[str, Any]) -> dict[str, str]:
    named = {key.partition("/")[2]: pod.get("nominated", "") for key, pod in state["pods"].items()}
    return {name: node for name, node in named.items() if node}


def condition(state: Mapping[str, Any], group: str = "gang") -> tuple[str, str, str] | None:
    """(status, reason, message) of the group's condition."""
    told = state["groups"][f"default/{group}"]
    return None if told is None else (told["status"], told["reason"], told["message"])


SCHEDULED = ("True", "Scheduled", "")
UNSCHEDULABLE = ("False", "Unschedulable", "pod group is unschedulable")
