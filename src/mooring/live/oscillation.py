"""Notices workloads whose pods are bound and deleted again and again, and says so.

A descheduler that evicts what the scheduler then puts back, or an autoscaler whose nodes come and go, makes a
loop that no single decision shows.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from mooring.objects.pod import Pod

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

#: A pod that is deleted so soon after its bind, before it has finished, has moved. Of pods that were bound
#: side by side, only the first that is deleted counts: the next move is of a pod that was bound after that.
SOON_S = 300.0
#: So many moves of one workload within this time are told, and told again after this time.
MOST_MOVES = 5
WITHIN_S = 900.0

_MOST_PODS = 10_000
_MOST_WORKLOADS = 1_000


class Oscillation:
    """Is told of binds and deletions."""

    def __init__(self, now: Callable[[], float], report: Callable[[], None]) -> None:
        """`report` is called with each workload that is told of."""
        self._now = now
        self._report = report
        #: By UID of the pod: when it was bound. The oldest is first.
        self._bound: OrderedDict[str, float] = OrderedDict()
        #: By UID of the controller: when its pods moved one after the other, and from which nodes.
        self._moves: OrderedDict[str, deque[tuple[float, str]]] = OrderedDict()
        self._told: OrderedDict[str, float] = OrderedDict()

    def bound(self, pod: Pod) -> None:
        if pod.metadata.controller is not None:
            self._bound[pod.uid] = self._now()
            _shorten(self._bound, _MOST_PODS)

    def deleted(self, pod: Pod) -> None:
        since, owner, now = self._bound.pop(pod.uid, None), pod.metadata.controller, self._now()
        if since is None or owner is None or pod.finished or now - since > SOON_S:
            return
        moves = self._moves.setdefault(owner.uid, deque(maxlen=MOST_MOVES))
        if moves and since < moves[-1][0]:
            # It was bound before the last move: many pods are deleted at once, as in a rollout.
            return
        moves.append((now, pod.node_name))
        self._moves.move_to_end(owner.uid)
        _shorten(self._moves, _MOST_WORKLOADS)
        if len(moves) < MOST_MOVES or now - moves[0][0] > WITHIN_S:
            return
        if now - self._told.get(owner.uid, now - WITHIN_S) < WITHIN_S:
            return
        self._told[owner.uid] = now
        _shorten(self._told, _MOST_WORKLOADS)
        self._report()
        _LOG.warning(
            "pods of %s %s/%s were bound and deleted %d times in %.0f s, on %s: does a descheduler or an"
            " autoscaler work against the scheduler?",
            owner.kind,
            pod.namespace,
            owner.name,
            MOST_MOVES,
            now - moves[0][0],
            ", ".join(node for _, node in moves),
        )


def _shorten(known: OrderedDict[str, T], most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
