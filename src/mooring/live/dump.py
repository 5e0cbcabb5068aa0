"""The state of the scheduler, written to the log on request (SIGUSR2)."""

from __future__ import annotations

import logging
from typing import Any

from mooring.errors import InvariantError
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.journal import RecentFacts

_LOG = logging.getLogger(__name__)


def dump(scheduler: Engine, journal: RecentFacts) -> dict[str, Any]:
    """The nodes with their pods, the queue, and whether all of it agrees with the watches."""
    queue = scheduler.queue
    _, summary = queue.pending_pods()
    return {
        "problems": problems(scheduler),
        "nodes": _nodes(scheduler),
        "queueSummary": summary,
        "queue": {
            "active": [_queued(pod, journal) for pod in queue.active_pods()],
            "backoff": [_queued(pod, journal) for pod in queue.backoff_pods()],
            "unschedulable": [_queued(pod, journal) for pod in queue.unschedulable_pods()],
            "inFlight": [pod.key for pod in queue.in_flight_pods()],
        },
        "waitingForPermit": [waiting.pod.key for waiting in scheduler.waiting_pods],
    }


def log_dump(scheduler: Engine, journal: RecentFacts) -> None:
    """A line for each node and each waiting pod, so that no line grows with the cluster."""
    said = dump(scheduler, journal)
    for problem in said["problems"]:
        _LOG.warning("cache mismatch: %s", problem)
    _LOG.info("dump of cached nodes: %d", len(said["nodes"]))
    for node in said["nodes"]:
        _LOG.info("cached node %s", node["name"], extra={"node": node})
    _LOG.info("dump of scheduling queue: %s", said["queueSummary"])
    for place, pods in said["queue"].items():
        for pod in pods:
            _LOG.info("queued pod in %s", place, extra={"queued": pod})


def problems(scheduler: Engine) -> list[str]:
    """Where the cache differs from what the watches show."""
    found: list[str] = []
    for validate in (scheduler.cluster.validate, scheduler.queue.validate):
        try:
            validate()
        except InvariantError as error:
            found.append(str(error))
    cluster = scheduler.cluster
    shown = {pod.uid: pod for pod in scheduler.pods() if pod.node_name}
    for uid, pod in shown.items():
        known = cluster.pods.get(uid)
        if known is None:
            found.append(f"pod {pod.key} is on {pod.node_name} but not in the cache")
        elif known.node_name != pod.node_name:
            found.append(f"pod {pod.key} is on {pod.node_name} but cached on {known.node_name}")
    for uid, pod in cluster.pods.items():
        if uid not in shown and not cluster.is_assumed(pod):
            found.append(f"pod {pod.key} is cached on {pod.node_name} but does not exist there")
    return found


def _nodes(scheduler: Engine) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "known": info.node is not None,
            "requested": dict(info.requested),
            "pods": sorted(
                f"{pod.key} (assumed)" if scheduler.cluster.is_assumed(pod) else pod.key
                for pod in info.pods.values()
            ),
            "nominated": [pod.key for pod in scheduler.nominated_pods(name)],
        }
        for name, info in sorted(scheduler.cluster.infos.items())
    ]


def _queued(queued: QueuedPodInfo, journal: RecentFacts) -> dict[str, Any]:
    return {
        "pod": queued.key,
        "attempts": queued.attempts,
        "rejectedBy": sorted(queued.rejectors),
        "gatedBy": queued.gating_plugin,
        "since": queued.timestamp,
        "story": [fact.to_data() for fact in journal.story(queued.key)],
    }
