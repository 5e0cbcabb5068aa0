"""PrioritySort: the pod with the higher priority goes first; among equals, the older entry."""

from __future__ import annotations

from mooring.plugin import QueuedPod


class PrioritySort:
    name = "PrioritySort"

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Whether `a` goes before `b`."""
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        return a.timestamp < b.timestamp

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """The same order as a value, which a heap compares without calling the plugin."""
        return -queued.pod.priority, queued.timestamp
