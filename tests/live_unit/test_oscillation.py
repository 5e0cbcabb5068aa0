"""A workload whose pods are bound and deleted without end is told of."""

from __future__ import annotations

import logging

import pytest

from mooring.live.oscillation import MOST_MOVES, SOON_S, WITHIN_S, Oscillation
from mooring.objects.pod import Pod
from tests.makers import make_owner, make_pod


class Watched:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.reports = 0
        self._watched = Oscillation(lambda: self.now_s, self._count)

    def _count(self) -> None:
        self.reports += 1

    def move(self, times: int, *, every_s: float = 10.0, **given: object) -> None:
        """As a descheduler does: each pod is evicted, and its controller makes another one."""
        for number in range(times):
            pod: Pod = make_pod(f"web-{self.now_s}-{number}", node=f"node-{number % 2}", **given)
            self._watched.bound(pod)
            self.now_s += every_s
            self._watched.deleted(pod)

    def replace(self, pods: int, number: int, **given: object) -> None:
        """Bind some pods, one after the other, and delete all of them a little later."""
        bound: list[Pod] = [
            make_pod(f"web-{number}-{each}", node=f"node-{each}", **given) for each in range(pods)
        ]
        for pod in bound:
            self._watched.bound(pod)
            self.now_s += 0.1
        for pod in bound:
            self._watched.deleted(pod)
            self.now_s += 0.01


WEB = make_owner("ReplicaSet", "web")


def test_pods_that_a_descheduler_evicts_again_and_again_are_told_of_once(caplog):
    watched = Watched()

    with caplog.at_level(logging.WARNING):
        watched.move(3 * MOST_MOVES, owner=WEB)

    assert watched.reports == 1
    [record] = caplog.records
    assert "pods of ReplicaSet default/web were bound and deleted 5 times" in record.getMessage()
    assert "node-0, node-1" in record.getMessage()


def test_a_loop_that_goes_on_is_told_of_again():
    watched = Watched()
    watched.move(MOST_MOVES, owner=WEB)
    watched.now_s += WITHIN_S
    watched.move(MOST_MOVES, owner=WEB)

    assert watched.reports == 2


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"every_s": SOON_S + 1, "owner": WEB}, id="pods that ran for a while"),
        pytest.param({"every_s": WITHIN_S / 3.5, "owner": WEB}, id="seldom"),
        pytest.param({"phase": "Succeeded", "owner": WEB}, id="pods that had finished"),
        pytest.param({}, id="pods without a controller"),
    ],
)
def test_what_is_no_loop_is_not_told_of(given):
    watched = Watched()

    watched.move(3 * MOST_MOVES, **given)

    assert watched.reports == 0


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(1, id="a deployment is restarted, or its namespace deleted"),
        pytest.param(3, id="a few times"),
    ],
)
def test_many_pods_that_are_deleted_at_once_are_one_move(caplog, rounds):
    """A rollout that followed soon after the last one was told of as a loop, after 0 s."""
    watched = Watched()

    for number in range(rounds):
        watched.replace(4 * MOST_MOVES, number, owner=WEB)

    assert watched.reports == 0
    assert not caplog.records


def test_a_loop_in_which_many_pods_move_each_time_is_told_of():
    watched = Watched()

    for number in range(MOST_MOVES):
        watched.replace(4, number, owner=WEB)

    assert watched.reports == 1
