"""The waiting pods as data, so that another queue can go on exactly where this one stands.

    queue ──▶ save ──▶ SavedQueue ──▶ load ──▶ another queue that pops the same pods in the same order

The numbers of classes differ from engine to engine, so a group is named by its representative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from mooring.objects.pod import Pod
from mooring.queue.hints import Strategy
from mooring.queue.pod_queues import PodQueues
from mooring.queue.pre_enqueue import PreEnqueuePlugins
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.representatives import Representatives, Woken
from mooring.queue.unschedulable_pods import Rejection

Part = Literal["active", "backoff", "unschedulable"]


class SavedPod(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A `QueuedPodInfo`, without what its pod says itself."""

    #: `namespace/name`.
    key: str
    part: Part
    timestamp: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration: float | None = None
    initial_attempt_timestamp: float | None = None
    unschedulable_plugins: list[str] = []
    pending_plugins: list[str] = []
    gating_plugin: str = ""
    was_flushed: bool = False
    flush_timestamp: float | None = None
    waits_out: bool = False
    has_class: bool = False
    #: The number of an unschedulable pod in order of arrival.
    number: int = 0


class SavedGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A group that is woken (`representatives`)."""

    #: The representative, as `namespace/name`.
    key: str
    rejectors: list[str]
    strategy: Strategy
    label: str
    before: int


class SavedQueue(msgspec.Struct, frozen=True, rename="camel"):
    pods: list[SavedPod] = []
    #: The number of the next unschedulable pod.
    next_number: int = 0
    woken: list[SavedGroup] = []


def save(queues: PodQueues, representatives: Representatives) -> SavedQueue:
    """Nothing may be in flight, and no representative be tried."""
    pods = [_saved(queued, "active") for queued in queues.active]
    pods += [_saved(queued, "backoff") for queued in queues.backoff]
    pods += [
        _saved(queued, "unschedulable", number)
        for queued, number in queues.unschedulable.numbered()
    ]
    return SavedQueue(
        pods,
        queues.unschedulable.next_number,
        [
            SavedGroup(
                woken.representative.key,
                sorted(group.rejectors),
                woken.strategy,
                woken.label,
                woken.before,
            )
            for group, woken in representatives.woken()
        ],
    )


def load(
    saved: SavedQueue,
    queues: PodQueues,
    representatives: Representatives,
    pre_enqueue: PreEnqueuePlugins,
    *,
    find: Callable[[str], Pod | None],
    class_of: Callable[[Pod], int | None],
) -> None:
    """Fill a queue that is empty; `find` returns a pod by `namespace/name`."""
    for each in saved.pods:
        pod = find(each.key)
        if pod is None:
            raise KeyError(each.key)
        queued = _loaded(each, pod, class_of(pod) if each.has_class else None)
        queued.gating_plugin_events = pre_enqueue.events_of_gate(queued)
        match each.part:
            case "active":
                queues.active.put(queued)
            case "backoff":
                queues.backoff.add(queued)
            case "unschedulable":
                queues.unschedulable.put_numbered(queued, each.number)
    queues.unschedulable.next_number = saved.next_number
    for group in saved.woken:
        first = queues.get(group.key)
        assert first is not None
        rejection = Rejection(
            first.pod.scheduler_name, frozenset(group.rejectors), False, first.pod_class
        )
        woken = Woken(first, group.strategy, group.label, group.before)
        representatives.load(rejection, woken)


def _saved(queued: QueuedPodInfo, part: Part, number: int = 0) -> SavedPod:
    return SavedPod(
        queued.key,
        part,
        queued.timestamp,
        queued.attempts,
        queued.unschedulable_count,
        queued.consecutive_errors_count,
        queued.backoff_expiration,
        queued.initial_attempt_timestamp,
        sorted(queued.unschedulable_plugins),
        sorted(queued.pending_plugins),
        queued.gating_plugin,
        queued.was_flushed,
        queued.flush_timestamp,
        queued.waits_out,
        queued.pod_class is not None,
        number,
    )


def _loaded(saved: SavedPod, pod: Pod, pod_class: int | None) -> QueuedPodInfo:
    return QueuedPodInfo(
        pod,
        saved.timestamp,
        saved.attempts,
        saved.unschedulable_count,
        saved.consecutive_errors_count,
        saved.backoff_expiration,
        saved.initial_attempt_timestamp,
        set(saved.unschedulable_plugins),
        set(saved.pending_plugins),
        saved.gating_plugin,
        was_flushed=saved.was_flushed,
        flush_timestamp=saved.flush_timestamp,
        waits_out=saved.waits_out,
        pod_class=pod_class,
    )
