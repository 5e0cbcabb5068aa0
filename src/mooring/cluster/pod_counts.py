"""How many pods a selector picks on each row, kept while pods come and go.

Pods with the same namespace and labels are alike to every selector, so a selector is matched once against
such a group and not against each pod; a count asked for once is then kept up to date by one addition a
pod. PodTopologySpread and InterPodAffinity share these counts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from mooring.cluster.columns import Ints
from mooring.objects.pod import Pod
from mooring.objects.selectors import Selector

#: How many different questions are remembered; the one asked longest ago is forgotten first.
MOST_COUNTERS = 1024


@dataclass(frozen=True, slots=True)
class PodQuery:
    """Which pods to count."""

    selector: Selector
    #: None stands for every namespace.
    namespaces: frozenset[str] | None
    #: Whether pods that are being deleted count.
    terminating: bool = True

    def picks(self, group: PodGroup) -> bool:
        return (
            (self.terminating or not group.terminating)
            and (self.namespaces is None or group.namespace in self.namespaces)
            and self.selector.matches(group.labels)
        )


class PodGroup:
    """Pods that no selector can tell apart."""

    __slots__ = ("counters", "labels", "namespace", "rows", "terminating")

    def __init__(self, pod: Pod) -> None:
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.terminating = pod.terminating
        #: Row → how many of them are there.
        self.rows: dict[int, int] = {}
        #: The counters that count them.
        self.counters: list[_Counter] = []


class _Counter:
    __slots__ = ("counts", "query")

    def __init__(self, query: PodQuery, capacity: int) -> None:
        self.query = query
        #: int64[row]
        self.counts: Ints = np.zeros(capacity, np.int64)


_GroupKey = tuple[str, frozenset[tuple[str, str]], bool]


class PodCounts:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._groups: dict[_GroupKey, PodGroup] = {}
        self._counters: OrderedDict[PodQuery, _Counter] = OrderedDict()

    def counts(self, query: PodQuery) -> Ints:
        """int64[row]: how many pods the query picks on each row. Not to be written to."""
        counter = self._counters.get(query)
        if counter is None:
            counter = self._count_afresh(query)
        self._counters.move_to_end(query)
        return counter.counts

    def add(self, pod: Pod, row: int) -> None:
        key = _key(pod)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = PodGroup(pod)
            group.counters = [c for c in self._counters.values() if c.query.picks(group)]
        group.rows[row] = group.rows.get(row, 0) + 1
        for counter in group.counters:
            counter.counts[row] += 1

    def remove(self, pod: Pod, row: int) -> None:
        key = _key(pod)
        group = self._groups[key]
        left = group.rows[row] - 1
        if left:
            group.rows[row] = left
        else:
            del group.rows[row]
            if not group.rows:
                del self._groups[key]
        for counter in group.counters:
            counter.counts[row] -= 1

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for counter in self._counters.values():
            longer = np.zeros(capacity, np.int64)
            longer[: len(counter.counts)] = counter.counts
            counter.counts = longer

    def _count_afresh(self, query: PodQuery) -> _Counter:
        if len(self._counters) >= MOST_COUNTERS:
            _, oldest = self._counters.popitem(last=False)
            for group in self._groups.values():
                if oldest in group.counters:
                    group.counters.remove(oldest)
        counter = self._counters[query] = _Counter(query, self.capacity)
        for group in self._groups.values():
            if query.picks(group):
                group.counters.append(counter)
                for row, count in group.rows.items():
                    counter.counts[row] += count
        return counter


def _key(pod: Pod) -> _GroupKey:
    return pod.namespace, pod.label_items, pod.terminating
